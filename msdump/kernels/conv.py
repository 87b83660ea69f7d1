"""Conv2D and its two gradients: rows of patches, one matrix product per block of images.

Images are turned to channels-last first. A row then holds the patch under one output pixel in the order
(kernel row, kernel column, channel), so it is copied in runs of whole kernel rows, and the same rows serve all three
operators:

    Conv2D                 y    = rows @ weight^T
    Conv2DBackpropFilter   dw   = sum over blocks of dy^T @ rows
    Conv2DBackpropInput    rows = dy @ weight, then each row is added back to where its patch came from

Blocks are sized for the cache and depend on shapes only, so the bits of a result do not depend on the machine's load.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from msdump.errors import GraphError
from msdump.events import Array
from msdump.graph.autodiff import GradBuilder
from msdump.graph.graph import Node, Value
from msdump.graph.primitive import Attrs, def_bprop, def_infer, def_kernel, def_primitive
from msdump.graph.types import TensorType
from msdump.kernels.checks import FLOATS, expect, expect_count, expect_dtype, expect_same_dtype, expect_shape
from msdump.kernels.precision import compute_type, quiet
from msdump.kernels.threads import WORKERS, split
from msdump.kernels.window import Padding, Window, expect_images, expect_nchw, pair, window_of
from msdump.kernels.workspace import scratch

# Bytes of one block of rows. The gradient of the weight adds one product per block, so it takes fewer, bigger ones.
BLOCK_BYTES = 8 << 20
FILTER_BLOCK_BYTES = 24 << 20

Shape4 = tuple[int, int, int, int]


@dataclass(frozen=True)
class Geometry:
    """Sizes of one convolution: x (N, C, H, W), weight (O, C / groups, kh, kw), y (N, O, oh, ow)."""

    images: int
    channels: int
    size: tuple[int, int]
    filters: int
    groups: int
    window: Window

    @property
    def depth(self) -> int:
        """Input channels of a group."""
        return self.channels // self.groups

    @property
    def width(self) -> int:
        """Output channels of a group."""
        return self.filters // self.groups

    @property
    def patch(self) -> int:
        """Elements under the kernel in one group."""
        return self.window.kernel[0] * self.window.kernel[1] * self.depth

    @property
    def output_shape(self) -> Shape4:
        return (self.images, self.filters, *self.window.output)

    @property
    def padded_size(self) -> tuple[int, int]:
        top, bottom, left, right = self.window.padding
        return self.size[0] + top + bottom, self.size[1] + left + right


@dataclass(frozen=True)
class Block:
    """Some images, and of these some rows of output pixels."""

    images: slice
    rows: slice

    @property
    def is_first(self) -> bool:
        """True for the first block of its images."""
        return bool(self.rows.start == 0)


def geometry(x: Sequence[int], weight: Sequence[int], attrs: Attrs) -> Geometry:
    """Sizes of Conv2D on operands of these shapes.   Raises: GraphError when they do not fit."""
    groups = attrs.get("group", 1)
    expect(isinstance(groups, int) and groups >= 1, "group to be a positive int", groups)
    expect(x[1] % groups == 0 and weight[0] % groups == 0, f"channels that {groups} groups divide", (x[1], weight[0]))
    if weight[1] * groups != x[1]:
        raise GraphError(f"expected w of shape ({weight[0]}, {x[1] // groups}, ...), got {tuple(weight)}.")
    kernel = pair(attrs, "kernel_size") if "kernel_size" in attrs else (weight[2], weight[3])
    expect((weight[2], weight[3]) == kernel, f"w with a kernel of {kernel[0]} x {kernel[1]}", tuple(weight))
    size = (x[2], x[3])
    window = window_of(attrs, size, kernel, pair(attrs, "stride", 1), pair(attrs, "dilation", 1))
    return Geometry(x[0], x[1], size, weight[0], groups, window)


def conv_padding(attrs: Attrs, x: Sequence[int], weight: Sequence[int]) -> Padding:
    """(top, bottom, left, right) as Conv2D uses it: what the original shows as `pad_list`."""
    return geometry(x, weight, attrs).window.padding


# -- shape rules --------------------------------------------------------------------------------------

def_primitive("Conv2D", ("x", "w"), grad_scope="gradConv2D-expand")
def_primitive("Conv2DBackpropFilter", ("out_backprop", "input", "filter_sizes"))
def_primitive("Conv2DBackpropInput", ("out_backprop", "filter", "input_sizes"))


@def_infer("Conv2D")
def _conv_type(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: kernel_size, pad_mode, pad, stride, dilation, group, out_channel."""
    expect_count(types, 2)
    _expect_operands(types[0], types[1], attrs)
    g = geometry(types[0].shape, types[1].shape, attrs)
    filters = attrs.get("out_channel", g.filters)
    expect(filters == g.filters, f"w with {filters} filters (out_channel)", types[1].shape)
    return (TensorType(types[0].dtype, g.output_shape),)


@def_infer("Conv2DBackpropFilter")
def _filter_type(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: those of Conv2D and filter_sizes, the shape of the weight."""
    expect_count(types, 3)
    result = _target_type(types, attrs, "filter_sizes")
    _expect_operands(types[1], result, attrs)
    expect_shape(types[0], geometry(types[1].shape, result.shape, attrs).output_shape, "out_backprop")
    return (result,)


@def_infer("Conv2DBackpropInput")
def _input_type(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: those of Conv2D and input_sizes, the shape of the image."""
    expect_count(types, 3)
    result = _target_type(types, attrs, "input_sizes")
    _expect_operands(result, types[1], attrs)
    expect_shape(types[0], geometry(result.shape, types[1].shape, attrs).output_shape, "out_backprop")
    return (result,)


def _target_type(types: Sequence[TensorType], attrs: Attrs, name: str) -> TensorType:
    """Type of the result, whose shape is both an operand (as the original has it) and an attribute."""
    expect_same_dtype(types[:2])
    expect_dtype(types[2], {"int64"}, name)
    expect_shape(types[2], (4,), name)
    sizes = attrs.get(name)
    expect(isinstance(sizes, tuple) and len(sizes) == 4, f"attribute {name} of four ints", sizes)
    assert isinstance(sizes, tuple)
    return TensorType(types[0].dtype, sizes)


def _expect_operands(x: TensorType, weight: TensorType, attrs: Attrs) -> None:
    expect_nchw(attrs)
    expect_images(x, "x")
    expect_dtype(weight, FLOATS, "w")
    expect_same_dtype((x, weight))
    expect(weight.ndim == 4 and 0 not in weight.shape, "w of shape (O, C / group, kh, kw)", weight.shape)


# -- moving pixels ------------------------------------------------------------------------------------


def _blocks(g: Geometry, itemsize: int, block_bytes: int) -> Iterator[Block]:
    """Blocks of about `block_bytes` of rows: several images, or when one is too big, parts of one."""
    height, width = g.window.output
    line = g.groups * g.patch * width * itemsize
    images = max(1, block_bytes // (line * height))
    parts = -(-line * height // block_bytes) if images == 1 else 1
    lines = -(-height // parts)
    for image in range(0, g.images, images):
        for row in range(0, height, lines):
            yield Block(slice(image, min(image + images, g.images)), slice(row, min(row + lines, height)))


def _channels_last(x: Array, g: Geometry, dtype: Any) -> Array:
    """(n, C, H, W) -> scratch (n, H + padding, W + padding, C) in the compute dtype, zeros around."""
    count = x.shape[0]
    (height, width), (top, _, left, _) = g.size, g.window.padding
    image = scratch("conv.image", (count, *g.padded_size, g.channels), dtype)
    if g.window.is_padded:
        image[:, :top] = 0
        image[:, top + height :] = 0
        image[:, :, :left] = 0
        image[:, :, left + width :] = 0

    def part(start: int, stop: int) -> None:
        inner = image[:, top + start : top + stop, left : left + width]
        np.copyto(inner, x[:, :, start:stop].transpose(0, 2, 3, 1), casting="unsafe")

    split(height, x.size, part)
    return image


def _patches(image: Array, g: Geometry, rows: slice) -> Array:
    """View (groups, n, oh, ow, kh, kw, depth) of a padded channels-last image; neighbouring patches overlap."""
    (kh, kw), (sh, sw), (dh, dw) = g.window.kernel, g.window.stride, g.window.dilation
    by_image, by_row, by_column, by_channel = image.strides
    shape = (g.groups, image.shape[0], rows.stop - rows.start, g.window.output[1], kh, kw, g.depth)
    strides = (
        g.depth * by_channel,
        by_image,
        sh * by_row,
        sw * by_column,
        dh * by_row,
        dw * by_column,
        by_channel,
    )
    return as_strided(image[:, rows.start * sh :], shape, strides)


def _gather(image: Array, g: Geometry, rows: slice) -> Array:
    """Patches copied into scratch (groups, n * oh * ow, patch)."""
    patches = _patches(image, g, rows)
    gathered = scratch("conv.rows", patches.shape, image.dtype)

    def part(start: int, stop: int) -> None:
        np.copyto(gathered[:, :, start:stop], patches[:, :, start:stop])

    split(patches.shape[2], gathered.size, part)
    return gathered.reshape(g.groups, -1, g.patch)


def _scatter(products: Array, image: Array, g: Geometry, rows: slice) -> None:
    """Add each patch of `products` back to its place in `image`, always in the same order.

    Columns of outputs are taken in turns so wide apart that their patches do not overlap: one addition then takes
    whole kernel rows at once.
    """
    (kh, kw), (_, sw), (_, dw) = g.window.kernel, g.window.stride, g.window.dilation
    patches = _patches(image, g, rows)
    products = products.reshape(patches.shape)
    turns = min(-(-((kw - 1) * dw + 1) // sw), patches.shape[3])

    def add(targets: Array, sources: Array) -> None:
        for i in range(kh):
            for turn in range(turns):
                target = targets[:, :, :, turn::turns, i]
                np.add(target, sources[:, :, :, turn::turns, i], out=target)

    def images(start: int, stop: int) -> None:
        add(patches[:, start:stop], products[:, start:stop])

    def channels(start: int, stop: int) -> None:
        add(patches[..., start:stop], products[..., start:stop])

    if patches.shape[1] % WORKERS == 0:
        split(patches.shape[1], products.size, images)
    else:
        split(g.depth, products.size, channels)


def _pixels_last(y: Array, g: Geometry, dtype: Any) -> Array:
    """Output gradient (n, O, oh, ow) -> scratch (groups, n * oh * ow, O / groups) in the compute dtype."""
    count, _, height, width = y.shape
    last = scratch("conv.pixels", (g.groups, count, height, width, g.width), dtype)
    source = y.reshape(count, g.groups, g.width, height, width).transpose(1, 0, 3, 4, 2)

    def part(start: int, stop: int) -> None:
        np.copyto(last[:, :, start:stop], source[:, :, start:stop], casting="unsafe")

    split(height, y.size, part)
    return last.reshape(g.groups, -1, g.width)


def _filters(weight: Array, g: Geometry, dtype: Any) -> Array:
    """Weight (O, depth, kh, kw) -> scratch (groups, O / groups, patch) in the order of the rows."""
    kh, kw = g.window.kernel
    ordered = scratch("conv.filters", (g.filters, kh, kw, g.depth), dtype)

    def part(start: int, stop: int) -> None:
        np.copyto(ordered[start:stop], weight[start:stop].transpose(0, 2, 3, 1), casting="unsafe")

    split(g.filters, weight.size, part)
    return ordered.reshape(g.groups, g.width, g.patch)


# -- kernels ------------------------------------------------------------------------------------------


@def_kernel("Conv2D")
@quiet
def _conv(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    x, weight = inputs
    g = geometry(x.shape, weight.shape, attrs)
    dtype = compute_type(x.dtype)
    filters = _filters(weight, g, dtype)
    image = np.empty(0, dtype)
    for block in _blocks(g, dtype.itemsize, BLOCK_BYTES):
        if block.is_first:
            image = _channels_last(x[block.images], g, dtype)
        gathered = _gather(image, g, block.rows)
        pixels = scratch("conv.pixels", (*gathered.shape[:2], g.width), dtype)
        np.matmul(gathered, filters.swapaxes(1, 2), out=pixels)
        _store_pixels(pixels, out[0][block.images, :, block.rows], g)


def _store_pixels(pixels: Array, y: Array, g: Geometry) -> None:
    """(groups, n * oh * ow, O / groups) -> y (n, O, oh, ow)."""
    count, _, height, width = y.shape
    source = pixels.reshape(g.groups, count, height, width, g.width)

    def part(start: int, stop: int) -> None:
        for group in range(g.groups):
            target = y[:, group * g.width : (group + 1) * g.width, start:stop]
            np.copyto(target, source[group, :, start:stop].transpose(0, 3, 1, 2), casting="unsafe")

    split(height, y.size, part)


@def_kernel("Conv2DBackpropFilter")
@quiet
def _conv_filter_grad(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """Edges: no images -> zeros."""
    dy, x = inputs[:2]
    g = geometry(x.shape, out[0].shape, attrs)
    dtype = compute_type(x.dtype)
    shape = (g.groups, g.width, g.patch)
    total, product = scratch("conv.total", shape, dtype), scratch("conv.product", shape, dtype)
    image, is_first = np.empty(0, dtype), True
    for block in _blocks(g, dtype.itemsize, FILTER_BLOCK_BYTES):
        if block.is_first:
            image = _channels_last(x[block.images], g, dtype)
        pixels = _pixels_last(dy[block.images, :, block.rows], g, dtype)
        np.matmul(pixels.swapaxes(1, 2), _gather(image, g, block.rows), out=total if is_first else product)
        if not is_first:
            _accumulate(total, product)
        is_first = False
    if is_first:
        total.fill(0)
    ordered = total.reshape(g.filters, *g.window.kernel, g.depth)

    def part(start: int, stop: int) -> None:
        np.copyto(out[0][start:stop], ordered[start:stop].transpose(0, 3, 1, 2), casting="unsafe")

    split(g.filters, total.size, part)


def _accumulate(total: Array, product: Array) -> None:
    flat, added = total.reshape(-1), product.reshape(-1)

    def part(start: int, stop: int) -> None:
        np.add(flat[start:stop], added[start:stop], out=flat[start:stop])

    split(flat.size, flat.size, part)


@def_kernel("Conv2DBackpropInput")
@quiet
def _conv_input_grad(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """Edges: pixels that no patch covers get 0."""
    dy, weight = inputs[:2]
    g = geometry(out[0].shape, weight.shape, attrs)
    dtype = compute_type(weight.dtype)
    filters = _filters(weight, g, dtype)
    image = np.empty(0, dtype)
    for block in _blocks(g, dtype.itemsize, BLOCK_BYTES):
        pixels = _pixels_last(dy[block.images, :, block.rows], g, dtype)
        products = scratch("conv.rows", (g.groups, pixels.shape[1], g.patch), dtype)
        np.matmul(pixels, filters, out=products)
        if block.is_first:
            count = block.images.stop - block.images.start
            image = scratch("conv.image", (count, *g.padded_size, g.channels), dtype)
            image.fill(0)
        _scatter(products, image, g, block.rows)
        if block.rows.stop == g.window.output[0]:
            _store_image(image, out[0][block.images], g)


def _store_image(image: Array, x: Array, g: Geometry) -> None:
    """Padded channels-last image -> x (n, C, H, W) without the padding."""
    (height, width), (top, _, left, _) = g.size, g.window.padding

    def part(start: int, stop: int) -> None:
        inner = image[:, top + start : top + stop, left : left + width]
        np.copyto(x[:, :, start:stop], inner.transpose(0, 3, 1, 2), casting="unsafe")

    split(height, x.size, part)


# -- gradients ----------------------------------------------------------------------------------------


def _filter_grad(builder: GradBuilder, dy: Value, x: Value, weight: tuple[int, ...], attrs: Attrs) -> Value:
    sizes = builder.constant(weight, "int64")
    return builder.add("Conv2DBackpropFilter", [dy, x, sizes], {**attrs, "filter_sizes": weight})


def _input_grad(builder: GradBuilder, dy: Value, weight: Value, x: tuple[int, ...], attrs: Attrs) -> Value:
    sizes = builder.constant(x, "int64")
    return builder.add("Conv2DBackpropInput", [dy, weight, sizes], {**attrs, "input_sizes": x})


def _shared(node: Node) -> dict[str, Any]:
    """Attributes of the convolution that a gradient of it inherits."""
    return {name: value for name, value in node.primitive.attrs.items() if name not in ("filter_sizes", "input_sizes")}


@def_bprop("Conv2D")
def _conv_grads(builder: GradBuilder, node: Node, outer: Sequence[Value | None]) -> Sequence[Value | None]:
    """Source: MindSpore's IR, where pad_mode of the gradients is upper case and pad_list is filled in."""
    (x, weight), dy = node.inputs, outer[0]
    if dy is None:
        return (None, None)
    attrs = _shared(node)
    attrs["pad_mode"] = str(attrs.get("pad_mode", "valid")).upper()
    attrs["pad_list"] = conv_padding(attrs, x.type.shape, weight.type.shape)
    attrs["data_format"] = attrs.get("format", "NCHW")
    dw = _filter_grad(builder, dy, x, weight.type.shape, attrs) if builder.wanted[1] else None
    dx = _input_grad(builder, dy, weight, x.type.shape, attrs) if builder.wanted[0] else None
    return (dx, dw)


@def_bprop("Conv2DBackpropInput")
def _input_grad_grads(builder: GradBuilder, node: Node, outer: Sequence[Value | None]) -> Sequence[Value | None]:
    (dy, weight, _), outer_dx = node.inputs, outer[0]
    if outer_dx is None:
        return (None, None, None)
    attrs = _shared(node)
    dw = _filter_grad(builder, dy, outer_dx, weight.type.shape, attrs) if builder.wanted[1] else None
    ddy = builder.add("Conv2D", [outer_dx, weight], attrs) if builder.wanted[0] else None
    return (ddy, dw, None)


@def_bprop("Conv2DBackpropFilter")
def _filter_grad_grads(builder: GradBuilder, node: Node, outer: Sequence[Value | None]) -> Sequence[Value | None]:
    (dy, x, _), outer_dw = node.inputs, outer[0]
    if outer_dw is None:
        return (None, None, None)
    attrs = _shared(node)
    dx = _input_grad(builder, dy, outer_dw, x.type.shape, attrs) if builder.wanted[1] else None
    ddy = builder.add("Conv2D", [x, outer_dw], attrs) if builder.wanted[0] else None
    return (ddy, dx, None)

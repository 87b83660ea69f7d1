"""Conv2D and its two gradients: rows of patches, one matrix product per block of images.

The same rows serve all three operators:

    Conv2D                 y    = rows @ weight^T
    Conv2DBackpropFilter   dw   = sum over blocks of dy^T @ rows
    Conv2DBackpropInput    rows = dy @ weight, then each row is added back to where its patch came from

Blocks are sized for the cache and depend on shapes only, so a result has the same bits each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from msdump.graph.graph import Node, Value
from msdump.graph.primitive import Attrs, def_infer, def_kernel, def_primitive
from msdump.graph.types import TensorType
from msdump.mindspore.kernels.blas import product
from msdump.mindspore.kernels.checks import FLOATS, expect, expect_count, expect_dtype, expect_same_dtype, expect_shape
from msdump.mindspore.kernels.threads import split
from msdump.mindspore.kernels.window import (
    Padding,
    channels_last,
    expect_images,
    expect_nchw,
    filter_rows,
    gather,
    geometry,
    pixels_last,
    row_blocks,
    scatter,
    store_image,
    store_pixels,
)
from msdump.mindspore.kernels.workspace import compute_type, quiet, scratch
from msdump.mindspore.program.autodiff import GradBuilder, Grads, def_bprop
from msdump.tensors.arrays import Array

# Bytes of one block of rows. The gradient of the weight adds one product per block, so it takes fewer, bigger ones.
BLOCK_BYTES = 8 << 20
FILTER_BLOCK_BYTES = 24 << 20


def conv_padding(attrs: Attrs, x: Sequence[int], weight: Sequence[int]) -> Padding:
    """(top, bottom, left, right) as Conv2D uses it: what MindSpore shows as `pad_list`."""
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
    """Type of the result, whose shape is both an operand (as MindSpore has it) and an attribute."""
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


# -- kernels ------------------------------------------------------------------------------------------


@def_kernel("Conv2D")
@quiet
def _conv(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    x, weight = inputs
    g = geometry(x.shape, weight.shape, attrs)
    dtype = compute_type(x.dtype)
    filters = filter_rows(weight, g, dtype)
    image = np.empty(0, dtype)
    for block in row_blocks(g, dtype.itemsize, BLOCK_BYTES):
        if block.is_first:
            image = channels_last(x[block.images], g, dtype)
        gathered = gather(image, g, block.rows)
        pixels = scratch("conv.pixels", (*gathered.shape[:2], g.width), dtype)
        product(gathered, filters.swapaxes(1, 2), pixels)
        store_pixels(pixels, out[0][block.images, :, block.rows], g)


@def_kernel("Conv2DBackpropFilter")
@quiet
def _conv_filter_grad(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """Edges: no images -> zeros."""
    dy, x = inputs[:2]
    g = geometry(x.shape, out[0].shape, attrs)
    dtype = compute_type(x.dtype)
    shape = (g.groups, g.width, g.patch)
    total, addend = scratch("conv.total", shape, dtype), scratch("conv.addend", shape, dtype)
    image, is_first = np.empty(0, dtype), True
    for block in row_blocks(g, dtype.itemsize, FILTER_BLOCK_BYTES):
        if block.is_first:
            image = channels_last(x[block.images], g, dtype)
        pixels = pixels_last(dy[block.images, :, block.rows], g, dtype)
        product(pixels.swapaxes(1, 2), gather(image, g, block.rows), total if is_first else addend)
        if not is_first:
            _accumulate(total, addend)
        is_first = False
    if is_first:
        total.fill(0)
    ordered = total.reshape(g.filters, *g.window.kernel, g.depth)

    def part(start: int, stop: int) -> None:
        np.copyto(out[0][start:stop], ordered[start:stop].transpose(0, 3, 1, 2), casting="unsafe")

    split(g.filters, total.size, part)


def _accumulate(total: Array, addend: Array) -> None:
    flat, added = total.reshape(-1), addend.reshape(-1)

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
    filters = filter_rows(weight, g, dtype)
    image = np.empty(0, dtype)
    for block in row_blocks(g, dtype.itemsize, BLOCK_BYTES):
        pixels = pixels_last(dy[block.images, :, block.rows], g, dtype)
        products = scratch("conv.rows", (g.groups, pixels.shape[1], g.patch), dtype)
        product(pixels, filters, products)
        if block.is_first:
            count = block.images.stop - block.images.start
            image = scratch("conv.image", (count, *g.padded_size, g.channels), dtype)
            image.fill(0)
        scatter(products, image, g, block.rows)
        if block.rows.stop == g.window.output[0]:
            store_image(image, out[0][block.images], g)


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
def _conv_grads(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
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
def _input_grad_grads(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    (dy, weight, _), outer_dx = node.inputs, outer[0]
    if outer_dx is None:
        return (None, None, None)
    attrs = _shared(node)
    dw = _filter_grad(builder, dy, outer_dx, weight.type.shape, attrs) if builder.wanted[1] else None
    ddy = builder.add("Conv2D", [outer_dx, weight], attrs) if builder.wanted[0] else None
    return (ddy, dw, None)


@def_bprop("Conv2DBackpropFilter")
def _filter_grad_grads(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    (dy, x, _), outer_dw = node.inputs, outer[0]
    if outer_dw is None:
        return (None, None, None)
    attrs = _shared(node)
    dx = _input_grad(builder, dy, outer_dw, x.type.shape, attrs) if builder.wanted[1] else None
    ddy = builder.add("Conv2D", [x, outer_dw], attrs) if builder.wanted[0] else None
    return (ddy, dx, None)

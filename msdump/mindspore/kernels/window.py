"""The sliding window of convolution and pooling: attributes as numbers, padding, output sizes; and the pixels under a
convolution's window, copied out of images and added back to them.

Images are turned to channels-last first. A row then holds the patch under one output pixel in the order
(kernel row, kernel column, channel), so it is copied in runs of whole kernel rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from msdump.errors import OperandValueError
from msdump.graph.primitive import Attrs
from msdump.graph.types import TensorType
from msdump.mindspore.kernels.checks import FLOATS, expect, expect_dtype
from msdump.mindspore.kernels.threads import WORKERS, split
from msdump.mindspore.kernels.workspace import scratch
from msdump.tensors.arrays import Array

Pair = tuple[int, int]
Padding = tuple[int, int, int, int]


def pair(attrs: Attrs, name: str, default: int | None = None) -> Pair:
    """Attribute as (height, width): an int, (h, w) or (1, 1, h, w).   Raises: OperandValueError for less than 1."""
    value: Any = attrs.get(name, default)
    if isinstance(value, int):
        value = (value, value)
    sizes = tuple(value) if isinstance(value, (tuple, list)) else ()
    if len(sizes) == 4 and sizes[:2] == (1, 1):
        sizes = sizes[2:]
    if len(sizes) != 2 or any(not isinstance(size, int) or size < 1 for size in sizes):
        raise OperandValueError(f"expected {name} to be a positive int, (h, w) or (1, 1, h, w), got {value!r}.")
    return sizes[0], sizes[1]


@dataclass(frozen=True)
class Window:
    """Kernel, stride and dilation as (h, w), padding as (top, bottom, left, right), output size as (h, w)."""

    kernel: Pair
    stride: Pair
    dilation: Pair
    padding: Padding
    output: Pair

    @property
    def is_padded(self) -> bool:
        return any(self.padding)


def window_of(attrs: Attrs, size: Pair, kernel: Pair, stride: Pair, dilation: Pair = (1, 1)) -> Window:
    """The window over an image of `size`.   Raises: OperandValueError when it fits nowhere, or for another pad_mode."""
    padding = _padding(attrs, size, kernel, stride, dilation)
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    height = size[0] + padding[0] + padding[1] - spans[0]
    width = size[1] + padding[2] + padding[3] - spans[1]
    if height < 0 or width < 0:
        raise OperandValueError(
            f"expected an image of at least {spans[0]} x {spans[1]}, got {size[0]} x {size[1]} with padding {padding}."
        )
    return Window(kernel, stride, dilation, padding, (height // stride[0] + 1, width // stride[1] + 1))


def _padding(attrs: Attrs, size: Pair, kernel: Pair, stride: Pair, dilation: Pair) -> Padding:
    """Source: MindSpore, `pad_mode` of Conv2D, MaxPool and AvgPool; the names are taken in either case."""
    mode = str(attrs.get("pad_mode", "valid")).lower()
    if mode == "valid":
        return (0, 0, 0, 0)
    if mode == "same":
        height = same_padding(size[0], kernel[0], stride[0], dilation[0])
        return height + same_padding(size[1], kernel[1], stride[1], dilation[1])
    if mode == "pad":
        return _explicit_padding(attrs.get("pad", 0))
    raise OperandValueError(f'expected pad_mode "valid", "same" or "pad", got "{attrs["pad_mode"]}".')


def same_padding(size: int, kernel: int, stride: int, dilation: int = 1) -> Pair:
    """Padding (before, after) that gives ceil(size / stride) outputs; an odd one goes after."""
    outputs = -(-size // stride)
    total = max((outputs - 1) * stride + (kernel - 1) * dilation + 1 - size, 0)
    return total // 2, total - total // 2


def _explicit_padding(value: Any) -> Padding:
    sizes = (value,) * 4 if isinstance(value, int) else tuple(value)
    if len(sizes) != 4 or any(not isinstance(size, int) or size < 0 for size in sizes):
        raise OperandValueError(
            f"expected pad to be an int or (top, bottom, left, right), none negative, got {value!r}."
        )
    return sizes[0], sizes[1], sizes[2], sizes[3]


def expect_images(type: TensorType, what: str) -> None:
    """A float tensor (N, C, H, W) with at least one pixel and one channel."""
    expect_dtype(type, FLOATS, what)
    if type.ndim != 4 or 0 in type.shape[1:]:
        raise OperandValueError(f"expected {what} of shape (N, C, H, W), got {type.shape}.")


def expect_nchw(attrs: Attrs) -> None:
    """Attribute `format`, where there is one, is NCHW."""
    format = attrs.get("format", "NCHW")
    if format != "NCHW":
        raise OperandValueError(f'expected format "NCHW", got "{format}". Put a Transpose before the operator.')


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
class PatchBlock:
    """Some images, and of these some rows of output pixels."""

    images: slice
    rows: slice

    @property
    def is_first(self) -> bool:
        """True for the first block of its images."""
        return bool(self.rows.start == 0)


def geometry(x: Sequence[int], weight: Sequence[int], attrs: Attrs) -> Geometry:
    """Sizes of Conv2D on operands of these shapes.   Raises: OperandValueError when they do not fit."""
    groups = attrs.get("group", 1)
    expect(isinstance(groups, int) and groups >= 1, "group to be a positive int", groups)
    expect(x[1] % groups == 0 and weight[0] % groups == 0, f"channels that {groups} groups divide", (x[1], weight[0]))
    if weight[1] * groups != x[1]:
        raise OperandValueError(f"expected w of shape ({weight[0]}, {x[1] // groups}, ...), got {tuple(weight)}.")
    kernel = pair(attrs, "kernel_size") if "kernel_size" in attrs else (weight[2], weight[3])
    expect((weight[2], weight[3]) == kernel, f"w with a kernel of {kernel[0]} x {kernel[1]}", tuple(weight))
    size = (x[2], x[3])
    window = window_of(attrs, size, kernel, pair(attrs, "stride", 1), pair(attrs, "dilation", 1))
    return Geometry(x[0], x[1], size, weight[0], groups, window)


# -- images to rows, rows to images -------------------------------------------------------------------


def row_blocks(g: Geometry, itemsize: int, block_bytes: int) -> Iterator[PatchBlock]:
    """Blocks of about `block_bytes` of rows: several images, or when one is too big, parts of one."""
    height, width = g.window.output
    line = g.groups * g.patch * width * itemsize
    images = max(1, block_bytes // (line * height))
    parts = -(-line * height // block_bytes) if images == 1 else 1
    lines = -(-height // parts)
    for image in range(0, g.images, images):
        for row in range(0, height, lines):
            yield PatchBlock(slice(image, min(image + images, g.images)), slice(row, min(row + lines, height)))


def channels_last(x: Array, g: Geometry, dtype: Any) -> Array:
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
    strides = (g.depth * by_channel, by_image, sh * by_row, sw * by_column, dh * by_row, dw * by_column, by_channel)
    return as_strided(image[:, rows.start * sh :], shape, strides)


def gather(image: Array, g: Geometry, rows: slice) -> Array:
    """Patches copied into scratch (groups, n * oh * ow, patch)."""
    patches = _patches(image, g, rows)
    gathered = scratch("conv.rows", patches.shape, image.dtype)

    def part(start: int, stop: int) -> None:
        np.copyto(gathered[:, :, start:stop], patches[:, :, start:stop])

    split(patches.shape[2], gathered.size, part)
    return gathered.reshape(g.groups, -1, g.patch)


def scatter(products: Array, image: Array, g: Geometry, rows: slice) -> None:
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


def pixels_last(y: Array, g: Geometry, dtype: Any) -> Array:
    """Output gradient (n, O, oh, ow) -> scratch (groups, n * oh * ow, O / groups) in the compute dtype."""
    count, _, height, width = y.shape
    last = scratch("conv.pixels", (g.groups, count, height, width, g.width), dtype)
    source = y.reshape(count, g.groups, g.width, height, width).transpose(1, 0, 3, 4, 2)

    def part(start: int, stop: int) -> None:
        np.copyto(last[:, :, start:stop], source[:, :, start:stop], casting="unsafe")

    split(height, y.size, part)
    return last.reshape(g.groups, -1, g.width)


def filter_rows(weight: Array, g: Geometry, dtype: Any) -> Array:
    """Weight (O, depth, kh, kw) -> scratch (groups, O / groups, patch) in the order of the rows."""
    kh, kw = g.window.kernel
    ordered = scratch("conv.filters", (g.filters, kh, kw, g.depth), dtype)

    def part(start: int, stop: int) -> None:
        np.copyto(ordered[start:stop], weight[start:stop].transpose(0, 2, 3, 1), casting="unsafe")

    split(g.filters, weight.size, part)
    return ordered.reshape(g.groups, g.width, g.patch)


def store_pixels(pixels: Array, y: Array, g: Geometry) -> None:
    """(groups, n * oh * ow, O / groups) -> y (n, O, oh, ow)."""
    count, _, height, width = y.shape
    source = pixels.reshape(g.groups, count, height, width, g.width)

    def part(start: int, stop: int) -> None:
        for group in range(g.groups):
            target = y[:, group * g.width : (group + 1) * g.width, start:stop]
            np.copyto(target, source[group, :, start:stop].transpose(0, 3, 1, 2), casting="unsafe")

    split(height, y.size, part)


def store_image(image: Array, x: Array, g: Geometry) -> None:
    """Padded channels-last image -> x (n, C, H, W) without the padding."""
    (height, width), (top, _, left, _) = g.size, g.window.padding

    def part(start: int, stop: int) -> None:
        inner = image[:, top + start : top + stop, left : left + width]
        np.copyto(x[:, :, start:stop], inner.transpose(0, 3, 1, 2), casting="unsafe")

    split(height, x.size, part)

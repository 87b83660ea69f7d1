"""The sliding window of convolution and pooling: attributes as numbers, padding, output sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from msdump.errors import GraphError
from msdump.graph.primitive import Attrs
from msdump.graph.types import TensorType
from msdump.kernels.checks import FLOATS, expect_dtype

Pair = tuple[int, int]
Padding = tuple[int, int, int, int]


def pair(attrs: Attrs, name: str, default: int | None = None) -> Pair:
    """Attribute as (height, width): an int, (h, w) or (1, 1, h, w).   Raises: GraphError for anything below 1."""
    value: Any = attrs.get(name, default)
    if isinstance(value, int):
        value = (value, value)
    sizes = tuple(value) if isinstance(value, (tuple, list)) else ()
    if len(sizes) == 4 and sizes[:2] == (1, 1):
        sizes = sizes[2:]
    if len(sizes) != 2 or any(not isinstance(size, int) or size < 1 for size in sizes):
        raise GraphError(f"expected {name} to be a positive int, (h, w) or (1, 1, h, w), got {value!r}.")
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
    """The window over an image of `size`.   Raises: GraphError when it fits nowhere, or for an unknown pad_mode."""
    padding = _padding(attrs, size, kernel, stride, dilation)
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    height = size[0] + padding[0] + padding[1] - spans[0]
    width = size[1] + padding[2] + padding[3] - spans[1]
    if height < 0 or width < 0:
        raise GraphError(
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
    raise GraphError(f'expected pad_mode "valid", "same" or "pad", got "{attrs["pad_mode"]}".')


def same_padding(size: int, kernel: int, stride: int, dilation: int = 1) -> Pair:
    """Padding (before, after) that gives ceil(size / stride) outputs; an odd one goes after."""
    outputs = -(-size // stride)
    total = max((outputs - 1) * stride + (kernel - 1) * dilation + 1 - size, 0)
    return total // 2, total - total // 2


def _explicit_padding(value: Any) -> Padding:
    sizes = (value,) * 4 if isinstance(value, int) else tuple(value)
    if len(sizes) != 4 or any(not isinstance(size, int) or size < 0 for size in sizes):
        raise GraphError(f"expected pad to be an int or (top, bottom, left, right), none negative, got {value!r}.")
    return sizes[0], sizes[1], sizes[2], sizes[3]


def expect_images(type: TensorType, what: str) -> None:
    """A float tensor (N, C, H, W) with at least one pixel and one channel."""
    expect_dtype(type, FLOATS, what)
    if type.ndim != 4 or 0 in type.shape[1:]:
        raise GraphError(f"expected {what} of shape (N, C, H, W), got {type.shape}.")


def expect_nchw(attrs: Attrs) -> None:
    """Attribute `format`, where there is one, is NCHW."""
    format = attrs.get("format", "NCHW")
    if format != "NCHW":
        raise GraphError(f'expected format "NCHW", got "{format}". Put a Transpose before the operator.')

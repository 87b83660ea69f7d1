"""Convolution and its gradients. GE knows two and three spatial axes; one is made two. NCHW and NCDHW.

strides, dilations   of all axes, the first two 1
pads                 before and after each spatial axis, in pairs of equals
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from msdump.torchair.ge.builder import Builder
from msdump.torchair.ge.graph import GeTensor
from msdump.torchair.ge.registry import converter, kernel


@converter("aten.convolution.default")
def convolution(
    ge: Builder,
    x: GeTensor,
    weight: GeTensor,
    bias: GeTensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> GeTensor:
    spatial = len(x.shape) - 2
    attrs = _attrs(spatial, stride, padding, dilation, groups)
    tensors = {"x": _widened(ge, x), "filter": _widened(ge, weight), "bias": bias, "offset_w": None}
    if not transposed:
        return _narrowed(ge, ge.op(f"Conv{max(spatial, 2)}D", tensors, attrs), spatial)
    attrs["output_padding"] = [0, 0, *_per_axis(output_padding, spatial, 0)]
    sizes = list(ge.result.shape)
    if spatial == 1:
        sizes.insert(2, 1)
    # Zeros: the size is to be reckoned from the padding.
    size = sizes if all(type(item) is int for item in sizes) else [0] * len(sizes)
    return _narrowed(ge, ge.op(f"Conv{max(spatial, 2)}DTranspose", {"input_size": size, **tensors}, attrs), spatial)


@converter("aten.convolution_backward.default")
def convolution_backward(
    ge: Builder,
    dy: GeTensor,
    x: GeTensor,
    weight: GeTensor,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[GeTensor | None, ...]:
    """A transposed convolution is the gradient of a plain one, so that its own gradient is a plain one."""
    spatial = len(x.shape) - 2
    attrs = _attrs(spatial, stride, padding, dilation, groups)
    prefix = f"Conv{max(spatial, 2)}D"
    wide_x, wide_dy, wide_weight = _widened(ge, x), _widened(ge, dy), _widened(ge, weight)
    dx = dw = db = None
    if output_mask[0] and transposed:
        dx = ge.op(prefix, {"x": wide_dy, "filter": wide_weight, "bias": None, "offset_w": None}, attrs)
    elif output_mask[0]:
        inputs = {"size": size_of(ge, wide_x), "filter": wide_weight, "dy": wide_dy}
        dx = ge.op(f"{prefix}BackpropInput", inputs, attrs)
    if output_mask[1]:
        size = ge.op("Shape", {"x": wide_weight})
        first, second = (wide_dy, wide_x) if transposed else (wide_x, wide_dy)
        dw = ge.op(f"{prefix}BackpropFilter", {"x": first, "size": size, "dy": second}, attrs)
    if output_mask[2]:
        axes = [0, *range(2, len(dy.shape))]
        db = ge.op("ReduceSum", {"x": dy, "axes": axes}, {"keep_dims": False})
    return (
        dx if dx is None else _narrowed(ge, dx, spatial),
        dw if dw is None else _narrowed(ge, dw, spatial),
        db,
    )


def _attrs(
    spatial: int, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], groups: int
) -> dict[str, object]:
    return {
        "strides": [1, 1, *_per_axis(stride, spatial, 1)],
        "pads": [pad for pad in _per_axis(padding, spatial, 0) for _ in range(2)],
        "dilations": [1, 1, *_per_axis(dilation, spatial, 1)],
        "groups": groups,
        "data_format": "NCDHW" if spatial == 3 else "NCHW",
    }


def _per_axis(values: Sequence[int], spatial: int, neutral: int) -> list[int]:
    """One value per spatial axis; one in all counts for each; the axis that is added gets the neutral one."""
    numbers = list(values) if len(values) == spatial else list(values) * spatial
    return [neutral, *numbers] if spatial == 1 else numbers


def _widened(ge: Builder, x: GeTensor) -> GeTensor:
    return ge.op("Unsqueeze", {"x": x}, {"axes": [2]}) if len(x.shape) == 3 else x


def _narrowed(ge: Builder, y: GeTensor, spatial: int) -> GeTensor:
    return ge.op("Squeeze", {"x": y}, {"axis": [2]}) if spatial == 1 else y


def size_of(ge: Builder, x: GeTensor) -> list[int] | GeTensor:
    """Sizes of a tensor: a Const, or what they are while the graph runs."""
    sizes = list(x.shape)
    return sizes if all(type(size) is int for size in sizes) else ge.op("Shape", {"x": x})


def _window(
    strides: list[int], pads: list[int], dilations: list[int], groups: int, data_format: str
) -> tuple[list[int], list[int], list[int], int]:
    """Attributes of all axes as ATen has them: of the spatial axes, and the groups."""
    return strides[2:], pads[::2], dilations[2:], groups


@kernel("Conv2D", "Conv3D")
def convolution_kernel(
    x: torch.Tensor, filter: torch.Tensor, bias: torch.Tensor | None, offset_w: torch.Tensor | None, **attrs: Any
) -> torch.Tensor:
    strides, pads, dilations, groups = _window(**attrs)
    return torch.convolution(x, filter, bias, strides, pads, dilations, False, [0] * len(strides), groups)


@kernel("Conv2DTranspose", "Conv3DTranspose", host=("input_size",))
def transposed_convolution_kernel(
    input_size: list[int],
    x: torch.Tensor,
    filter: torch.Tensor,
    bias: torch.Tensor | None,
    offset_w: torch.Tensor | None,
    *,
    output_padding: list[int],
    **attrs: Any,
) -> torch.Tensor:
    """`input_size`, that of the result, follows from the rest."""
    strides, pads, dilations, groups = _window(**attrs)
    return torch.convolution(x, filter, bias, strides, pads, dilations, True, output_padding[2:], groups)


def _gradients(dy: torch.Tensor, x: torch.Tensor, filter: torch.Tensor, output_mask: list[bool], **attrs: Any) -> Any:
    strides, pads, dilations, groups = _window(**attrs)
    return torch.ops.aten.convolution_backward.default(
        dy, x, filter, None, strides, pads, dilations, False, [0] * len(strides), groups, output_mask
    )


@kernel("Conv2DBackpropInput", "Conv3DBackpropInput", host=("size",))
def backprop_input_kernel(size: list[int], filter: torch.Tensor, dy: torch.Tensor, **attrs: object) -> Any:
    # Only the size of it is looked at.
    return _gradients(dy, dy.new_empty(size), filter, [True, False, False], **attrs)[0]


@kernel("Conv2DBackpropFilter", "Conv3DBackpropFilter", host=("size",))
def backprop_filter_kernel(x: torch.Tensor, size: list[int], dy: torch.Tensor, **attrs: object) -> Any:
    return _gradients(dy, x, dy.new_empty(size), [False, True, False], **attrs)[1]

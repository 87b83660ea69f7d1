"""GE operators that give the same elements another shape, or part of them. They return views where torch has them."""

from __future__ import annotations

from typing import Any

import torch

from msdump.frontends.torchair.ge.dtypes import dtype_of_number
from msdump.frontends.torchair.ge.registry import kernel

kernel("Reshape", host=("shape",))(torch.reshape)
kernel("Transpose", host=("perm",))(torch.permute)
kernel("BroadcastTo", host=("shape",))(torch.Tensor.expand)
kernel("AsStrided", host=("size", "stride", "storage_offset"))(torch.as_strided)


@kernel("Bitcast")
def bitcast(x: Any, *, type: int) -> Any:
    return x.view(dtype_of_number(type))


@kernel("Squeeze")
def squeeze(x: Any, *, axis: list[int]) -> Any:
    """axis   empty: every axis of size 1"""
    return torch.squeeze(x, axis) if axis else torch.squeeze(x)


@kernel("Unsqueeze")
def unsqueeze(x: Any, *, axes: list[int]) -> Any:
    for axis in axes:
        x = torch.unsqueeze(x, axis)
    return x


_SLICE = ("begin", "end", "axes", "strides")


@kernel("StridedSliceV2", host=_SLICE)
def strided_slice(x: Any, begin: list[int], end: list[int], axes: list[int], strides: list[int]) -> Any:
    for axis, start, stop, step in zip(axes, begin, end, strides, strict=True):
        x = torch.ops.aten.slice.Tensor(x, axis, start, stop, step)
    return x


@kernel("StridedSliceAssignV2", host=_SLICE)
def strided_slice_assign(
    var: Any, input_value: Any, begin: list[int], end: list[int], axes: list[int], strides: list[int]
) -> Any:
    """var with a part replaced, as a new tensor."""
    result = var.clone()
    strided_slice(result, begin, end, axes, strides).copy_(input_value)
    return result


@kernel("StridedSliceV2Grad", host=("shape", *_SLICE))
def strided_slice_grad(
    shape: list[int], begin: list[int], end: list[int], strides: list[int], dy: Any, axes: list[int]
) -> Any:
    result = dy.new_zeros(shape)
    strided_slice(result, begin, end, axes, strides).copy_(dy)
    return result


@kernel("MatrixDiagPartV3", host=("k",))
def diagonal(input: Any, k: int) -> Any:
    return torch.diagonal(input, k, -2, -1)


@kernel("MatrixSetDiagV3", host=("k",))
def set_diagonal(input: Any, diagonal: Any, k: int) -> Any:
    """input with another diagonal, as a new tensor."""
    return torch.diagonal_scatter(input, diagonal, k, -2, -1)


@kernel("PixelShuffle")
def pixel_shuffle(x: Any, *, upscale_factor: int) -> Any:
    return torch.pixel_shuffle(x, upscale_factor)


@kernel("PixelUnshuffle")
def pixel_unshuffle(x: Any, *, downscale_factor: int) -> Any:
    return torch.pixel_unshuffle(x, downscale_factor)

"""The same elements in another shape, or part of them. The kernels return views where torch has them."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from msdump.torchair.ge.builder import Builder, dtype_of_number, ge_number, placement_hints
from msdump.torchair.ge.graph import Dims, GeTensor, Size
from msdump.torchair.ge.registry import converter, kernel
from msdump.torchair.ge.rows import Attr, row

# What GE writes for "up to the end": ends are INT32 there.
TO_THE_END = 2**31 - 1

kernel("Reshape", host=("shape",))(torch.reshape)
kernel("Transpose", host=("perm",))(torch.permute)
kernel("BroadcastTo", host=("shape",))(torch.Tensor.expand)
kernel("AsStrided", host=("size", "stride", "storage_offset"))(torch.as_strided)

_SLICE = ("begin", "end", "axes", "strides")


@converter(
    "aten.view.default",
    "aten.reshape.default",
    "aten._unsafe_view.default",
    "aten.view_copy.default",
    "aten._reshape_copy.default",
)
def view(ge: Builder, x: GeTensor, size: Sequence[Size]) -> GeTensor:
    return ge.op("Reshape", {"x": x, "shape": ge.sizes(size)})


@converter("aten._reshape_alias.default")
def reshape_alias(ge: Builder, x: GeTensor, size: Sequence[Size], stride: Sequence[Size]) -> GeTensor:
    return view(ge, x, size)


@converter("aten.view.dtype")
def view_dtype(ge: Builder, x: GeTensor, dtype: torch.dtype) -> GeTensor:
    return ge.op("Bitcast", {"x": x}, {"type": ge_number(dtype)})


@kernel("Bitcast")
def bitcast_kernel(x: torch.Tensor, *, type: int) -> torch.Tensor:
    return x.view(dtype_of_number(type))


@converter("aten.permute.default", "aten.permute_copy.default")
def permute(ge: Builder, x: GeTensor, dims: Sequence[int]) -> GeTensor:
    rank = len(x.shape)
    return ge.op("Transpose", {"x": x, "perm": [dim % rank for dim in dims]})


@converter("aten.transpose.int", "aten.transpose_copy.int")
def transpose(ge: Builder, x: GeTensor, dim0: int, dim1: int) -> GeTensor:
    perm = list(range(len(x.shape)))
    if perm:
        perm[dim0], perm[dim1] = perm[dim1], perm[dim0]
    return ge.op("Transpose", {"x": x, "perm": perm})


@converter("aten.t.default", "aten.t_copy.default", "aten.numpy_T.default")
def t(ge: Builder, x: GeTensor) -> GeTensor:
    return ge.op("Transpose", {"x": x, "perm": list(reversed(range(len(x.shape))))})


@converter("aten.expand.default", "aten.expand_copy.default")
def expand(ge: Builder, x: GeTensor, size: Sequence[Size], implicit: bool = False) -> GeTensor:
    return ge.op("BroadcastTo", {"x": x, "shape": ge.sizes(size)})


@converter("aten.squeeze.default", "aten.squeeze.dim", "aten.squeeze.dims", "aten.squeeze_copy.default")
def squeeze(ge: Builder, x: GeTensor, dim: Dims = None) -> GeTensor:
    """An axis that is not of size 1 stays."""
    if dim is None:
        return ge.op("Squeeze", {"x": x}, {"axis": []})
    dims = [dim] if isinstance(dim, int) else list(dim)
    if not any(_is_one(x, dim) for dim in dims):
        return ge.op("Identity", {"x": x}, hints={"is_alias": True})
    return ge.op("Squeeze", {"x": x}, {"axis": [dim for dim in dims if _is_one(x, dim)]})


@kernel("Squeeze")
def squeeze_kernel(x: torch.Tensor, *, axis: list[int]) -> torch.Tensor:
    """axis   empty: every axis of size 1"""
    return torch.squeeze(x, axis) if axis else torch.squeeze(x)


def _is_one(x: GeTensor, dim: int) -> bool:
    return bool(x.shape) and bool(x.shape[dim] == 1)


@converter("aten.unsqueeze.default", "aten.unsqueeze_copy.default")
def unsqueeze(ge: Builder, x: GeTensor, dim: int) -> GeTensor:
    return ge.op("Unsqueeze", {"x": x}, {"axes": [dim]})


@kernel("Unsqueeze")
def unsqueeze_kernel(x: torch.Tensor, *, axes: list[int]) -> torch.Tensor:
    for axis in axes:
        x = torch.unsqueeze(x, axis)
    return x


@converter("aten.as_strided.default", "aten.as_strided_copy.default")
def as_strided(
    ge: Builder, x: GeTensor, size: Sequence[Size], stride: Sequence[Size], storage_offset: Size | None = None
) -> GeTensor:
    inputs = {"x": x, "size": ge.sizes(size), "stride": ge.sizes(stride), "storage_offset": storage_offset or 0}
    return ge.op("AsStrided", inputs)


@converter("aten.slice.Tensor", "aten.slice_copy.Tensor")
def slice_(
    ge: Builder, x: GeTensor, dim: int = 0, start: Size | None = None, end: Size | None = None, step: int = 1
) -> GeTensor:
    return ge.op("StridedSliceV2", {"x": x, **slice_inputs(ge, len(x.shape), dim, start, end, step)})


@kernel("StridedSliceV2", host=_SLICE)
def strided_slice_kernel(
    x: torch.Tensor, begin: list[int], end: list[int], axes: list[int], strides: list[int]
) -> torch.Tensor:
    for axis, start, stop, step in zip(axes, begin, end, strides, strict=True):
        x = torch.ops.aten.slice.Tensor(x, axis, start, stop, step)
    return x


def slice_inputs(
    ge: Builder, rank: int, dim: int, start: Size | None, end: Size | None, step: int
) -> dict[str, GeTensor | list[int]]:
    """A slice of one axis. Source: TorchAir; an end of 2^31 and more is 2147483647."""
    end = TO_THE_END if end is None or (isinstance(end, int) and end > TO_THE_END) else end
    return {
        "begin": ge.sizes([0 if start is None else start]),
        "end": ge.sizes([end]),
        "axes": [dim % rank],
        "strides": [step],
    }


@converter("aten.select.int", "aten.select_copy.int")
def select(ge: Builder, x: GeTensor, dim: int, index: Size) -> GeTensor:
    return ge.op("GatherV2", {"x": x, "indices": index, "axis": dim}, {"negative_index_support": True})


@converter("aten.slice_scatter.default")
def slice_scatter(
    ge: Builder,
    x: GeTensor,
    src: GeTensor,
    dim: int = 0,
    start: Size | None = None,
    end: Size | None = None,
    step: int = 1,
) -> GeTensor:
    inputs = slice_inputs(ge, len(x.shape), dim, start, end, step)
    return ge.op("StridedSliceAssignV2", {"var": x, "input_value": ge.cast(src, x.dtype), **inputs})


@kernel("StridedSliceAssignV2", host=_SLICE)
def strided_slice_assign_kernel(
    var: torch.Tensor, input_value: torch.Tensor, begin: list[int], end: list[int], axes: list[int], strides: list[int]
) -> torch.Tensor:
    """var with a part replaced, as a new tensor."""
    result = var.clone()
    strided_slice_kernel(result, begin, end, axes, strides).copy_(input_value)
    return result


@converter("aten.select_scatter.default")
def select_scatter(ge: Builder, x: GeTensor, src: GeTensor, dim: int, index: Size) -> GeTensor:
    return slice_scatter(ge, x, ge.op("Unsqueeze", {"x": src}, {"axes": [dim]}), dim, *_only(ge, index))


def _only(ge: Builder, index: Size) -> tuple[Size, Size | None]:
    """The slice that is this one index. What follows -1 is the end, not 0."""
    if isinstance(index, GeTensor):
        return index, ge.op("Add", {"x1": index, "x2": 1})
    return index, None if index == -1 else index + 1


@converter("aten.slice_backward.default")
def slice_backward(
    ge: Builder, grad: GeTensor, input_sizes: Sequence[Size], dim: int, start: Size | None, end: Size | None, step: int
) -> GeTensor:
    """Zeros, with the gradient where the slice was."""
    shape = ge.sizes(input_sizes)
    inputs = slice_inputs(ge, len(input_sizes), dim, start, end, step)
    order = ("begin", "end", "strides")
    return ge.op(
        "StridedSliceV2Grad",
        {"shape": shape, **{key: inputs[key] for key in order}, "dy": grad, "axes": inputs["axes"]},
    )


@kernel("StridedSliceV2Grad", host=("shape", *_SLICE))
def strided_slice_grad_kernel(
    shape: list[int], begin: list[int], end: list[int], strides: list[int], dy: torch.Tensor, axes: list[int]
) -> torch.Tensor:
    result = dy.new_zeros(shape)
    strided_slice_kernel(result, begin, end, axes, strides).copy_(dy)
    return result


@converter("aten.select_backward.default")
def select_backward(ge: Builder, grad: GeTensor, input_sizes: Sequence[Size], dim: int, index: Size) -> GeTensor:
    wide = ge.op("Unsqueeze", {"x": grad}, {"axes": [dim]})
    return slice_backward(ge, wide, input_sizes, dim, *_only(ge, index), 1)


@converter("aten.diagonal.default", "aten.diagonal_copy.default")
def diagonal(ge: Builder, x: GeTensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> GeTensor:
    """Of the last two axes, where dim1 and dim2 are moved to."""
    perm = _last_two(len(x.shape), dim1, dim2)
    moved = x if perm == sorted(perm) else ge.op("Transpose", {"x": x, "perm": perm})
    return ge.op("MatrixDiagPartV3", {"input": moved, "k": offset}, output="diagonal")


@kernel("MatrixDiagPartV3", host=("k",))
def diagonal_kernel(input: torch.Tensor, k: int) -> torch.Tensor:
    return torch.diagonal(input, k, -2, -1)


@converter("aten.diagonal_backward.default")
def diagonal_backward(
    ge: Builder, grad: GeTensor, input_sizes: Sequence[Size], offset: int, dim1: int, dim2: int
) -> GeTensor:
    perm = _last_two(len(input_sizes), dim1, dim2)
    zeros = {"dims": ge.sizes([input_sizes[axis] for axis in perm]), "value": ge.const(0, grad.dtype)}
    filled = ge.op("Fill", zeros, hints=placement_hints(None, grad.fake.device))
    placed = ge.op("MatrixSetDiagV3", {"input": filled, "diagonal": grad, "k": offset}, output="output")
    back = [perm.index(axis) for axis in range(len(perm))]
    return placed if perm == back == sorted(perm) else ge.op("Transpose", {"x": placed, "perm": back})


@kernel("MatrixSetDiagV3", host=("k",))
def set_diagonal_kernel(input: torch.Tensor, diagonal: torch.Tensor, k: int) -> torch.Tensor:
    """input with another diagonal, as a new tensor."""
    return torch.diagonal_scatter(input, diagonal, k, -2, -1)


def _last_two(rank: int, dim1: int, dim2: int) -> list[int]:
    last = [dim1 % rank, dim2 % rank]
    return [axis for axis in range(rank) if axis not in last] + last


row("aten.pixel_shuffle.default", "PixelShuffle", "x", Attr("upscale_factor"))
row("aten.pixel_unshuffle.default", "PixelUnshuffle", "x", Attr("downscale_factor"))

"""Shapes and places: functions that move elements and compute nothing."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from msdump.errors import OperandTypeError, OperandValueError
from msdump.mindspore.common.dtype import Type, dtype_name, float32
from msdump.mindspore.common.dtype import int64 as int64_
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import as_tensor, call, execute, promoted
from msdump.mindspore.dispatch import cast as _cast
from msdump.mindspore.names import publish
from msdump.mindspore.ops.primitive import operator_class
from msdump.mindspore.precision import current_precision
from msdump.tensors import dtypes


@operator_class("Zeros")
def zeros(size: Any, dtype: Type | None = None) -> Tensor:
    return full(size, 0, dtype=dtype or float32)


@operator_class("Ones")
def ones(shape: Any, dtype: Type | None = None) -> Tensor:
    return full(shape, 1, dtype=dtype or float32)


def full(size: Any, fill_value: Any, *, dtype: Type | None = None) -> Tensor:
    """A constant tensor of one value."""
    target = dtypes.dtype(dtype_name(dtype)).numpy if dtype is not None else Tensor(fill_value).array.dtype
    return Tensor.of_array(np.full(size, fill_value, target))


@operator_class("Fill")
def fill(type: Type, shape: Any, value: Any) -> Tensor:
    return full(shape, value, dtype=type)


@operator_class("ZerosLike")
def zeros_like(input: Tensor, *, dtype: Type | None = None) -> Tensor:
    return zeros(input.shape, dtype or input.dtype)


@operator_class("OnesLike")
def ones_like(input: Tensor, *, dtype: Type | None = None) -> Tensor:
    return ones(input.shape, dtype or input.dtype)


def eye(n: int, m: int | None = None, t: Type = float32) -> Tensor:
    return Tensor.of_array(np.eye(n, m, dtype=dtypes.dtype(dtype_name(t)).numpy))


def arange(start: Any = 0, end: Any = None, step: Any = 1, *, dtype: Type | None = None) -> Tensor:
    first, last = (0, start) if end is None else (start, end)
    is_whole = builtins.all(isinstance(number, int) for number in (first, last, step))
    target = dtype or (int64_ if is_whole else float32)
    return Tensor.of_array(np.arange(first, last, step).astype(dtypes.dtype(dtype_name(target)).numpy))


@operator_class("Cast")
def cast(x: Any, dtype: Any) -> Tensor:
    """x in another dtype."""
    return _cast(as_tensor(x), dtype_name(dtype))


@operator_class("Shape")
def shape(input_x: Tensor) -> tuple[int, ...]:
    return input_x.shape


@operator_class("Rank")
def rank(input_x: Tensor) -> int:
    return input_x.ndim


@operator_class("Size")
def size(input_x: Tensor) -> int:
    return input_x.size


@operator_class("Reshape")
def reshape(input: Tensor, shape: Any) -> Tensor:
    """The same elements under another shape; one size may be -1."""
    sizes = (shape,) if isinstance(shape, int) else tuple(int(size) for size in shape)
    return call("Reshape", input, shape=sizes)


@operator_class("Flatten")
def flatten(input: Tensor, order: str = "C", *, start_dim: int = 1, end_dim: int = -1) -> Tensor:
    """Axes start_dim to end_dim as one; in the order F of a tensor whose axes are reversed.   Raises: ValueError."""
    if order not in ("C", "F"):
        raise ValueError(f"For 'flatten', argument 'order' must be 'C' or 'F', but got {order!r}.")
    if order == "F":
        input = transpose(input, tuple(reversed(range(input.ndim))))
    if input.ndim == 0:
        return reshape(input, (1,))
    start, end = start_dim % input.ndim, end_dim % input.ndim
    if start > end:
        raise ValueError("For 'flatten', 'start_dim' cannot come after 'end_dim'.")
    if (start, end) == (1, input.ndim - 1) and input.ndim > 1:
        return call("Flatten", input)
    return reshape(input, (*input.shape[:start], math.prod(input.shape[start : end + 1]), *input.shape[end + 1 :]))


@operator_class("Transpose")
def transpose(input: Tensor, input_perm: Sequence[int]) -> Tensor:
    """Axis i of the result is axis input_perm[i]."""
    return call("Transpose", input, perm=tuple(int(axis) for axis in input_perm))


def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """Two axes exchanged."""
    perm = list(range(input.ndim))
    perm[axis0], perm[axis1] = perm[axis1], perm[axis0]
    return transpose(input, perm)


@operator_class("ExpandDims")
def expand_dims(input_x: Tensor, axis: int) -> Tensor:
    """A new axis of size 1."""
    return call("ExpandDims", input_x, axis=axis)


unsqueeze = expand_dims


def squeeze(input: Tensor, axis: Any = None) -> Tensor:
    """Without axes of size 1: all of them, or those named."""
    axes = () if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    return call("Squeeze", input, axis=axes)


@operator_class("Tile")
def tile(input: Tensor, multiples: Sequence[int]) -> Tensor:
    """The tensor repeated along each axis."""
    return call("Tile", input, multiples=tuple(multiples))


def broadcast_to(input: Tensor, shape: Sequence[int]) -> Tensor:
    """The tensor repeated to a shape; -1 keeps a size."""
    return input if tuple(shape) == input.shape else call("BroadcastTo", input, shape=tuple(shape))


@operator_class("Concat", init="axis")
def concat(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Tensors one after another along an axis."""
    return call("Concat", *_alike("Concat", tensors), axis=axis)


cat = concat


@operator_class("Stack", init="axis")
@operator_class("Pack", init="axis")
def stack(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Tensors along a new axis."""
    return call("Stack", *_alike("Stack", tensors), axis=axis)


@operator_class("Unpack", init="axis")
def unstack(input_x: Tensor, axis: int = 0) -> tuple[Tensor, ...]:
    """The tensors along an axis, without it."""
    return execute("Unstack", [input_x], {"axis": axis})


unbind = unstack


def split(tensor: Tensor, split_size_or_sections: Any, axis: int = 0) -> tuple[Tensor, ...]:
    """Parts of a given size, or of given sizes, along an axis."""
    total = tensor.shape[axis]
    if isinstance(split_size_or_sections, int):
        step = split_size_or_sections
        if total % step == 0:
            return execute("Split", [tensor], {"axis": axis, "output_num": total // step})
        sizes = [builtins.min(step, total - start) for start in range(0, total, step)]
    else:
        sizes = list(split_size_or_sections)
    parts, start = [], 0
    for part in sizes:
        begin, shape = [0] * tensor.ndim, list(tensor.shape)
        begin[axis], shape[axis] = start, part
        parts.append(call("Slice", tensor, begin=tuple(begin), size=tuple(shape)))
        start += part
    return tuple(parts)


def _alike(where: str, tensors: Sequence[Tensor]) -> list[Tensor]:
    if not isinstance(tensors, list | tuple):
        raise OperandTypeError(f"{where}: expected a list or tuple of tensors, got {type(tensors).__name__}.")
    operands = [as_tensor(tensor) for tensor in tensors]
    if not operands:
        raise OperandValueError(f"{where}: expected at least one tensor, got none.")
    types = {tensor.type_.dtype for tensor in operands}
    if len(types) > 1 and where == "Concat" and current_precision() is None:
        text = ", ".join(str(tensor.type_) for tensor in operands)
        raise OperandTypeError(f"{where}: expected tensors of one dtype, got {text}. Cast them with astype.")
    common = operands[0]
    for tensor in operands[1:]:
        common = promoted(common, tensor)[0]
    return [_cast(tensor, common.type_.dtype) for tensor in operands]


@operator_class("Gather", init="batch_dims")
def gather(input_params: Tensor, input_indices: Tensor, axis: int = 0, batch_dims: int = 0) -> Tensor:
    """Slices of input_params along an axis, at the indices; the first batch_dims axes go together, item by item."""
    indices = as_tensor(input_indices)
    if batch_dims == 0:
        return call("Gather", input_params, indices, axis=axis)
    rank, place = input_params.ndim, axis % input_params.ndim
    count = batch_dims + indices.ndim if batch_dims < 0 else batch_dims
    lead, size = input_params.shape[:count], input_params.shape[place]
    items, between = math.prod(lead), list(range(count, place))
    rows = transpose(input_params, [*range(count), place, *between, *range(place + 1, rank)])
    flat = reshape(rows, (items * size, *rows.shape[count + 1 :]))
    first = Tensor((np.arange(items) * size).reshape(*lead, *(1,) * (indices.ndim - count)).astype(indices.dtype.numpy))
    slices = call("Gather", flat, call("Add", indices, first), axis=0)
    own = list(range(count, indices.ndim))
    middle = [indices.ndim + number for number in range(len(between))]
    rest = range(indices.ndim + len(between), slices.ndim)
    return transpose(slices, [*range(count), *middle, *own, *rest])


@operator_class("GatherD")
def gather_elements(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """One element per index along an axis."""
    return call("GatherD", input, index, dim=dim)


gather_d = gather_elements


def strided_slice(
    input_x: Tensor, begin: Sequence[int], end: Sequence[int], strides: Sequence[int], begin_mask: int = 0,
    end_mask: int = 0, ellipsis_mask: int = 0, new_axis_mask: int = 0, shrink_axis_mask: int = 0,
) -> Tensor:  # fmt: skip
    """A slice with a begin, an end and a stride per axis; bits of the masks say what counts in their place."""
    masks = {
        "begin_mask": begin_mask,
        "end_mask": end_mask,
        "ellipsis_mask": ellipsis_mask,
        "new_axis_mask": new_axis_mask,
        "shrink_axis_mask": shrink_axis_mask,
    }
    set_masks = masks if builtins.any(masks.values()) else {}
    return call("StridedSlice", input_x, begin=tuple(begin), end=tuple(end), strides=tuple(strides), **set_masks)


@operator_class("OneHot", init="axis")
def one_hot(indices: Tensor, depth: int, on_value: Any = 1.0, off_value: Any = 0.0, axis: int = -1) -> Tensor:
    """on_value at the position that each index names, off_value elsewhere."""
    on = as_tensor(on_value, None if isinstance(on_value, Tensor) else "float32")
    return call("OneHot", indices, on, as_tensor(off_value, on.type_.dtype), depth=depth, axis=axis)


publish(__name__)

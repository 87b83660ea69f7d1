"""Reductions: many elements to one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from msdump.mindspore.common.dtype import int64
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import as_tensor, call, execute
from msdump.mindspore.dispatch import cast as _cast
from msdump.mindspore.names import publish
from msdump.mindspore.ops.arithmetic import maximum, minimum, select
from msdump.mindspore.ops.array import cast, expand_dims, reshape
from msdump.mindspore.ops.primitive import operator_class


def _axes(axis: Any) -> Any:
    if axis is None:
        return ()
    return int(axis) if isinstance(axis, int | np.integer) else tuple(int(item) for item in axis)


def mean(x: Tensor, axis: Any = None, keep_dims: bool = False) -> Tensor:
    return call("ReduceMean", x, axis=_axes(axis), keep_dims=keep_dims)


def sum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Sum over axes; bools count as int64."""
    if dtype is not None:
        input = cast(input, dtype)
    elif input.type_.dtype == "bool":
        input = _cast(input, "int64")
    return call("ReduceSum", input, axis=_axes(dim), keep_dims=keepdim)


def _bounded(input: Tensor, bound: Callable[[Any, Any], Tensor], initial: Any, where: Any) -> Tensor:
    """Elements where `where` holds, `initial` elsewhere, and none beyond `initial`."""
    if where is not None:
        if initial is None:
            raise ValueError("initial value must be provided for where masks")
        input = select(where, input, as_tensor(initial, None if isinstance(initial, Tensor) else input.type_.dtype))
    return input if initial is None else bound(input, initial)


def amax(input: Tensor, axis: Any = None, keepdims: bool = False, *, initial: Any = None, where: Any = None) -> Tensor:
    """Largest elements over axes; those where `where` does not hold count as `initial`."""
    return call("ReduceMax", _bounded(input, maximum, initial, where), axis=_axes(axis), keep_dims=keepdims)


def amin(input: Tensor, axis: Any = None, keepdims: bool = False, *, initial: Any = None, where: Any = None) -> Tensor:
    """Smallest elements over axes; those where `where` does not hold count as `initial`."""
    return call("ReduceMin", _bounded(input, minimum, initial, where), axis=_axes(axis), keep_dims=keepdims)


def prod(input: Tensor, axis: Any = None, keep_dims: bool = False, dtype: Any = None) -> Tensor:
    """Product over axes; bools count as int64."""
    if dtype is not None or input.type_.dtype == "bool":
        input = cast(input, dtype or int64)
    return call("ReduceProd", input, axis=_axes(axis), keep_dims=keep_dims)


def all(input: Tensor, axis: Any = None, keep_dims: bool = False) -> Tensor:
    return call("ReduceAll", _cast(input, "bool"), axis=_axes(axis), keep_dims=keep_dims)


def any(input: Tensor, axis: Any = None, keep_dims: bool = False) -> Tensor:
    return call("ReduceAny", _cast(input, "bool"), axis=_axes(axis), keep_dims=keep_dims)


def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Index of the largest element along an axis, or in the flattened tensor; int64."""
    if dim is None:
        return call("Argmax", reshape(input, (-1,)), axis=0, output_type="int64")
    result = call("Argmax", input, axis=dim, output_type="int64")
    return expand_dims(result, dim) if keepdim else result


def argmin(input: Tensor, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Index of the smallest element along an axis, or in the flattened tensor; int32."""
    if axis is None:
        return call("Argmin", reshape(input, (-1,)), axis=0, output_type="int32")
    result = call("Argmin", input, axis=axis, output_type="int32")
    return expand_dims(result, axis) if keepdims else result


def max(
    input: Tensor, axis: int | None = None, keepdims: bool = False, *, initial: Any = None, where: Any = None
) -> tuple[Tensor, Tensor]:
    """Largest elements and their indices; without an axis the index is 0."""
    if axis is None:
        return amax(input, initial=initial, where=where), Tensor(np.zeros((), np.int64))
    bounded = _bounded(input, maximum, initial, where)
    index, values = execute("ArgMaxWithValue", [bounded], {"axis": axis, "keep_dims": keepdims})
    return values, index


def min(
    input: Tensor, axis: int | None = None, keepdims: bool = False, *, initial: Any = None, where: Any = None
) -> tuple[Tensor, Tensor]:
    """Smallest elements and their indices; without an axis the index is 0."""
    if axis is None:
        return amin(input, initial=initial, where=where), Tensor(np.zeros((), np.int64))
    bounded = _bounded(input, minimum, initial, where)
    index, values = execute("ArgMinWithValue", [bounded], {"axis": axis, "keep_dims": keepdims})
    return values, index


def cumsum(x: Tensor, axis: int, dtype: Any = None) -> Tensor:
    return call("CumSum", x if dtype is None else cast(x, dtype), axis=axis)


@operator_class("Unique")
def unique(x: Tensor) -> tuple[Tensor, Tensor]:
    """Distinct elements by first appearance, and for each element its place among them.

    Dtypes: places int64 for int64, else int32.
    Raises: GraphError in a graph, where the size of the result would depend on the data.
    """
    array = x._concrete("the distinct elements", "Use shapes that do not depend on data")
    _, first, inverse = np.unique(array, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    values = array.reshape(-1)[np.sort(first)]
    index = np.int64 if array.dtype == np.int64 else np.int32
    return Tensor.of_array(values), Tensor.of_array(place[inverse.reshape(array.shape)].astype(index))


publish(__name__)

"""Updates of slices of a tensor that indices name: `Scatter*`, `TensorScatter*`, `Inplace*`, and sums by segments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from msdump.errors import ExecutionError
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import as_tensor, call
from msdump.mindspore.names import publish
from msdump.mindspore.ops.blending import whole_quotient
from msdump.mindspore.ops.declaration import operator, plain
from msdump.mindspore.ops.primitive import operator_class

_UPDATE, _ADD, _SUB, _MUL, _DIV, _MAX, _MIN = "update", "add", "sub", "mul", "div", "max", "min"
_OF_TORCH = {_MUL: "prod", _DIV: "prod", _MAX: "amax", _MIN: "amin"}
# What a segment holds before its first element.
_EMPTY = {_ADD: 0, _MUL: 1, _MAX: "least", _MIN: "greatest"}


def _long(index: Any) -> Any:
    """PyTorch takes indices of int64."""
    return index.long()


def _last(ids: Any) -> int:
    return int(ids.max())


# -- one way to write rows ---------------------------------------------------------------------------------------------


def _count(shape: Any) -> int:
    return int(np.prod(shape, dtype=int))


def _written(library: Any, rows: Any, places: Any, updates: Any, how: str) -> Any:
    """`rows` (n, m) with `updates` (k, m) at `places` (k), in their order where a place comes twice."""
    updates, places = updates.to(rows.dtype), _long(places)
    if how == _UPDATE:
        return library.index_put(rows, (places,), updates)
    if how in (_ADD, _SUB):
        return library.index_add(rows, 0, places, updates, alpha=1 if how == _ADD else -1)
    index = library.broadcast_to(places[:, None], updates.shape)
    if how != _DIV:
        return library.scatter_reduce(rows, 0, index, updates, _OF_TORCH[how])
    divisors = library.scatter_reduce(library.ones_like(rows), 0, index, updates, "prod")
    return library.div(rows, divisors) if rows.dtype.is_floating_point else whole_quotient(library, rows, divisors)


def _check_shape(updates: Any, shape: tuple[int, ...]) -> None:
    if tuple(updates.shape) != shape:
        raise ValueError(f"expected updates of shape {shape}, got {tuple(updates.shape)}.")


def _check_range(coordinates: Any, sizes: Any) -> None:
    """PyTorch checks no coordinates (k, m) that have become places in memory.   Raises: ExecutionError."""
    for axis, size in enumerate(() if _has_no_data(coordinates) else sizes):
        column = coordinates[:, axis]
        outside = column[(column < 0) | (column >= size)]
        if outside.shape[0]:
            raise ExecutionError(f"expected indices of axis {axis} in [0, {size}), got {int(outside[0])}.")


def _has_no_data(tensor: Any) -> bool:
    is_meta: bool = tensor.device.type == "meta"
    return is_meta


def _at_rows(library: Any, x: Any, indices: Any, updates: Any, how: str) -> Any:
    """indices of any shape name rows of x; updates have the shape indices.shape + x.shape[1:]."""
    size = _count(x.shape[1:])
    places = library.reshape(indices, (-1,))
    _check_shape(updates, (*indices.shape, *x.shape[1:]))
    _check_range(places[:, None], x.shape[:1])
    parts = library.reshape(updates, (places.shape[0], size))
    return library.reshape(_written(library, library.reshape(x, (x.shape[0], size)), places, parts, how), x.shape)


def _at_coordinates(library: Any, x: Any, indices: Any, updates: Any, how: str) -> Any:
    """The last axis of indices holds coordinates of the first axes of x; updates have the shapes of the rest."""
    depth = indices.shape[-1]
    if depth > x.ndim:
        raise ValueError(f"expected at most {x.ndim} coordinates in the last axis of indices, got {depth}.")
    _check_shape(updates, (*indices.shape[:-1], *x.shape[depth:]))
    lead, size = x.shape[:depth], _count(x.shape[depth:])
    coordinates = library.reshape(indices, (-1, depth))
    _check_range(coordinates, lead)
    places = sum(coordinates[:, axis] * _count(lead[axis + 1 :]) for axis in range(depth))
    parts = library.reshape(updates, (coordinates.shape[0], size))
    rows = library.reshape(x, (_count(lead), size))
    return library.reshape(_written(library, rows, places, parts, how), x.shape)


# -- the families ------------------------------------------------------------------------------------------------------

_Write = Callable[[Any, Any, Any, Any, str], Any]


def _new(op_type: str, how: str) -> Callable[..., Any]:
    """`TensorScatter*`: a new tensor."""

    def function(torch: Any, input_x: Tensor, indices: Tensor, updates: Tensor) -> Any:
        return _at_coordinates(torch, input_x, indices, updates, how)

    function.__doc__ = f"A copy of input_x in which the slices that indices name are written ({how})."
    return operator(op_type)(function)


def _in_place(op_type: str, write: _Write, how: str, use_locking: bool = False) -> Callable[..., Any]:
    """`Scatter*` and `ScatterNd*`: written to the parameter."""

    def function(torch: Any, input_x: Tensor, indices: Tensor, updates: Tensor, use_locking: bool = use_locking) -> Any:
        return write(torch, input_x, indices, updates, how)

    function.__doc__ = f"The slices of a parameter that indices name are written in place ({how})."
    return operator(op_type, init="use_locking", is_update=True)(function)


tensor_scatter_update = _new("TensorScatterUpdate", _UPDATE)
tensor_scatter_add = _new("TensorScatterAdd", _ADD)
tensor_scatter_sub = _new("TensorScatterSub", _SUB)
tensor_scatter_mul = _new("TensorScatterMul", _MUL)
tensor_scatter_div = _new("TensorScatterDiv", _DIV)
tensor_scatter_max = _new("TensorScatterMax", _MAX)
tensor_scatter_min = _new("TensorScatterMin", _MIN)

scatter_update = _in_place("ScatterUpdate", _at_rows, _UPDATE, True)
scatter_add = _in_place("ScatterAdd", _at_rows, _ADD)
_scatter_sub = _in_place("ScatterSub", _at_rows, _SUB)
scatter_mul = _in_place("ScatterMul", _at_rows, _MUL)
scatter_div = _in_place("ScatterDiv", _at_rows, _DIV)
scatter_max = _in_place("ScatterMax", _at_rows, _MAX)
scatter_min = _in_place("ScatterMin", _at_rows, _MIN)

scatter_nd_update = _in_place("ScatterNdUpdate", _at_coordinates, _UPDATE, True)
scatter_nd_add = _in_place("ScatterNdAdd", _at_coordinates, _ADD)
scatter_nd_sub = _in_place("ScatterNdSub", _at_coordinates, _SUB)
scatter_nd_mul = _in_place("ScatterNdMul", _at_coordinates, _MUL)
scatter_nd_div = _in_place("ScatterNdDiv", _at_coordinates, _DIV)
scatter_nd_max = _in_place("ScatterNdMax", _at_coordinates, _MAX)
scatter_nd_min = _in_place("ScatterNdMin", _at_coordinates, _MIN)
_scatter_non_aliasing_add = _in_place("ScatterNonAliasingAdd", _at_coordinates, _ADD)


def _rows(op_type: str, how: str) -> Callable[..., Any]:
    """`Inplace*`: a new tensor, whatever the name says; the indices are numbers."""

    def function(torch: Any, x: Tensor, v: Tensor, indices: Any) -> Any:
        places: Any = torch.as_tensor(np.atleast_1d(indices), device=getattr(x, "device"))  # noqa: B009
        return _at_rows(torch, x, places, v, how)

    function.__doc__ = f"A copy of x in which rows are written ({how})."
    return operator(op_type, init="indices")(function)


inplace_update = _rows("InplaceUpdate", _UPDATE)
inplace_add = _rows("InplaceAdd", _ADD)
inplace_sub = _rows("InplaceSub", _SUB)


@operator_class("InplaceUpdateV2")
def _inplace_update_v2(x: Tensor, indices: Any, v: Tensor) -> Any:
    return inplace_update(x, v, indices)


@operator("IndexAdd", init="axis use_lock check_index_bound", is_update=True)
def index_add(
    torch: Any, x: Tensor, indices: Tensor, y: Tensor, axis: int, use_lock: bool = True, check_index_bound: bool = True
) -> Any:
    """`y` added in place to the slices of a parameter along an axis."""
    return torch.index_add(x, axis, _long(indices), y)


@operator("InplaceIndexAdd", init="axis", is_update=True)
def inplace_index_add(torch: Any, var: Tensor, indices: Tensor, updates: Tensor, axis: int) -> Any:
    """`updates` added in place to the slices of a parameter along an axis."""
    return torch.index_add(var, axis, _long(indices), updates)


@operator("IndexAddExt")
def _index_add_ext(torch: Any, input: Tensor, index: Tensor, source: Tensor, dim: int, alpha: float = 1) -> Any:
    """A copy of input with `alpha * source` added to slices along an axis."""
    return torch.index_add(input, dim, _long(index), source, alpha=alpha)


# -- new tensors of indices and values ---------------------------------------------------------------------------------


@operator("ScatterNd", init="")
def scatter_nd(torch: Any, indices: Tensor, updates: Tensor, shape: Any) -> Any:
    """Zeros to which `updates` are added at the coordinates that indices name."""
    return _at_coordinates(torch, updates.new_zeros(shape), indices, updates, _ADD)  # type: ignore[attr-defined]


@operator("SparseToDense", init="")
def _sparse_to_dense(torch: Any, indices: Tensor, values: Tensor, dense_shape: Any) -> Any:
    """Zeros with `values` at the coordinates that indices name."""
    return _at_coordinates(torch, values.new_zeros(dense_shape), indices, values, _UPDATE)  # type: ignore[attr-defined]


_REDUCE = {"none": "", "add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


@operator("TensorScatterElements", init="axis reduction")
def tensor_scatter_elements(
    torch: Any, input_x: Tensor, indices: Tensor, updates: Tensor, axis: int = 0, reduction: str = "none"
) -> Any:
    """A copy of input_x in which one element per index along an axis is written, or combined as `reduction` says."""
    how, places = _REDUCE[reduction], _long(indices)
    if not how:
        return torch.scatter(input_x, axis, places, updates)
    return torch.scatter_reduce(input_x, axis, places, updates, how)


@operator("ScatterAddWithAxis", init="axis")
def _scatter_add_with_axis(torch: Any, input_x: Tensor, indices: Tensor, updates: Tensor, axis: int = 0) -> Any:
    """A copy of input_x with `updates` added at one element per index along an axis."""
    return torch.scatter_add(input_x, axis, _long(indices), updates)


def scatter(input: Tensor, axis: int, index: Tensor, src: Any) -> Any:
    """A copy of input in which one element per index along an axis is that of `src`."""
    return tensor_scatter_elements(input, index, src, axis)


@operator("IndexPut", init="accumulate")
def _index_put(torch: Any, x1: Tensor, x2: Tensor, indices: Sequence[Tensor], accumulate: int = 0) -> Any:
    """A copy of x1 with x2 written, or added, at x1[indices]."""
    places = tuple(_long(index) for index in indices)
    return torch.index_put(x1, places, x2, bool(accumulate))


@operator("IndexFill", init="")
def _index_fill(torch: Any, x: Tensor, dim: int, index: Tensor, value: Tensor) -> Any:
    """A copy of x with one value in the slices that index names."""
    return torch.index_fill(x, dim, _long(index), value.to(x.dtype))


def index_fill(x: Tensor, axis: int, index: Tensor, value: Any) -> Any:
    """A copy of x with one value in the slices along an axis that index names."""
    return _index_fill(
        x, plain(axis, "axis"), index, as_tensor(value, None if isinstance(value, Tensor) else x.type_.dtype)
    )


# -- segments ----------------------------------------------------------------------------------------------------------


def _by_segment(library: Any, x: Any, ids: Any, count: int, how: str) -> Any:
    """Rows of one segment combined; rows of negative ids count nowhere."""
    depth = ids.ndim
    rest = tuple(x.shape[depth:])
    if not _has_no_data(ids):
        _check_range(ids[ids >= 0][:, None], (count,))
    places = library.where(ids < 0, count, ids)
    start = x.new_zeros((count + 1, *rest)) + _limit(library, x, _EMPTY[how])
    result = _at_rows(library, start, places, library.reshape(x, (_count(ids.shape), *rest)), how)[:count]
    return result.to(x.dtype)


def _limit(library: Any, x: Any, name: Any) -> Any:
    if name not in ("least", "greatest"):
        return name
    limits = library.finfo(x.dtype) if x.dtype.is_floating_point else library.iinfo(x.dtype)
    return limits.min if name == "least" else limits.max


def _unsorted(op_type: str, how: str) -> Callable[..., Any]:
    def function(torch: Any, x: Tensor, segment_ids: Tensor, num_segments: int) -> Any:
        return _by_segment(torch, x, segment_ids, num_segments, how)

    function.__doc__ = f"Elements of one segment id combined ({how}); negative ids count nowhere."
    return operator(op_type, init="")(function)


unsorted_segment_prod = _unsorted("UnsortedSegmentProd", _MUL)
unsorted_segment_max = _unsorted("UnsortedSegmentMax", _MAX)
unsorted_segment_min = _unsorted("UnsortedSegmentMin", _MIN)


def _sorted(op_type: str, how: str) -> Callable[..., Any]:
    """`Segment*`: as many segments as the last id says."""

    def function(torch: Any, input_x: Tensor, segment_ids: Tensor) -> Any:
        count = _last(segment_ids) + 1
        result = _by_segment(torch, input_x, segment_ids, count, how)
        if how not in (_MAX, _MIN):
            return result
        places = np.isin(np.arange(count), np.asarray(segment_ids))
        has_rows = torch.as_tensor(places.reshape((count,) + (1,) * (input_x.ndim - 1)))
        return torch.where(has_rows, result, torch.zeros_like(result))

    function.__doc__ = f"Rows of one segment id combined ({how}); the ids ascend."
    return operator(op_type, is_sized_by_data=True)(function)


for _name, _how in (("Sum", _ADD), ("Prod", _MUL), ("Max", _MAX), ("Min", _MIN)):
    _sorted(f"Segment{_name}", _how)


@operator("SegmentMean", is_sized_by_data=True)
def _segment_mean(torch: Any, input_x: Tensor, segment_ids: Tensor) -> Any:
    """The mean of rows of one segment id; the ids ascend."""
    count = _last(segment_ids) + 1
    total = _by_segment(torch, input_x, segment_ids, count, _ADD)
    rows = np.bincount(np.asarray(segment_ids), minlength=count).clip(1)
    rows = rows.reshape((count,) + (1,) * (input_x.ndim - 1))
    counts = torch.as_tensor(rows).to(total.dtype)
    return total / counts if total.is_floating_point() else whole_quotient(torch, total, counts)


@operator_class("UnsortedSegmentSum")
def unsorted_segment_sum(input_x: Tensor, segment_ids: Tensor, num_segments: Any) -> Tensor:
    """Elements of one segment id added up; negative ids count nowhere."""
    count = plain(num_segments, "num_segments")
    return call("UnsortedSegmentSum", input_x, segment_ids, num_segments=count, skips_negative=True)


publish(__name__)

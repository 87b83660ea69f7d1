"""Indexing: `x[...]` with integers, slices, None, Ellipsis and tensors, as operators."""

from __future__ import annotations

from types import EllipsisType
from typing import Any

import numpy as np

from msdump.errors import GraphError
from msdump.mindspore.common.tensor import Tensor, attached_functions
from msdump.mindspore.dispatch import call
from msdump.mindspore.tracer import current_tracer
from msdump.tensors import dtypes


def take(tensor: Tensor, index: Any) -> Tensor:
    """Elements of `tensor`.

    Edges:   a basic index is one StridedSlice; one integer tensor is one Gather; outside of a graph everything
             that numpy takes works.
    Raises:  IndexError as numpy; GraphError in a graph for boolean masks.
    """
    tracer = current_tracer()
    if tracer is None or not tracer.is_binding:
        result = np.array(tensor.array[_plain(index)])
        if tracer is None or not _is_basic(index):
            return Tensor.of_array(result)
    if isinstance(index, list):
        index = Tensor(index)
    if isinstance(index, np.ndarray):
        index = Tensor.of_array(index)
    if isinstance(index, Tensor) and not (index.is_concrete and index.ndim == 0):
        return _gathered(tensor, index, 0)
    items = index if isinstance(index, tuple) else (index,)
    if any(isinstance(item, Tensor | list | np.ndarray) for item in items):
        return _mixed(tensor, items)
    return _sliced(tensor, items)


def _is_basic(index: Any) -> bool:
    """Can one StridedSlice say it?"""
    items = index if isinstance(index, tuple) else (index,)
    return all(
        item is None or (isinstance(item, EllipsisType | slice | int | np.integer) and not isinstance(item, bool))
        for item in items
    )


def _plain(index: Any) -> Any:
    if isinstance(index, tuple):
        return tuple(_plain(item) for item in index)
    return index.asnumpy() if isinstance(index, Tensor) else index


def _gathered(tensor: Tensor, index: Tensor, axis: int) -> Tensor:
    if index.type_.dtype == "bool" and axis == 0:
        return call("GatherNd", tensor, call("NonZero", index))
    if dtypes.dtype(index.type_.dtype).kind not in (dtypes.INT, dtypes.UINT):
        raise GraphError(
            f"index: expected an integer tensor, got {index.type_}. In a graph shapes are fixed: multiply by the "
            "mask or use ops.select instead of picking with it."
        )
    return call("Gather", tensor, index, axis=axis)


def _mixed(tensor: Tensor, items: tuple[Any, ...]) -> Tensor:
    """Index tensors among integers, slices, None and Ellipsis: first the slices, then a Gather or GatherNd.

    Source: numpy: integers beside index tensors count as such; the axes that they make stand where the first one stood
    when all stand side by side, else in front.
    """
    items = _without_ellipsis(tensor, items)
    picks = {place: _index_tensor(item) for place, item in enumerate(items) if _is_pick(item)}
    rest = tuple(slice(None) if place in picks else item for place, item in enumerate(items))
    if any(item != slice(None) for item in rest):
        tensor = _sliced(tensor, rest)
    places = list(picks)
    if len(places) == 1:
        return _gathered(tensor, picks[places[0]], places[0])
    others = [axis for axis in range(tensor.ndim) if axis not in picks]
    functions = attached_functions()
    if places != list(range(len(places))):
        tensor = functions.transpose(tensor, (*places, *others))
    shape = np.broadcast_shapes(*(index.shape for index in picks.values()))
    columns = [functions.broadcast_to(_from_start(index, size), shape) for index, size in _sized(picks, tensor)]
    result: Tensor = functions.gather_nd(tensor, functions.stack(columns, axis=-1))
    is_adjacent = places == list(range(places[0], places[0] + len(places)))
    if not is_adjacent or places[0] == 0:
        return result
    # The new axes go behind the axes that stood before the first index.
    before = places[0]
    made = list(range(len(shape)))
    behind = list(range(len(shape), result.ndim))
    return functions.transpose(result, (*behind[:before], *made, *behind[before:]))


def _is_pick(item: Any) -> bool:
    return isinstance(item, Tensor | list | np.ndarray | int | np.integer) and not isinstance(item, bool)


def _index_tensor(item: Any) -> Tensor:
    index = item if isinstance(item, Tensor) else Tensor(np.asarray(item, np.int64 if np.ndim(item) == 0 else None))
    if dtypes.dtype(index.type_.dtype).kind not in (dtypes.INT, dtypes.UINT):
        raise GraphError(
            f"index: expected integer tensors, got {index.type_}. In a graph shapes are fixed: multiply by the mask or "
            "use ops.select instead of picking with it."
        )
    return index if index.type_.dtype == "int64" else call("Cast", index, dtype="int64")


def _without_ellipsis(tensor: Tensor, items: tuple[Any, ...]) -> tuple[Any, ...]:
    """`items` with full slices in the place of the Ellipsis."""
    used = sum(item is not None and not isinstance(item, EllipsisType) for item in items)
    if used > tensor.ndim:
        raise IndexError(f"index: expected at most {tensor.ndim} indices for a tensor {tensor.type_}, got {used}.")
    for place, item in enumerate(items):
        if isinstance(item, EllipsisType):
            return (*items[:place], *[slice(None)] * (tensor.ndim - used), *items[place + 1 :])
    return items


def _sized(picks: dict[int, Tensor], tensor: Tensor) -> list[tuple[Tensor, int]]:
    """Each index with the size of the axis that it picks from: they are the first ones."""
    return [(index, tensor.shape[axis]) for axis, index in enumerate(picks.values())]


def _from_start(index: Tensor, size: int) -> Tensor:
    """An index with -1 as the last place."""
    zero = Tensor(np.zeros((), np.int64))
    if index.is_concrete and not (index.array < 0).any():
        return index
    return call("Select", call("Less", index, zero), call("Add", index, Tensor(np.array(size, np.int64))), index)


def _sliced(tensor: Tensor, items: tuple[Any, ...]) -> Tensor:
    """One StridedSlice; its bit masks say what begin and end cannot."""
    begin, end, strides = [], [], []
    masks = dict.fromkeys(("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), 0)
    for position, item in enumerate(items):
        first, last, stride = 0, 1, 1
        bit = 1 << position
        if isinstance(item, EllipsisType):
            masks["ellipsis_mask"] |= bit
        elif item is None:
            masks["new_axis_mask"] |= bit
        elif isinstance(item, slice):
            stride = 1 if item.step is None else int(item.step)
            masks["begin_mask"] |= bit if item.start is None else 0
            masks["end_mask"] |= bit if item.stop is None else 0
            first = 0 if item.start is None else int(item.start)
            last = 0 if item.stop is None else int(item.stop)
        elif isinstance(item, bool):
            raise IndexError("index: expected integers, slices, None, Ellipsis or a tensor, got a bool.")
        else:
            first = int(item)
            last = first + 1
            masks["shrink_axis_mask"] |= bit
        begin.append(first)
        end.append(last)
        strides.append(stride)
    attrs = {"begin": tuple(begin), "end": tuple(end), "strides": tuple(strides), **masks}
    return call("StridedSlice", tensor, **attrs)

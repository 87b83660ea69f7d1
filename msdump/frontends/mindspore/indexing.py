"""Indexing: `x[...]` with integers, slices, None, Ellipsis and tensors, as operators."""

from __future__ import annotations

from types import EllipsisType
from typing import Any

import numpy as np

from msdump import dtypes
from msdump.errors import GraphError
from msdump.frontends.mindspore.common.tensor import Tensor
from msdump.frontends.mindspore.dispatch import call
from msdump.frontends.mindspore.tracer import current_tracer


def take(tensor: Tensor, index: Any) -> Tensor:
    """Elements of `tensor`.

    Edges:   a basic index is one StridedSlice; one integer tensor is one Gather; outside of a graph everything
             that numpy takes works.
    Raises:  IndexError as numpy; GraphError in a graph for boolean masks and several index tensors.
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
    if dtypes.dtype(index.type_.dtype).kind not in (dtypes.INT, dtypes.UINT):
        raise GraphError(
            f"index: expected an integer tensor, got {index.type_}. In a graph shapes are fixed: multiply by the "
            "mask or use ops.select instead of picking with it."
        )
    return call("Gather", tensor, index, axis=axis)


def _mixed(tensor: Tensor, items: tuple[Any, ...]) -> Tensor:
    """One index tensor among full slices."""
    places = [position for position, item in enumerate(items) if isinstance(item, Tensor | list | np.ndarray)]
    rest = [item for position, item in enumerate(items) if position not in places]
    if len(places) != 1 or any(item != slice(None) for item in rest):
        raise GraphError("index: expected one index tensor among full slices in a graph. Use ops.gather for others.")
    item = items[places[0]]
    return _gathered(tensor, item if isinstance(item, Tensor) else Tensor(item), places[0])


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

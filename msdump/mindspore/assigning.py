"""`x[index] = value` as operators: a new tensor in which some elements are others.

Source: MindSpore: TensorScatterUpdate, where a mask chooses Select.
"""

from __future__ import annotations

from types import EllipsisType
from typing import Any

import numpy as np

from msdump.errors import GraphError
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import call, cast
from msdump.mindspore.sources import user_line
from msdump.tensors import dtypes


def put(tensor: Tensor, index: Any, value: Any) -> Tensor:
    """`tensor` with `value`, broadcast, at `index`; the dtype stays that of `tensor`.

    Edges:  indices that the program knows are those of numpy; of tensors that it computes, one mask of bools, or one
            tensor of integers among integers and slices.
    Raises: IndexError as numpy, ValueError when `value` does not broadcast, TypeError for values that are no numbers,
            GraphError for other indices.
    """
    new = _number(tensor, value)
    items = index if isinstance(index, tuple) else (index,)
    computed = [item for item in items if isinstance(item, Tensor) and not item.is_concrete]
    if len(items) == 1 and isinstance(items[0], Tensor) and items[0].type_.dtype == "bool":
        return _at_mask(tensor, items[0], new)
    if computed:
        return _at_computed(tensor, items, new)
    return _at_known(tensor, tuple(_plain(item) for item in items), new)


def _number(tensor: Tensor, value: Any) -> Tensor:
    """`value` as a tensor of the dtype of `tensor`."""
    if isinstance(value, Tensor):
        return cast(value, tensor.type_.dtype)
    array = np.asarray(value)
    if array.dtype.kind not in "biufc":
        raise TypeError(f"{_here()}expected a number, a Tensor, a list or a tuple of numbers, got {value!r}.")
    return Tensor(array.astype(dtypes.dtype(tensor.type_.dtype).numpy))


def _here() -> str:
    line = user_line()
    return f"{line}: " if line else "assignment to elements: "


def _broadcast(value: Tensor, shape: tuple[int, ...]) -> Tensor:
    if value.shape == shape:
        return value
    # As numpy: axes of size 1 in front, that the target does not have, go away.
    lead = max(0, value.ndim - len(shape))
    if lead and set(value.shape[:lead]) == {1}:
        value = call("Reshape", value, shape=value.shape[lead:])
    try:
        fits = np.broadcast_shapes(value.shape, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(f"{_here()}expected a value that broadcasts to {shape}, got shape {value.shape}.")
    return value if value.shape == shape else call("BroadcastTo", value, shape=shape)


def _at_mask(tensor: Tensor, mask: Tensor, value: Tensor) -> Tensor:
    if mask.shape != tensor.shape[: mask.ndim]:
        raise IndexError(f"{_here()}expected a mask for the shape {tensor.shape}, got shape {mask.shape}.")
    if mask.shape != tensor.shape:
        mask = call("Reshape", mask, shape=(*mask.shape, *[1] * (tensor.ndim - mask.ndim)))
        mask = call("BroadcastTo", mask, shape=tensor.shape)
    return call("Select", mask, _broadcast(value, tensor.shape), tensor)


# -- indices that are known while the program is made ------------------------------------------------------------------


def _plain(item: Any) -> Any:
    return item.asnumpy() if isinstance(item, Tensor) else item


def _at_known(tensor: Tensor, items: tuple[Any, ...], value: Tensor) -> Tensor:
    depth = _depth(tensor.ndim, items)
    lead = tensor.shape[:depth]
    kept = items[: depth + sum(item is None for item in items)] if depth < tensor.ndim else items
    try:
        places = np.arange(int(np.prod(lead))).reshape(lead)[kept]
    except IndexError as error:
        raise IndexError(f"{_here()}{error}") from error
    updates = _broadcast(value, (*places.shape, *tensor.shape[depth:]))
    if depth == 0:
        return updates if updates.shape == tensor.shape else call("Reshape", updates, shape=tensor.shape)
    if places.size == 0:
        return tensor
    coordinates = np.stack(np.unravel_index(places, lead), axis=-1)
    return call("TensorScatterUpdate", tensor, Tensor(coordinates.astype(np.int64)), updates)


def _depth(ndim: int, items: tuple[Any, ...]) -> int:
    """How many axes in front an index names; those behind are taken whole."""
    if any(isinstance(item, bool | np.bool_ | list | np.ndarray) for item in items):
        return ndim
    left = [item for item in items if item is not None]
    if EllipsisType in map(type, left[:-1]):
        return ndim
    while left and (isinstance(left[-1], EllipsisType) or _is_whole(left[-1])):
        left.pop()
    return len(left)


def _is_whole(item: Any) -> bool:
    return isinstance(item, slice) and item == slice(None)


# -- indices that the program computes ---------------------------------------------------------------------------------


def _at_computed(tensor: Tensor, items: tuple[Any, ...], value: Tensor) -> Tensor:
    """One coordinate per axis that the index names, broadcast to the shape of what is chosen, and stacked."""
    tensors = [item for item in items if isinstance(item, Tensor | list | np.ndarray)]
    if len(items) > tensor.ndim:
        raise IndexError(f"{_here()}expected at most {tensor.ndim} indices, got {len(items)}.")
    is_plain = all(isinstance(item, Tensor | slice | int | np.integer) and not isinstance(item, bool) for item in items)
    is_mixed = any(isinstance(item, slice) and not _is_whole(item) for item in items) and len(tensors) > 1
    has_gap = _has_gap(items)
    if not is_plain or is_mixed or has_gap:
        raise GraphError(
            f"{_here()}expected one tensor among integers and slices as index in a graph, got {len(items)} indices. "
            "Use ops.tensor_scatter_update or ops.select."
        )
    shape: list[int] = []
    for item in items:
        if isinstance(item, Tensor):
            shape = list(np.broadcast_shapes(tuple(shape), item.shape)) if len(tensors) > 1 else [*shape, *item.shape]
        elif isinstance(item, slice):
            shape.append(len(range(*item.indices(tensor.shape[items.index(item)]))))
    return _scattered(tensor, items, value, tuple(shape))


def _has_gap(items: tuple[Any, ...]) -> bool:
    """Do slices stand between indices of other kinds, or behind several tensors?"""
    kinds = ["s" if isinstance(item, slice) else "t" for item in items]
    text = "".join(kinds).strip("s")
    several = sum(isinstance(item, Tensor) for item in items) > 1
    return "s" in text or (several and "s" in kinds)


def _scattered(tensor: Tensor, items: tuple[Any, ...], value: Tensor, shape: tuple[int, ...]) -> Tensor:
    coordinates: list[Tensor] = []
    done = 0
    for axis, item in enumerate(items):
        size = tensor.shape[axis]
        if isinstance(item, slice):
            numbers = np.arange(size)[item]
            part = Tensor(numbers.reshape(-1, *[1] * (len(shape) - done - 1)).astype(np.int64))
            done += 1
        elif isinstance(item, Tensor):
            part = _from_front(item, size)
            behind = sum(isinstance(other, slice) for other in items[axis + 1 :])
            part = call("Reshape", part, shape=(*part.shape, *[1] * behind)) if behind else part
            done = len(shape) - behind
        else:
            part = Tensor(np.asarray(_checked(int(item), size), np.int64))
        coordinates.append(_broadcast(part, shape))
    indices = call("Stack", *coordinates, axis=-1)
    return call("TensorScatterUpdate", tensor, indices, _broadcast(value, (*shape, *tensor.shape[len(items) :])))


def _checked(position: int, size: int) -> int:
    if not -size <= position < size:
        raise IndexError(f"{_here()}index {position} is out of bounds for an axis of size {size}.")
    return position % size


def _from_front(index: Tensor, size: int) -> Tensor:
    """Indices counted from the front.   Source: MindSpore: Less, Add, Select."""
    if dtypes.dtype(index.type_.dtype).kind not in (dtypes.INT, dtypes.UINT):
        raise IndexError(f"{_here()}expected integers as index, got {index.type_}.")
    index = cast(index, "int64")
    zero, total = (Tensor(np.asarray(number, np.int64)) for number in (0, size))
    return call("Select", call("Less", index, zero), call("Add", index, total), index)

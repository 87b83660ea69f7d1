"""`vmap`: a function of single samples on a batch of them, sample by sample, so that all its operators are seen."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.located import located
from msdump.mindspore.names import publish
from msdump.mindspore.ops.array import expand_dims, stack, unstack


def vmap(fn: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Any]:
    """`fn` for every sample along an axis of its arguments.

    fn        a function or a cell; or a CellList, whose first cell gets the first sample, and so on
    in_axes   the axis of each argument, None for one that all samples share; nested as the arguments are
    out_axes  the axis of the samples in each result; None for a result that is the same for all of them
    Raises:   ValueError where no argument has a sample axis, which only a CellList allows, or sizes differ from one
              another or from the number of cells; RuntimeError for a CellList of less than two cells.
    """
    container: Any = fn
    is_list = getattr(fn, "is_container", False) and isinstance(container, Iterable) and not hasattr(fn, "keys")
    cells = list(container) if is_list else None
    if cells is not None and len(cells) < 2:
        raise RuntimeError(f"For 'vmap', expected a CellList of two cells or more, but got {len(cells)}.")

    @located("vmap")
    @functools.wraps(fn, updated=())
    def mapped(*args: Any) -> Any:
        axes = _spread(in_axes, args)
        sizes = {tensor.shape[axis] for tensor, axis in _mapped_tensors(args, axes)}
        if cells is None and not sizes:
            raise ValueError("For 'vmap', the 'in_axes' must not be None for every argument.")
        if len(sizes) > 1:
            raise ValueError(f"For 'vmap', the sizes along 'in_axes' must be equal, but got {sorted(sizes)}.")
        if cells is not None and sizes not in (set(), {len(cells)}):
            raise ValueError(
                f"For 'vmap', expected a sample for each of the {len(cells)} cells, but got {sizes.pop()}."
            )
        functions = cells or [fn] * sizes.pop()
        columns = _samples(args, axes, len(functions))
        return _joined([each(*column) for each, column in zip(functions, columns, strict=True)], out_axes)

    return mapped


def _spread(axes: Any, args: Any) -> Any:
    """One axis for each tensor of nested arguments."""
    if not isinstance(args, tuple | list):
        return axes
    if isinstance(axes, tuple | list):
        if len(axes) != len(args):
            raise ValueError(f"For 'vmap', expected {len(args)} axes in 'in_axes', but got {len(axes)}.")
        return tuple(_spread(axis, item) for axis, item in zip(axes, args, strict=True))
    return tuple(_spread(axes, item) for item in args)


def _mapped_tensors(thing: Any, axes: Any) -> list[tuple[Tensor, int]]:
    if isinstance(thing, tuple | list):
        pairs = zip(thing, axes, strict=True)
        return [pair for item, axis in pairs for pair in _mapped_tensors(item, axis)]
    if axes is None or not isinstance(thing, Tensor):
        return []
    if not -thing.ndim <= axes < thing.ndim:
        raise ValueError(f"For 'vmap', expected an axis of {thing.ndim} in 'in_axes', but got {axes}.")
    return [(thing, axes)]


def _samples(thing: Any, axes: Any, count: int) -> Sequence[Any]:
    """The argument of each sample."""
    if isinstance(thing, tuple | list):
        parts = [_samples(item, axis, count) for item, axis in zip(thing, axes, strict=True)]
        return [tuple(part[place] for part in parts) for place in range(count)]
    if axes is None or not isinstance(thing, Tensor):
        return [thing] * count
    return unstack(thing, axes)


def _joined(results: Sequence[Any], axes: Any) -> Any:
    if isinstance(results[0], tuple | list):
        count = len(results[0])
        each = axes if isinstance(axes, tuple | list) else (axes,) * count
        if len(each) != count:
            raise ValueError(f"For 'vmap', expected {count} axes in 'out_axes', but got {len(each)}.")
        return tuple(_joined([result[place] for result in results], each[place]) for place in range(count))
    if axes is None:
        return results[0]
    return stack(list(results), axes) if len(results) > 1 else expand_dims(results[0], axes)


publish(__name__)

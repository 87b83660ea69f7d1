"""Shapes, parts, joins and padding of tensors."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import as_tensor, cast
from msdump.mindspore.names import publish
from msdump.mindspore.numpy.creation import _of_ops, array, asarray
from msdump.mindspore.ops import function as F
from msdump.tensors import dtypes


def _matrix(m: Any) -> Tensor:
    """One row becomes as many equal rows as it has elements.   Raises: ValueError for a number."""
    x = asarray(m)
    if not x.ndim:
        raise ValueError("m: expected an array of at least one dimension, got a number.")
    return F.broadcast_to(x, (x.size, x.size)) if x.ndim == 1 else x


reshape = _of_ops("reshape", F.reshape, "x new_shape")
ravel = _of_ops("ravel", F.ravel, "x")
squeeze = _of_ops("squeeze", F.squeeze, "a axis")
swapaxes = _of_ops("swapaxes", F.swapaxes, "x axis1 axis2")
moveaxis = _of_ops("moveaxis", F.movedim, "a source destination")
array_split = _of_ops("array_split", F.tensor_split, "x indices_or_sections axis")
repeat = _of_ops("repeat", F.repeat_interleave, "a repeats axis")
roll = _of_ops("roll", F.roll, "a shift axis")
rot90 = _of_ops("rot90", F.rot90, "a k axes", k=1, axes=(0, 1))
diagflat = _of_ops("diagflat", F.diagflat, "v k")
diagonal = _of_ops("diagonal", F.diagonal, "a offset axis1 axis2")
tril, triu = _of_ops("tril", F.tril, "m k", _matrix), _of_ops("triu", F.triu, "m k", _matrix)
fliplr, flipud = _of_ops("fliplr", F.fliplr, "m"), _of_ops("flipud", F.flipud, "m")


def copy(a: Any) -> Tensor:
    """A tensor of its own with the same elements."""
    return array(a)


def expand_dims(a: Any, axis: Any) -> Tensor:
    """New axes of size 1."""
    x = asarray(a)
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    for each in sorted(each % (x.ndim + len(axes)) for each in axes):
        x = F.expand_dims(x, each)
    return x


def transpose(a: Any, axes: Any = None) -> Tensor:
    """Axes in another order; without `axes` reversed."""
    x = asarray(a)
    return F.transpose(x, tuple(reversed(range(x.ndim))) if axes is None else tuple(axis % x.ndim for axis in axes))


def rollaxis(x: Any, axis: int, start: int = 0) -> Tensor:
    """An axis moved before `start`."""
    tensor = asarray(x)
    first, place = axis % tensor.ndim, start + tensor.ndim if start < 0 else start
    return F.movedim(tensor, first, place - 1 if first < place else place)


def broadcast_to(array: Any, shape: Any) -> Tensor:
    """Repeated to a shape."""
    return F.broadcast_to(asarray(array), (shape,) if isinstance(shape, int) else tuple(shape))


def broadcast_arrays(*args: Any) -> list[Tensor]:
    """All repeated to their common shape."""
    import numpy

    tensors = [asarray(each) for each in args]
    shape = numpy.broadcast_shapes(*(each.shape for each in tensors))
    return [F.broadcast_to(each, shape) for each in tensors]


def concatenate(arrays: Any, axis: int | None = 0) -> Tensor:
    """One after another along an axis; None: all as one axis."""
    tensors = [asarray(each) for each in arrays]
    return F.concat([F.reshape(each, (-1,)) for each in tensors] if axis is None else tensors, axis or 0)


def append(arr: Any, values: Any, axis: int | None = None) -> Tensor:
    """Values behind those of a tensor."""
    return concatenate([arr, values], axis)


def stack(arrays: Any, axis: int = 0) -> Tensor:
    """Along a new axis."""
    return F.stack([asarray(each) for each in arrays], axis)


def _of_opss(name: str, doc: str) -> Callable[[Any], Tensor]:
    compute = getattr(F, name)

    def joined(tup: Any) -> Tensor:
        return tup if isinstance(tup, Tensor) else compute([asarray(each) for each in tup])

    joined.__name__, joined.__doc__ = name, doc
    return joined


hstack, vstack = _of_opss("hstack", "Side by side."), _of_opss("vstack", "One below another.")
dstack, column_stack = _of_opss("dstack", "One behind another."), _of_opss("column_stack", "Vectors as columns.")


def _at_least(axes: int) -> Callable[..., Any]:
    compute = getattr(F, f"atleast_{axes}d")

    def extended(*arys: Any) -> Any:
        results = [compute(asarray(each)) for each in arys]
        return results[0] if len(results) == 1 else results

    extended.__name__, extended.__doc__ = f"atleast_{axes}d", f"With {axes} axes at least."
    return extended


atleast_1d, atleast_2d, atleast_3d = _at_least(1), _at_least(2), _at_least(3)


def split(x: Any, indices_or_sections: Any, axis: int = 0) -> tuple[Tensor, ...]:
    """Equal parts along an axis, or those between indices.   Raises: ValueError for parts that are not equal."""
    tensor = asarray(x)
    if isinstance(indices_or_sections, int) and tensor.shape[axis] % indices_or_sections:
        raise ValueError(f"For 'split', expected a divisor of {tensor.shape[axis]}, but got {indices_or_sections}.")
    return F.tensor_split(tensor, indices_or_sections, axis)


def hsplit(x: Any, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Parts side by side."""
    tensor = asarray(x)
    return split(tensor, indices_or_sections, 0 if tensor.ndim == 1 else 1)


def vsplit(x: Any, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Parts one below another."""
    return split(x, indices_or_sections, 0)


def dsplit(x: Any, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Parts one behind another."""
    return split(x, indices_or_sections, 2)


def tile(a: Any, reps: Any) -> Tensor:
    """Repeated along each axis."""
    x, counts = asarray(a), (reps,) if isinstance(reps, int) else tuple(reps)
    while x.ndim < len(counts):
        x = F.expand_dims(x, 0)
    return F.tile(x, (1,) * (x.ndim - len(counts)) + counts)


def flip(m: Any, axis: Any = None) -> Tensor:
    """Elements in reverse order along axes."""
    x = asarray(m)
    axes = tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    return F.flip(x, axes)


def diag(v: Any, k: int = 0) -> Any:
    """The diagonal of a matrix, or the matrix of a diagonal."""
    x = asarray(v)
    return F.diagonal(x, k) if x.ndim == 2 else diagflat(x, k)


def take(a: Any, indices: Any, axis: int | None = None, mode: str = "clip") -> Tensor:
    """Elements at indices along an axis; indices outside are kept inside ("clip") or go round ("wrap")."""
    x, index = asarray(a), asarray(indices)
    x = F.reshape(x, (-1,)) if axis is None else x
    place = 0 if axis is None else axis % x.ndim
    size = x.shape[place]
    if mode not in ("clip", "wrap"):
        raise ValueError(f"For 'take', expected mode 'clip' or 'wrap', but got {mode!r}.")
    if mode == "clip":
        # Source: MindSpore counts negative indices from the end, down to the first element.
        index = F.select(F.less(index, -size), F.zeros_like(index), F.minimum(index, size - 1))
    index = F.floor_mod(index, size)
    return F.gather(x, index, place)


def take_along_axis(arr: Any, indices: Any, axis: int | None) -> Tensor:
    """One element per index along an axis."""
    x, index = asarray(arr), asarray(indices)
    if axis is None:
        return F.gather_elements(F.reshape(x, (-1,)), 0, F.reshape(index, (-1,)))
    return F.gather_elements(x, axis, index)


def meshgrid(*xi: Any, sparse: bool = False, indexing: str = "xy") -> list[Tensor]:
    """Coordinates of a grid of vectors."""
    vectors = [F.reshape(asarray(each), (-1,)) for each in xi]
    places = list(range(len(vectors)))
    if indexing == "xy" and len(vectors) > 1:
        places[:2] = [1, 0]
    grids = [
        F.reshape(vector, tuple(-1 if axis == place else 1 for axis in range(len(vectors))))
        for vector, place in zip(vectors, places, strict=True)
    ]
    return grids if sparse else broadcast_arrays(*grids)


def size(a: Any, axis: int | None = None) -> int:
    """How many elements, along an axis or in all."""
    x = asarray(a)
    return x.size if axis is None else x.shape[axis]


def isscalar(element: Any) -> bool:
    """Whether it is a number, a text or a truth value."""
    return isinstance(element, builtins.bool | int | float | complex | str)


def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Tensor:
    """Differences of neighbours, n times."""
    ends = [None if each is None else asarray(each) for each in (prepend, append)]
    x = concatenate([each for each in (ends[0], asarray(a), ends[1]) if each is not None], axis)
    for _ in range(n):
        x = F.diff(x, 1, axis)
    return x


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Tensor:
    """Differences of neighbours of all elements, between two sequences."""
    parts = [diff(ravel(ary))]
    parts = ([] if to_begin is None else [ravel(to_begin)]) + parts + ([] if to_end is None else [ravel(to_end)])
    return concatenate(parts)


# Modes that repeat elements of the axis itself.
_BY_INDEX = ("edge", "reflect", "symmetric", "wrap")
_STATISTICS: dict[str, Callable[..., Tensor]] = {"maximum": F.amax, "mean": F.mean, "minimum": F.amin}
Pair = tuple[Any, Any]


def pad(
    arr: Any, pad_width: Any, mode: Any = "constant", stat_length: Any = None, constant_values: Any = 0,
    end_values: Any = 0, reflect_type: str = "even", **kwargs: Any,
) -> Tensor:  # fmt: skip
    """`arr` with elements added before and behind it on each axis, as numpy.pad.

    mode     also a function (row, widths, axis, kwargs), which returns each row along an axis with its ends filled
    Edges:   "empty" fills with zeros; a mean of integers is cut, not rounded.
    Raises:  ValueError for another mode, widths below 0, or pairs that do not fit the axes; NotImplementedError for
             "median", as MindSpore.
    """
    x = asarray(arr)
    if not callable(mode):
        if mode == "median":
            raise NotImplementedError("pad: expected another mode, got 'median', which MindSpore does not have.")
        if mode not in ("constant", "empty", "linear_ramp", *_BY_INDEX, *_STATISTICS):
            raise ValueError(f"pad: expected a mode of numpy.pad, got {mode!r}.")
    if reflect_type not in ("even", "odd"):
        raise ValueError(f'pad: expected "even" or "odd" as reflect_type, got {reflect_type!r}.')
    widths = _pairs("pad_width", pad_width, x.ndim)
    if any(width < 0 for pair in widths for width in pair):
        raise ValueError(f"pad: expected widths from 0 on, got {pad_width!r}.")
    fills = _pairs("constant_values", constant_values, x.ndim) if mode == "constant" else [(0, 0)] * x.ndim
    lengths = [(None, None)] * x.ndim if stat_length is None else _pairs("stat_length", stat_length, x.ndim)
    ends = _pairs("end_values", end_values, x.ndim)
    for axis, width in enumerate(widths):
        if width == (0, 0):
            continue
        if mode in _BY_INDEX:
            x = _repeated(x, axis, width, mode, reflect_type)
        elif mode == "linear_ramp":
            x = _between(x, axis, [_ramp(x, axis, side, width[side], ends[axis][side]) for side in (0, 1)])
        elif mode in _STATISTICS:
            x = _between(x, axis, [_statistic(x, axis, s, width[s], mode, lengths[axis][s]) for s in (0, 1)])
        else:
            x = _between(x, axis, [_filled(x, axis, width[side], fills[axis][side]) for side in (0, 1)])
    # A function sees rows that are padded on all axes.
    return _by_function(x, widths, mode, kwargs) if callable(mode) else x


def _pairs(name: str, value: Any, ndim: int) -> list[Pair]:
    """(before, after) for each axis.   Raises: ValueError."""
    try:
        return [(before, after) for before, after in np.broadcast_to(np.asarray(value), (ndim, 2)).tolist()]
    except ValueError:
        raise ValueError(f"pad: expected {name} that broadcasts to ({ndim}, 2), got {value!r}.") from None


def _between(x: Tensor, axis: int, ends: Sequence[Tensor]) -> Tensor:
    parts = [each for each in (ends[0], x, ends[1]) if each.shape[axis]]
    return F.concat(parts, axis)


def _with_size(x: Tensor, axis: int, size: int) -> tuple[int, ...]:
    return (*x.shape[:axis], size, *x.shape[axis + 1 :])


def _filled(x: Tensor, axis: int, count: int, value: Any) -> Tensor:
    return F.full(_with_size(x, axis, count), value, dtype=x.dtype)


def _repeated(x: Tensor, axis: int, width: Pair, mode: str, reflect_type: str) -> Tensor:
    places = np.pad(np.arange(x.shape[axis]), width, mode)  # type: ignore[call-overload]
    if mode not in ("reflect", "symmetric") or reflect_type == "even":
        return F.gather(x, as_tensor(places), axis)
    # 2 * edge - element, again and again where the padding is wider than the axis.
    before, behind = width
    while before or behind:
        size = x.shape[axis]
        most = max(size - 1, 1) if mode == "reflect" else size
        skip = int(mode == "reflect" and size > 1)
        parts = []
        if before:
            count = min(before, most)
            mirrored = F.gather(x, as_tensor(np.arange(skip, skip + count)[::-1].copy()), axis)
            parts.append(F.sub(F.mul(F.gather(x, as_tensor(np.array([0])), axis), 2), mirrored))
            before -= count
        parts.append(x)
        if behind:
            count = min(behind, most)
            start = size - 1 - skip
            mirrored = F.gather(x, as_tensor(np.arange(start, start - count, -1)), axis)
            parts.append(F.sub(F.mul(F.gather(x, as_tensor(np.array([size - 1])), axis), 2), mirrored))
            behind -= count
        x = F.concat(parts, axis)
    return x


def _ramp(x: Tensor, axis: int, side: int, count: int, end: Any) -> Tensor:
    """From the end value, which is outside, to the edge, which is not repeated."""
    dtype = x.type_.dtype
    real = x if dtypes.dtype(dtype).is_float else cast(x, "float64")
    edge = F.gather(real, as_tensor(np.array([0 if side == 0 else x.shape[axis] - 1])), axis)
    steps = np.arange(count) / max(count, 1)
    steps = steps if side == 0 else steps[::-1]
    shape = [1] * x.ndim
    shape[axis] = count
    ramp = as_tensor(steps.reshape(shape).astype(dtypes.dtype(real.type_.dtype).numpy))
    values = F.add(F.mul(F.sub(edge, end), ramp), end)
    return values if real is x else cast(F.floor(values), dtype)


def _statistic(x: Tensor, axis: int, side: int, count: int, mode: str, length: Any) -> Tensor:
    size = x.shape[axis]
    length = size if length is None else min(int(length), size)
    if length < 1:
        raise ValueError(f"pad: expected stat_length from 1 on, got {length}.")
    start = 0 if side == 0 else size - length
    part = F.gather(x, as_tensor(np.arange(start, start + length)), axis)
    if mode == "mean" and not dtypes.dtype(x.type_.dtype).is_float:
        part = cast(part, "float64")
    value = cast(_STATISTICS[mode](part, axis, True), x.type_.dtype)
    return F.broadcast_to(value, _with_size(x, axis, count))


def _by_function(x: Tensor, widths: Sequence[Pair], function: Callable[..., Any], kwargs: dict[str, Any]) -> Tensor:
    for axis, width in enumerate(widths):
        rows = F.movedim(x, axis, -1)
        flat = F.reshape(rows, (-1, rows.shape[-1]))
        filled = [function(flat[place], width, axis, kwargs) for place in range(flat.shape[0])]
        x = F.movedim(F.reshape(F.stack(filled), rows.shape), -1, axis)
    return x


publish(__name__)

"""`pad` of `mindspore.numpy`: more elements at both ends of each axis, one axis after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import as_tensor, cast
from msdump.mindspore.names import publish
from msdump.mindspore.numpy.creation import asarray
from msdump.mindspore.ops import function as F
from msdump.tensors import dtypes

# Modes that repeat elements of the axis itself.
_BY_INDEX = ("edge", "reflect", "symmetric", "wrap")
_STATISTICS: dict[str, Callable[..., Tensor]] = {"maximum": F.amax, "mean": F.mean, "minimum": F.amin}
Pair = tuple[Any, Any]


def pad(
    arr: Any,
    pad_width: Any,
    mode: Any = "constant",
    stat_length: Any = None,
    constant_values: Any = 0,
    end_values: Any = 0,
    reflect_type: str = "even",
    **kwargs: Any,
) -> Tensor:
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

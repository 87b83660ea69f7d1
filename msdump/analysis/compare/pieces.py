"""Values that one side has in pieces: queries, keys and values out of one product, layers stacked into one weight."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from msdump.analysis.compare.values import Figures, is_row_of
from msdump.tensors.arrays import Array

_NOTHING = 1e-5
_MAX_PIECES = 64  # of one size that are tried in each place of a whole
_ALIKE = 0.05  # how far sizes of a piece and of its place may be apart


def pieces_of(
    whole: Figures, pieces: Mapping[tuple[int, ...], Sequence[Figures]], tolerance: float | None
) -> tuple[list[Figures], bool]:
    """Pieces that make the whole one behind the other along an axis, and whether they make all of it: of a sequence the
    first steps may be right where the later ones are not.

    pieces  by their shapes; those with fewer axes lie behind each other along the first ones
    """
    shape = whole.tensor.shape
    best: list[Figures] = []
    views: list[tuple[tuple[int, ...], int]] = [(shape, axis) for axis in range(len(shape))]
    views += [((-1, *shape[first:]), 0) for first in range(2, len(shape) + 1)]
    for view, axis in views:
        fitting = [
            piece
            for other, listed in pieces.items()
            if len(other) == len(view) and (*other[:axis], *other[axis + 1 :]) == (*view[:axis], *view[axis + 1 :])
            if math.prod(other) < whole.size
            for piece in listed
        ]
        if not fitting:
            continue
        found, is_whole = _laid_out(whole.tensor.load_host().reshape(view), axis, fitting, tolerance)
        if is_whole:
            return found, True
        best = max(best, found, key=len)
    return best, False


def _laid_out(
    array: Array, axis: int, fitting: Sequence[Figures], tolerance: float | None
) -> tuple[list[Figures], bool]:
    """Pieces in the order in which an array holds them along an axis, up to the first place where none fits."""
    found: list[Figures] = []
    start = 0
    while start < array.shape[axis]:
        tile = next(
            (one for one in _candidates(array, axis, start, fitting) if _is_tile(array, axis, start, one, tolerance)),
            None,
        )
        if tile is not None:
            found.append(tile)
        elif not found or not _is_left_out(array, axis, start, found[-1]):
            return found, False
        start += found[-1].tensor.shape[axis]
    return found, True


def _candidates(array: Array, axis: int, start: int, fitting: Sequence[Figures]) -> list[Figures]:
    """Pieces that are as large as what an array holds from a place on an axis on."""
    lengths: dict[int, float] = {}
    found = []
    for piece in fitting:
        end = start + piece.tensor.shape[axis]
        if end > array.shape[axis]:
            continue
        if end not in lengths:
            part = np.take(array, range(start, end), axis)
            with np.errstate(invalid="ignore"):  # NaN of half precisions
                lengths[end] = float(np.linalg.norm(part.astype(np.float64).reshape(-1)))
        if abs(lengths[end] - piece.length) <= _ALIKE * piece.length:
            found.append(piece)
    return found[:_MAX_PIECES]


def _is_left_out(array: Array, axis: int, start: int, before: Figures) -> bool:
    """Whether a piece as long as the one before is next to nothing: a gradient that is zero but for rounding."""
    end = start + before.tensor.shape[axis]
    part = np.take(array, range(start, min(end, array.shape[axis])), axis)
    return end <= array.shape[axis] and float(np.abs(part).max()) <= _NOTHING * float(np.abs(array).max())


def _is_tile(array: Array, axis: int, start: int, piece: Figures, tolerance: float | None) -> bool:
    """Whether a piece is what an array holds from a place on an axis on."""
    end = start + piece.tensor.shape[axis]
    return end <= array.shape[axis] and is_row_of(np.take(array, range(start, end), axis), piece, tolerance)


def may_have_part(whole: tuple[int, ...], part: tuple[int, ...]) -> bool:
    """Whether a part of that shape may be a slice of a whole along one axis, as the next word in a cache of keys, or of
    a row of it.
    """
    rest = whole[len(whole) - len(part) :]
    if len(rest) != len(part) or len(whole) > len(part) + 1:
        return False
    apart = [(one, other) for one, other in zip(rest, part, strict=True) if one != other]
    return len(apart) == 1 and apart[0][0] > apart[0][1] if apart else len(whole) > len(part)


def parts_of(whole: Array, part: tuple[int, ...]) -> Iterator[Array]:
    """Each slice of a whole that has the shape of a part, by `may_have_part`."""
    if whole.shape == part:
        yield whole
        return
    if whole.ndim > len(part):
        for row in whole:
            yield from parts_of(np.asarray(row), part)
        return
    axis = next(axis for axis, length in enumerate(part) if length != whole.shape[axis])
    for first in range(whole.shape[axis] - part[axis] + 1):
        yield whole.take(range(first, first + part[axis]), axis)

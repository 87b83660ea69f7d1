"""Values whose rows the other side has in another order, or among others: packed sentences beside padded ones, sorted
edges of a graph, the tokens that one expert is given.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from msdump.analysis.compare.bounds import bounds_of
from msdump.analysis.compare.pairing import host_shape
from msdump.analysis.compare.values import Figures
from msdump.errors import FormatError
from msdump.tensors.arrays import Array

_LEAST = 4  # numbers of a value whose rows are looked up
_LONG = 4  # numbers in a row that agree by chance in no value
_FEW = 0.1  # numbers of a value that agree with any one by chance, so that shorter rows tell something
_MAX_CANDIDATES = 12
_NEIGHBOURS = 3  # rows of nearly one projection that are looked at
_MAX_ELEMENTS = 1 << 22


def same_rows(figures: Figures, others: Iterable[Figures], tolerance: float | None) -> Figures | None:
    """The first of some values that has all rows of one, or of which it has all rows; None where none has.

    Rows are those along the last axis; one is enough if it is long. Rows of zeros, as padding is, need none.
    """
    fitting = [one for one in others if _may_share_rows(figures, one, tolerance)]
    fitting.sort(key=lambda one: abs(one.size - figures.size))
    for other in fitting[:_MAX_CANDIDATES]:
        small, large = (figures, other) if figures.size <= other.size else (other, figures)
        if _has_rows_of(small, large, tolerance):
            return other
    return None


def has_rows(figures: Figures) -> bool:
    """Whether a value has rows that tell something."""
    shape = host_shape(figures.tensor)
    is_readable = figures.has_elements and not figures.is_plain and _LEAST <= figures.size <= _MAX_ELEMENTS
    return figures.is_float and is_readable and len(shape) > 1


def _may_share_rows(one: Figures, other: Figures, tolerance: float | None) -> bool:
    if not has_rows(other) or host_shape(one.tensor)[-1] != host_shape(other.tensor)[-1]:
        return False
    small, large = (one, other) if one.size <= other.size else (other, one)
    bounds = bounds_of(one.dtype, other.dtype, tolerance)
    slack = bounds.worst * max(-large.lowest, large.largest)
    if small.size == large.size:
        shapes = host_shape(one.tensor), host_shape(other.tensor)
        if shapes[0] != shapes[1] or small.length < (1 - bounds.relative) * large.length:
            return False
    return (
        small.length <= (1 + bounds.relative) * large.length
        and small.largest <= large.largest + slack
        and small.lowest >= large.lowest - slack
    )


def _has_rows_of(small: Figures, large: Figures, tolerance: float | None) -> bool:
    try:
        x, y = (one.tensor.load_host().astype(np.float64) for one in (small, large))
    except (FormatError, OSError):
        return False
    # What exchanges other axes than the first is an order of channels, which no index explains.
    length = math.prod(x.shape[1:]) if small.size == large.size else x.shape[-1]
    if y.size % length:
        return False
    x, y = (array.reshape(-1, length) for array in (x, y))
    bounds = bounds_of(small.dtype, large.dtype, tolerance)
    with np.errstate(invalid="ignore"):
        x = x[np.linalg.norm(x, axis=1) > bounds.relative * np.abs(x).max(initial=0.0)]
    if x.size < _LEAST or not np.isfinite(x).all() or not np.isfinite(y).all() or np.ptp(x) == 0.0:
        return False
    if x.shape[1] < _LONG and y.size * bounds.relative > _FEW:
        return False
    return _nearest(x, y) <= bounds.relative


def _nearest(x: Array, y: Array) -> float:
    """How far the rows of x are from the nearest ones of y, the worst of them, relative to its length.

    Rows are looked up by their sums with weights that tell elements apart.
    """
    weights = np.cos(np.arange(1, x.shape[1] + 1) * 0.618)
    sums = y @ weights
    order = np.argsort(sums)
    places = np.searchsorted(sums[order], x @ weights)
    best = np.full(len(x), np.inf)
    for shift in range(-_NEIGHBOURS, _NEIGHBOURS):
        rows = y[order[np.clip(places + shift, 0, len(y) - 1)]]
        best = np.minimum(best, np.linalg.norm(x - rows, axis=1) / np.linalg.norm(x, axis=1))
    return float(best.max(initial=0.0))

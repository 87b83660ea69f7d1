"""Values whose rows the other side has in another order, or among others: packed sentences beside padded ones, sorted
edges of a graph, the tokens that one expert is given.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable
from operator import attrgetter

import numpy as np

from msdump.analysis.compare.common_tensors import host_shape
from msdump.analysis.compare.values import Figures, Value
from msdump.analysis.distance.bounds import bounds_of
from msdump.errors import FormatError
from msdump.tensors.arrays import Array

_LEAST = 4  # numbers of a value whose rows are looked up
_LONG = 4  # numbers in a row that agree by chance in no value
_FEW = 0.1  # numbers of a value that agree with any one by chance, so that shorter rows tell something
_MAX_CANDIDATES = 12
_NEIGHBOURS = 3  # rows of nearly one projection that are looked at
_MAX_ELEMENTS = 1 << 22
_numbers_of = attrgetter("size", "length", "lowest", "largest")


class ValuesWithRows:
    """Values in which rows of others are looked for."""

    def __init__(self, values: Iterable[Figures], tolerance: float | None) -> None:
        self._tolerance = tolerance
        self._listed: dict[tuple[int, str], list[Figures]] = defaultdict(list)  # by length of a row and dtype
        for one in values:
            if has_rows(one):
                self._listed[host_shape(one.tensor)[-1], one.dtype].append(one)
        self._numbers = {key: np.array(list(map(_numbers_of, values))) for key, values in self._listed.items()}
        self._sums: dict[tuple[Value, int], Array] = {}

    def with_rows_of(self, figures: Figures) -> Figures | None:
        """The first value that has all rows of one, or of which it has all rows; None where none has.

        Rows are those along the last axis; one is enough if it is long. Rows of zeros, as padding is, need none.
        """
        fitting = self._like(figures)
        fitting.sort(key=lambda one: abs(one.size - figures.size))
        likely = (pair for one in fitting if (pair := self._likely(figures, one)) is not None)
        for small, large in itertools.islice(likely, _MAX_CANDIDATES):
            if _has_rows_of(small, large, self._tolerance):
                return large if small is figures else small
        return None

    def _like(self, figures: Figures) -> list[Figures]:
        """Those that may have the rows of one, or whose rows it may have, by their figures alone."""
        found: list[Figures] = []
        shape = host_shape(figures.tensor)
        for (length, dtype), values in self._listed.items():
            if length == shape[-1]:
                may = _may_share_rows(figures, dtype, self._numbers[length, dtype], self._tolerance)
                found += (
                    one
                    for one in itertools.compress(values, may)
                    if one.size != figures.size or host_shape(one.tensor)[0] == shape[0]
                )
        return found

    def _likely(self, figures: Figures, other: Figures) -> tuple[Figures, Figures] | None:
        """The smaller and the larger value, where the larger one has a row with the sum of a row of the other."""
        small, large = (figures, other) if figures.size <= other.size else (other, figures)
        length = _row_length(small, large)
        own, others = self._sums_of(small, length), self._sums_of(large, length)
        if not own.size or not others.size:
            return None
        wanted = own[np.abs(own).argmax()]
        at = int(np.searchsorted(others, wanted))
        nearest = min(abs(wanted - others[max(at - 1, 0)]), abs(wanted - others[min(at, others.size - 1)]))
        # Of a row within the bounds the sum is no further off than the weights and the row are long.
        slack = bounds_of(small.dtype, large.dtype, self._tolerance).relative * math.sqrt(length) * small.length
        return (small, large) if nearest <= slack else None

    def _sums_of(self, figures: Figures, length: int) -> Array:
        """The sums of its rows, in ascending order; none where it cannot be read, or has other rows."""
        key = figures.value, length
        if key not in self._sums:
            try:
                rows = figures.tensor.load_host().astype(np.float64).reshape(-1, length)
            except (FormatError, OSError, ValueError):
                rows = np.empty((0, length))
            with np.errstate(all="ignore"):
                self._sums[key] = np.sort(_sums(rows))
        return self._sums[key]


def has_rows(figures: Figures) -> bool:
    """Whether a value has rows that tell something."""
    shape = host_shape(figures.tensor)
    is_readable = figures.has_elements and not figures.is_plain and _LEAST <= figures.size <= _MAX_ELEMENTS
    return figures.is_float and is_readable and len(shape) > 1


def _may_share_rows(figures: Figures, dtype: str, others: Array, tolerance: float | None) -> Array:
    """bool [values]: whether the smaller value of each pair is within the bounds of the larger one.

    others  float64 [values, 4]: `_numbers_of` values of one dtype
    """
    bounds = bounds_of(figures.dtype, dtype, tolerance)
    own = np.array(_numbers_of(figures))
    is_smaller = others[:, :1] >= own[0]
    small, large = np.where(is_smaller, own, others), np.where(is_smaller, others, own)
    slack = bounds.worst * np.maximum(-large[:, 2], large[:, 3])
    is_as_long = (small[:, 0] < large[:, 0]) | (small[:, 1] >= (1 - bounds.relative) * large[:, 1])
    found: Array = (
        is_as_long
        & (small[:, 1] <= (1 + bounds.relative) * large[:, 1])
        & (small[:, 3] <= large[:, 3] + slack)
        & (small[:, 2] >= large[:, 2] - slack)
    )
    return found


def _row_length(small: Figures, large: Figures) -> int:
    """Elements in a row; what exchanges other axes than the first is an order of channels, which no index explains."""
    shape = host_shape(small.tensor)
    return math.prod(shape[1:]) if small.size == large.size else shape[-1]


def _sums(rows: Array) -> Array:
    """Of each row the sum of its elements, with weights of at most 1 that tell them apart."""
    sums: Array = rows @ np.cos(np.arange(1, rows.shape[1] + 1) * 0.618)
    return sums


def _has_rows_of(small: Figures, large: Figures, tolerance: float | None) -> bool:
    try:
        x, y = (one.tensor.load_host().astype(np.float64) for one in (small, large))
    except (FormatError, OSError):
        return False
    length = _row_length(small, large)
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
    sums = _sums(y)
    order = np.argsort(sums)
    places = np.searchsorted(sums[order], _sums(x))
    best = np.full(len(x), np.inf)
    for shift in range(-_NEIGHBOURS, _NEIGHBOURS):
        rows = y[order[np.clip(places + shift, 0, len(y) - 1)]]
        best = np.minimum(best, np.linalg.norm(x - rows, axis=1) / np.linalg.norm(x, axis=1))
    return float(best.max(initial=0.0))

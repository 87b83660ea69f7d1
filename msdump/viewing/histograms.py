"""A histogram of elements, of any number of them: bounded in what it reads at a time and in what it answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from msdump.tensors.arrays import Array

BINS = 64  # of a linear scale
_DECADE_BINS = 4  # bins of a scale of powers of ten in each decade
_BLOCK = 1 << 20  # elements


def blocks(*arrays: Array) -> Iterator[tuple[Array, ...]]:
    """The elements of arrays of one size in C order, a part of each at a time."""
    flat = [array.reshape(-1) for array in arrays]
    for start in range(0, flat[0].size, _BLOCK):
        yield tuple(array[start : start + _BLOCK] for array in flat)


def histogram(parts: Callable[[], Iterable[Array]], is_log: bool) -> dict[str, Any]:
    """Count elements in bins.

    parts    gives the elements, as real numbers, each time that it is called
    is_log   of absolute values, with 4 bins for each power of ten; else 64 bins of one width
    Returns  `is_log`, `edges` (one more than `counts`, in ascending order) and `counts` of finite elements, `zero` (how
             many are 0, which no bin of powers of ten has), `nan`, `negative_inf`, `positive_inf`, `count` of all
    Edges:   without an element for a bin both lists are empty; equal elements have one bin.
    """
    totals = dict.fromkeys(("count", "zero", "nan", "negative_inf", "positive_inf"), 0)
    least, largest = math.inf, -math.inf
    for part in parts():
        totals["count"] += part.size
        totals["zero"] += int(np.count_nonzero(part == 0))
        totals["nan"] += int(np.count_nonzero(np.isnan(part)))
        totals["negative_inf"] += int(np.count_nonzero(np.isneginf(part)))
        totals["positive_inf"] += int(np.count_nonzero(np.isposinf(part)))
        values = _binned(part, is_log)
        if values.size:
            least, largest = min(least, float(values.min())), max(largest, float(values.max()))
    if least > largest:
        return {"is_log": is_log, "edges": [], "counts": [], **totals}
    edges = _log_edges(least, largest) if is_log else _linear_edges(least, largest)
    counts = np.zeros(len(edges) - 1, np.int64)
    for part in parts():
        counts += np.histogram(_binned(part, is_log), edges)[0]
    return {"is_log": is_log, "edges": [float(edge) for edge in edges], "counts": counts.tolist(), **totals}


def _binned(part: Array, is_log: bool) -> Array:
    values = part[np.isfinite(part)].astype(np.float64)
    return np.abs(values[values != 0]) if is_log else values


def _linear_edges(least: float, largest: float) -> Array:
    if least == largest:
        # Away from the largest number that there is.
        return np.asarray([least, np.nextafter(least, np.inf)] if least <= 0 else [np.nextafter(least, 0), least])
    if not math.isfinite(largest - least):
        return np.asarray([least, 0, largest])
    edges = np.linspace(least, largest, BINS + 1)
    # Neighbours of one float apart have no room for that many bins.
    return np.asarray([least, largest]) if (np.diff(edges) <= 0).any() else edges


def _log_edges(least: float, largest: float) -> Array:
    first, last = (math.floor(_DECADE_BINS * math.log10(one)) for one in (least, largest))
    with np.errstate(over="ignore", under="ignore"):
        edges = 10.0 ** (np.arange(first, last + 2) / _DECADE_BINS)
    # Rounding of logarithms must leave no element outside.
    edges[0], edges[-1] = min(edges[0], least), max(min(edges[-1], np.finfo(np.float64).max), largest)
    return np.unique(edges)

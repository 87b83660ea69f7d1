"""What the numbers of two results say of the computations that made them: that one is the other times a number, that a
loss spreads its labels, that elements are dropped at another rate."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from msdump.analysis.compare.verdict import GOLDEN, MINE, OtherLaw, Scaled, Smoothed
from msdump.tensors.arrays import Array

# Elements of a result, and shares of labels, are equal up to this.
_EQUAL = 1e-4
# Shares of elements that were drawn differ by more than this many deviations only where the laws do.
_DEVIATIONS = 5.0
_CLASSES = 2  # axes of a table of logarithms of probabilities


def scaled(mine: Array, golden: Array, counts: Sequence[int], starts: Sequence[float]) -> Scaled | None:
    """That all elements of one are those of the other times a number that is not 1.

    counts  numbers of elements and rows that a mean may divide by
    starts  numbers that the backward pass of mine begins with
    """
    x, y = (np.asarray(side, np.float64).reshape(-1) for side in (mine, golden))
    if x.size != y.size or not np.isfinite(x).all() or not np.isfinite(y).all():
        return None
    square = float(y @ y)
    if not square:
        return None
    factor = float(x @ y) / square
    if math.isclose(factor, 1.0, rel_tol=_EQUAL) or not np.linalg.norm(x - factor * y) <= _EQUAL * np.linalg.norm(x):
        return None

    def is_one_of(numbers: Sequence[float]) -> bool:
        return any(math.isclose(factor, number, rel_tol=_EQUAL) for number in numbers)

    is_reduction = is_one_of([value for count in counts if count > 1 for value in (count, 1 / count)])
    is_start = not is_reduction and is_one_of(starts)
    # Any number is another one times something.
    return Scaled(factor, is_reduction, is_start) if x.size > 1 or is_reduction or is_start else None


def smoothed(logarithms: Array, mine: float, golden: float) -> Smoothed | None:
    """That one of two losses is the mean of the other and of what all classes have, by a round share.

    logarithms  [rows, classes] of the probabilities of which both are made
    """
    if logarithms.ndim != _CLASSES:
        return None
    spread = -float(np.mean(logarithms.astype(np.float64)))
    for side, own, other in ((MINE, mine, golden), (GOLDEN, golden, mine)):
        share = (own - other) / (spread - other) if spread != other else math.nan
        if 0 < share < 1 and math.isclose(share, round(share, 2), rel_tol=_EQUAL * 10):
            return Smoothed(side, round(share, 2))
    return None


def other_law(given: Array, mine: Array, golden: Array) -> OtherLaw | None:
    """That two operators set other shares of the elements that they were given to zero."""
    if not given.size == mine.size == golden.size:
        return None
    present = given.reshape(-1) != 0
    count = int(np.count_nonzero(present))
    if not count:
        return None
    shares = [float(np.mean(side.reshape(-1)[present] == 0)) for side in (mine, golden)]
    deviation = math.sqrt(sum(share * (1 - share) for share in shares) / count) + 1 / count
    if abs(shares[0] - shares[1]) <= _DEVIATIONS * deviation:
        return None
    # No more digits than the draw tells.
    digits = max(1, math.floor(-math.log10(deviation)))
    return OtherLaw(*(f"{share:.{digits}f}" for share in shares))

"""Tolerances of a comparison, by dtype.

Both bounds must hold. `relative` bounds |mine - golden| / |golden| as Euclidean norms, `worst` the largest difference
against the largest golden value. They allow what two correct implementations of a whole network are apart from each
other, not what one rounding costs: some thousand roundings of float32, a few of the narrow dtypes.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np

from msdump.analysis.distance.metrics import PairMetrics
from msdump.tables.messages import message
from msdump.tensors.arrays import Array

# Three-way: how much larger than the error of the other low-precision run an error may be.
_YARDSTICK = 2.0
_SAMPLE = 4096
_MIN_DISTINCT = 16


# A sum of terms that cancel is no more than rounding below so many epsilons of the sum of their magnitudes.
ROUNDINGS = 8.0
# Of an optimizer that divides a gradient by its size: from which share of the gradients on their steps tell how it
# does so, and how far these may be apart.
_LARGE_SHARE, _OF_A_STEP = 0.75, 0.01


@dataclass(frozen=True, slots=True)
class Bounds:
    """Tolerance for two tensors of a dtype; `epsilon` is its relative rounding step."""

    relative: float
    worst: float
    epsilon: float


_EXACT = Bounds(0.0, 0.0, 0.0)
BOUNDS = {
    "float64": Bounds(1e-9, 1e-8, 2.0**-52),
    "complex128": Bounds(1e-9, 1e-8, 2.0**-52),
    "float32": Bounds(1e-4, 1e-3, 2.0**-23),
    "complex64": Bounds(1e-4, 1e-3, 2.0**-23),
    "float16": Bounds(5e-3, 2e-2, 2.0**-10),
    "bfloat16": Bounds(2e-2, 1e-1, 2.0**-7),
    "float8_e4m3fn": Bounds(1e-1, 2.5e-1, 2.0**-3),
    "hifloat8": Bounds(1e-1, 2.5e-1, 2.0**-3),
    "float8_e5m2": Bounds(2e-1, 5e-1, 2.0**-2),
    "float6_e2m3": Bounds(1e-1, 2.5e-1, 2.0**-3),
    "float6_e3m2": Bounds(2e-1, 5e-1, 2.0**-2),
    "float4_e2m1": Bounds(5e-1, 1.0, 2.0**-1),
    "float8_e8m0": Bounds(5e-1, 1.0, 2.0**-1),
}


@functools.lru_cache(maxsize=1024)
def bounds_of(mine: str, golden: str, tolerance: float | None = None) -> Bounds:
    """Bounds for two dtypes: those of the coarser one; integers and bools must be equal.

    tolerance   replaces `relative`; `worst` is ten times that
    """
    coarser = max((BOUNDS.get(name, _EXACT) for name in (mine, golden)), key=lambda bounds: bounds.epsilon)
    if tolerance is None or coarser is _EXACT:
        return coarser
    return Bounds(tolerance, 10 * tolerance, coarser.epsilon)


def epsilon_of(dtype: str) -> float:
    """Relative rounding step of a dtype; 0 for those that are exact."""
    return BOUNDS.get(dtype, _EXACT).epsilon


def coarser(one: str, other: str) -> str:
    """The dtype with the larger rounding step; of two that are exact the first."""
    return max(one, other, key=epsilon_of)


def real_dtype(array: Array, name: str) -> str:
    """dtype that the numbers of a float32 tensor really have, where no file tells it: MindSpore stores bfloat16 as
    float32 in npy.

    Edges: recognised from 16 distinct values on, because zeros, ones and small integers fit into any float.
    """
    if name != "float32" or array.dtype != np.float32:
        return name
    sample = array.reshape(-1)[:_SAMPLE] if array.flags.c_contiguous else array.ravel()[:_SAMPLE]
    bits = np.ascontiguousarray(sample).view(np.uint32)
    if bits.size < _MIN_DISTINCT or (bits & 0xFFFF).any():
        return name
    return "bfloat16" if np.unique(bits & 0x007FFFFF).size >= _MIN_DISTINCT else name


@dataclass(frozen=True, slots=True)
class Errors:
    """Errors of a second run of the same precision against the reference."""

    relative: float = 0.0
    worst: float = 0.0
    mismatched: int = 0
    unequal: int = 0


def errors_of(pair: PairMetrics | None) -> Errors:
    """Errors of a pair; None stands for identical tensors."""
    if pair is None:
        return Errors()
    return Errors(pair.relative_error, pair.worst_relative_error, pair.mismatched, pair.unequal or 0)


def reason_to_differ(pair: PairMetrics, bounds: Bounds, yardstick: Errors | None = None) -> str:
    """Text why two tensors do not agree; "" when they do.

    yardstick   then an error counts only when it is larger than twice that one, and than a few roundings
    """
    if yardstick is not None:
        return _reason_by_yardstick(pair, bounds, yardstick)
    if pair.mismatched:
        return message("NaN or Inf in {count} places where the other has something else", count=pair.mismatched)
    if pair.unequal:
        return message("{unequal} of {count} elements differ", unequal=pair.unequal, count=pair.count)
    if pair.relative_error > bounds.relative:
        error, limit = pair.relative_error, bounds.relative
        return message("relative error {error:.3g} > {limit:.3g}", error=error, limit=limit)
    if pair.worst_relative_error > bounds.worst:
        error, limit = pair.worst_relative_error, bounds.worst
        return message("worst error {error:.3g} of the largest value > {limit:.3g}", error=error, limit=limit)
    return ""


def _reason_by_yardstick(pair: PairMetrics, bounds: Bounds, yardstick: Errors) -> str:
    if pair.mismatched > yardstick.mismatched:
        count, other_count = pair.mismatched, yardstick.mismatched
        return message("NaN or Inf in {count} places, {other} in the other run", count=count, other=other_count)
    if (pair.unequal or 0) > _YARDSTICK * yardstick.unequal:
        return message(
            "{unequal} of {count} elements differ, {other} in the other run",
            unequal=pair.unequal, count=pair.count, other=yardstick.unequal,
        )  # fmt: skip
    limits = (
        (message("relative error"), pair.relative_error, yardstick.relative, bounds.epsilon),
        (message("worst error"), pair.worst_relative_error, yardstick.worst, 4 * bounds.epsilon),
    )
    for name, error, other, least in limits:
        if error > max(least, _YARDSTICK * other):
            return message("{what} {error:.3g}, {other:.3g} in the other run", what=name, error=error, other=other)
    return ""


def is_noise(pair: PairMetrics, bounds: Bounds, scale: float) -> bool:
    """True for a difference no larger than some roundings of the operator's inputs, whose largest value is `scale`:
    what is left of sums that cancel has large relative errors and no meaning."""
    return pair.mismatched == 0 and not pair.unequal and 0 < pair.worst_error <= 4 * bounds.epsilon * scale


def largest(array: Array) -> float:
    """Largest finite absolute value; 0 for an empty tensor."""
    if array.size == 0 or array.dtype.kind not in "fVc":
        return 0.0
    with np.errstate(all="ignore"):
        sizes = np.abs(array.astype(np.complex128 if array.dtype.kind == "c" else np.float32))
    top = float(sizes.max())
    return top if math.isfinite(top) else float(np.max(sizes, initial=0.0, where=np.isfinite(sizes)))


def small_gradients(gradient: Array, before: Array, mine: Array, golden: Array) -> Array | None:
    """Which elements of a gradient are small beside others, where an optimizer that divides it by its own size made the
    same of the large ones; None where it did not. Steps of the small ones say where an epsilon stands, or are noise.

    All are float64, of one shape: the gradient, the parameter before the step, and after it in mine and golden.
    """
    large: Array = np.abs(gradient) >= np.quantile(np.abs(gradient), _LARGE_SHARE)
    step = float(np.abs(golden - before).max())
    return ~large if bool((np.abs(mine - golden)[large] <= _OF_A_STEP * step).all()) else None

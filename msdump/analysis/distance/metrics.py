"""Metrics of two tensors: the ten of msaccucmp, and further ones for the verdict.

    from msdump.analysis.distance.metrics import compare_arrays
    pair = compare_arrays(mine, golden)
    pair.cosine, pair.relative_error, metric_text(pair, "CosineSimilarity")

Source: msaccucmp, algorithms 0 to 9, measured on hand-made tensors; docs/metrics.md.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, SupportsFloat

import numpy as np

from msdump.analysis.distance import _pair_rows as pair_rows
from msdump.analysis.distance._pair_rows import EPSILON, PairRows
from msdump.errors import FormatError
from msdump.tensors.arrays import Array

# Number in `-alg` = index.
METRICS = (
    "CosineSimilarity",
    "MaxAbsoluteError",
    "AccumulatedRelativeError",
    "RelativeEuclideanDistance",
    "KullbackLeiblerDivergence",
    "StandardDeviation",
    "MeanAbsoluteError",
    "RootMeanSquareError",
    "MaxRelativeError",
    "MeanRelativeError",
)
SCALAR_NOTE = "This tensor is scalar."
_BOOL_NOTE = "Bool tensors have no differences; only cosine similarity is computed."
_ZERO_NOTE = "One of the tensors is all zero, so they have no angle."
_EMPTY_NOTE = "The tensor is empty."
_LARGEST = float(np.finfo(np.float32).max)
_FIELD_BY_METRIC = {
    "CosineSimilarity": "cosine",
    "MaxAbsoluteError": "max_absolute_error",
    "AccumulatedRelativeError": "accumulated_relative_error",
    "RelativeEuclideanDistance": "relative_euclidean_distance",
    "KullbackLeiblerDivergence": "divergence",
    "MeanAbsoluteError": "mean_absolute_error",
    "RootMeanSquareError": "root_mean_square_error",
    "MaxRelativeError": "max_relative_error",
    "MeanRelativeError": "mean_relative_error",
}


# Numbers below minus this, and so many times as large as all others, stand for minus infinity.
FILL = 1e3
_FAR = 1e3


@dataclass(frozen=True, slots=True)
class PairMetrics:
    """Two tensors of one size, "mine" against "golden".

    The ten metrics see float32, as msaccucmp does: a sum past its range is Inf, float64 is rounded first, complex
    numbers lose their imaginary part. `divergence` is None when it was not asked for.

    The other fields see the elements as they are, and only those that are finite on both sides:
    relative_error   |mine - golden| / |golden| as Euclidean norms; Inf when only golden is all zero. What stands for
                     minus infinity in both (a mask of -1e9) does not count
    worst_error      largest |mine - golden|, and worst_relative_error: the same against golden's largest value
    unequal          elements that differ; None for floats
    mismatched       elements where one side has a NaN or Inf and the other something else
    """

    count: int
    is_scalar: bool
    is_bool: bool
    cosine: float
    max_absolute_error: float
    accumulated_relative_error: float
    relative_euclidean_distance: float
    divergence: float | None
    mean_mine: float
    deviation_mine: float
    mean_golden: float
    deviation_golden: float
    mean_absolute_error: float
    root_mean_square_error: float
    max_relative_error: float
    mean_relative_error: float
    has_one_zero_norm: bool
    has_two_zero_norms: bool
    relative_error: float
    worst_error: float
    worst_relative_error: float
    unequal: int | None
    mismatched: int
    nan_mine: int
    inf_mine: int
    nan_golden: int
    inf_golden: int


def compare_arrays(mine: Array, golden: Array, has_divergence: bool = True, thread_count: int = 1) -> PairMetrics:
    """All metrics of two tensors in one pass over both, and one more for the divergence.

    Shapes:  any two of one size; elements are compared in C order, so shapes may differ.
    Dtypes:  any two numeric ones; sums are accumulated in float64, in an order that threads do not change.
    Edges:   the table of corner cases in docs/metrics.md; empty tensors are equal.
    Raises:  FormatError when the sizes differ.
    Source:  msaccucmp compare.
    """
    if mine.size != golden.size:
        raise FormatError(
            f"compare: expected tensors of one size, got {mine.size} elements {mine.shape} and {golden.size} "
            f"elements {golden.shape}."
        )
    is_scalar = all(size == 1 for size in mine.shape)
    is_bool = mine.dtype == np.bool_ or golden.dtype == np.bool_
    if mine.size == 0:
        return _empty(is_bool, has_divergence)
    x, y = _flat(mine), _flat(golden)
    rows = pair_rows.pair_rows(x, y, has_divergence, thread_count)
    with np.errstate(all="ignore"):
        divergence = _divergence(x, y, rows, thread_count) if has_divergence else None
        pair = _finish(rows, is_scalar, is_bool, divergence)
        kept = beside_fill(x, y) if pair.worst_error > pair.worst_relative_error * FILL else None
        if kept is None:
            return pair
        rest = _finish(pair_rows.pair_rows(x[kept], y[kept], False, thread_count), is_scalar, is_bool, None)
        errors = ("relative_error", "worst_error", "worst_relative_error")
        return dataclasses.replace(pair, **{name: getattr(rest, name) for name in errors})


def beside_fill(mine: Array, golden: Array) -> Array | None:
    """Where two tensors do not both hold the number that stands for minus infinity, by which a mask hides elements.

    Returns: None where they hold none.

    Edges: it is the lowest of both, below -1,000, and a thousand times as large as all others.
    """
    if not mine.dtype.kind == golden.dtype.kind == "f":
        return None
    lowest = golden.min()
    if not lowest < -FILL or mine.min() != lowest:
        return None
    kept: Array = (mine != lowest) | (golden != lowest)
    others = golden[kept]
    if kept.all() or not others.size or not float(np.abs(others).max()) * _FAR <= -float(lowest):
        return None
    return kept


def metric_text(pair: PairMetrics, metric: str) -> tuple[str, str]:
    """(cell, note) of one metric as msaccucmp prints them.

    Edges: a metric that msaccucmp cannot compute is "NaN" with a note; one that it computes from NaN is "nan".
    """
    if metric == "StandardDeviation":
        if pair.is_bool:
            return "NaN", _BOOL_NOTE
        mine = f"({_three(pair.mean_mine)};{_three(pair.deviation_mine)})"
        return f"{mine},({_three(pair.mean_golden)};{_three(pair.deviation_golden)})", ""
    if metric == "CosineSimilarity":
        return _cosine_text(pair)
    if pair.is_bool:
        return "NaN", _BOOL_NOTE
    if pair.count == 0 and metric in ("MaxAbsoluteError", "KullbackLeiblerDivergence", "MaxRelativeError"):
        return "NaN", _EMPTY_NOTE
    value = getattr(pair, _FIELD_BY_METRIC[metric])
    return ("NaN", "It was not asked for.") if value is None else (f"{value:.6f}", "")


def _cosine_text(pair: PairMetrics) -> tuple[str, str]:
    if pair.is_scalar and pair.count:
        return "1.000000", SCALAR_NOTE
    if pair.has_two_zero_norms:
        return "1.0", ""
    if pair.has_one_zero_norm:
        return "NaN", _ZERO_NOTE
    return f"{pair.cosine:.6f}", ""


def _three(value: float) -> str:
    return f"{0.0 if abs(value) < 0.001 else value:.3f}"


# -- from rows to numbers ------------------------------------------------------------------------------------------


def _flat(array: Array) -> Array:
    """One contiguous axis of native elements in C order."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat if flat.dtype.isnative else flat.astype(flat.dtype.newbyteorder("="))


def _single(value: SupportsFloat) -> float:
    """A float64 sum as float32 would hold it: Inf past its range."""
    number = float(value)
    if math.isfinite(number) and abs(number) > _LARGEST:
        return math.copysign(math.inf, number)
    return number


def _finish(rows: PairRows, is_scalar: bool, is_bool: bool, divergence: float | None) -> PairMetrics:
    count = rows.size
    total = rows.sums.sum(axis=0)
    worst = rows.keys[:, pair_rows.WORST_D].max(), rows.keys[:, pair_rows.WORST_R].max()
    largest, largest_relative = (pair_rows.value_of_key(int(key)) for key in worst)
    distance, norm_x, norm_y = (
        math.sqrt(_single(total[column])) if not math.isnan(total[column]) else math.nan
        for column in (pair_rows.DD, pair_rows.XX, pair_rows.YY)
    )
    absolute, relative = _single(total[pair_rows.D]), _single(total[pair_rows.R])
    mean_x, deviation_x = _mean_and_deviation(rows, (pair_rows.X, pair_rows.X_SPREAD, pair_rows.XX))
    mean_y, deviation_y = _mean_and_deviation(rows, (pair_rows.Y, pair_rows.Y_SPREAD, pair_rows.YY))
    zero_norms = int(norm_x <= EPSILON) + int(norm_y <= EPSILON)
    exact = _exact_fields(rows)
    return PairMetrics(
        count=count,
        is_scalar=is_scalar,
        is_bool=is_bool,
        cosine=1.0 if is_scalar or zero_norms == 2 else math.nan if zero_norms else _cosine(total, norm_x, norm_y),
        max_absolute_error=largest,
        accumulated_relative_error=relative,
        relative_euclidean_distance=0.0 if norm_y <= EPSILON else _quotient(distance, norm_y),
        divergence=divergence,
        mean_mine=mean_x,
        deviation_mine=deviation_x,
        mean_golden=mean_y,
        deviation_golden=deviation_y,
        mean_absolute_error=absolute / count,
        root_mean_square_error=math.sqrt(_single(total[pair_rows.DD]) / count) if distance == distance else math.nan,
        max_relative_error=largest_relative,
        mean_relative_error=relative / count,
        has_one_zero_norm=zero_norms == 1,
        has_two_zero_norms=zero_norms == 2,
        **exact,
    )


def _cosine(total: Array, norm_x: float, norm_y: float) -> float:
    dot = float(total[pair_rows.XY])
    squares = float(total[pair_rows.XX]) * float(total[pair_rows.YY])
    if not math.isfinite(squares):
        return math.nan
    if math.isinf(norm_x) or math.isinf(norm_y):
        return 0.0  # each element over an infinite norm
    return max(-1.0, min(1.0, dot / math.sqrt(squares)))


def _quotient(a: float, b: float) -> float:
    return float(np.float64(a) / np.float64(b))


def _mean_and_deviation(rows: PairRows, columns: tuple[int, int, int]) -> tuple[float, float]:
    """Population mean and standard deviation, merged over chunks without cancellation."""
    total, spread, squares = (rows.sums[:, column] for column in columns)
    counts = np.full(len(total), pair_rows.CHUNK, np.float64)
    counts[-1] = rows.size - pair_rows.CHUNK * (len(total) - 1)
    if not np.isfinite(squares).all():
        # Which of NaN, +Inf and -Inf are there decides the mean; there is no deviation.
        top, low = (float(pair_rows.value_of_key(int(key))) for key in _extreme_keys(rows, columns[0]))
        has_nan = math.isnan(top) or math.isnan(low) or (math.isinf(top) and math.isinf(low))
        return (math.nan if has_nan else top if math.isinf(top) else low), math.nan
    mean = float(total.sum() / rows.size)
    inner = np.maximum(spread, 0.0).sum()
    outer = (counts * np.square(total / counts - mean)).sum()
    return mean, math.sqrt(float(inner + outer) / rows.size)


def _extreme_keys(rows: PairRows, column: int) -> tuple[int, int]:
    """Keys of the largest and smallest value of the side whose sums stand in `column`."""
    top, low = (pair_rows.TOP_X, pair_rows.LOW_X) if column == pair_rows.X else (pair_rows.TOP_Y, pair_rows.LOW_Y)
    return int(rows.keys[:, top].max()), int(rows.keys[:, low].min())


def _exact_fields(rows: PairRows) -> dict[str, Any]:
    exact = rows.exact
    total = exact.sum(axis=0)
    worst, top = float(exact[:, pair_rows.E_WORST].max()), float(exact[:, pair_rows.E_TOP].max())
    distance, size = math.sqrt(total[pair_rows.E_DD]), math.sqrt(total[pair_rows.E_YY])
    return {
        "relative_error": _ratio(distance, size),
        "worst_error": worst,
        "worst_relative_error": _ratio(worst, top),
        "unequal": int(total[pair_rows.E_UNEQUAL]) if rows.is_whole else None,
        "mismatched": int(total[pair_rows.E_MISMATCH]),
        "nan_mine": int(total[pair_rows.NAN_X]),
        "inf_mine": int(total[pair_rows.INF_X]),
        "nan_golden": int(total[pair_rows.NAN_Y]),
        "inf_golden": int(total[pair_rows.INF_Y]),
    }


def _ratio(error: float, size: float) -> float:
    if error == 0:
        return 0.0
    return error / size if size else math.inf


def _divergence(x: Array, y: Array, rows: PairRows, thread_count: int) -> float:
    """Sum of p ln(p / q), p and q being the scaled, floored and normed values of mine and golden."""
    values = [
        pair_rows.value_of_key(key) for column in (pair_rows.X, pair_rows.Y) for key in _extreme_keys(rows, column)
    ]
    if not all(math.isfinite(value) for value in values):
        return math.nan
    ranges = [_single(values[0] - values[1]), _single(values[2] - values[3])]
    if math.inf in ranges:
        return math.nan
    lows, extents = (values[1], values[3]), (ranges[0], ranges[1])
    sum_x, sum_y, total = (
        float(part) for part in pair_rows.divergence_rows(x, y, lows, extents, thread_count).sum(axis=0)
    )
    if math.isinf(_single(sum_x)) or math.isinf(_single(sum_y)):
        return math.nan
    # Never negative but for rounding.
    result = max(0.0, total / sum_x - math.log(sum_x / sum_y))
    return 0.0 if result < EPSILON else result


def _empty(is_bool: bool, has_divergence: bool) -> PairMetrics:
    nan = math.nan
    return PairMetrics(
        count=0,
        is_scalar=False,
        is_bool=is_bool,
        cosine=1.0,
        max_absolute_error=nan,
        accumulated_relative_error=0.0,
        relative_euclidean_distance=0.0,
        divergence=nan if has_divergence else None,
        mean_mine=nan,
        deviation_mine=nan,
        mean_golden=nan,
        deviation_golden=nan,
        mean_absolute_error=nan,
        root_mean_square_error=nan,
        max_relative_error=nan,
        mean_relative_error=nan,
        has_one_zero_norm=False,
        has_two_zero_norms=True,
        relative_error=0.0,
        worst_error=0.0,
        worst_relative_error=0.0,
        unequal=0,
        mismatched=0,
        nan_mine=0,
        inf_mine=0,
        nan_golden=0,
        inf_golden=0,
    )

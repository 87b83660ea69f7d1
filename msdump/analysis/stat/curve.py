"""Curves of a statistic over the layers, operators or iterations of a dump."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from msdump.analysis.stat.rows import StatisticReport, TensorStatistics
from msdump.errors import ConfigError, did_you_mean
from msdump.formats.statistic_row import StatisticRow
from msdump.statistics.stats import Statistics
from msdump.tensors.records import OUTPUT

LAYER, OPERATOR, ITERATION, RANK = "layer", "operator", "iteration", "rank"
AXES = (LAYER, OPERATOR, ITERATION, RANK)


@dataclass(frozen=True, slots=True)
class Curve:
    """Names in their order, and a number for each; NaN where none is known or one of them is NaN."""

    names: tuple[str, ...]
    values: tuple[float, ...]


def _norm(values: Sequence[float]) -> float:
    return math.sqrt(math.fsum(value * value for value in values)) if all(map(math.isfinite, values)) else math.nan


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if all(map(math.isfinite, values)) else math.nan


def _largest(values: Sequence[float]) -> float:
    return math.nan if any(map(math.isnan, values)) else max(values)


def _least(values: Sequence[float]) -> float:
    return math.nan if any(map(math.isnan, values)) else min(values)


# How the statistics of several tensors are joined: as that of all their elements, where the statistics tell it.
JOINERS: dict[str, Callable[[Sequence[float]], float]] = {
    "l2norm": _norm,
    "max": _largest,
    "min": _least,
    "avg": _mean,
    "nan": math.fsum,
    "negative_inf": math.fsum,
    "positive_inf": math.fsum,
    "zero": math.fsum,
}


def curve(report: StatisticReport, statistic: str = "l2norm", by: str = LAYER) -> Curve:
    """A statistic of the outputs of operators, joined for each layer, operator, iteration or rank.

    by       LAYER: modules around the operators; those around none come under their own names. OPERATOR: full names
    Edges:   means are joined as the mean of the means; parameters are left out; numbers of several steps that come
             under one name are joined too.
    Raises:  ConfigError for an unknown statistic or axis, and where no output has that statistic.
    """
    if statistic not in JOINERS:
        advice = did_you_mean(statistic, JOINERS)
        raise ConfigError(f"--y: expected one of {', '.join(JOINERS)}, got {statistic}. {advice}".rstrip())
    if by not in AXES:
        raise ConfigError(f"--by: expected one of {', '.join(AXES)}, got {by}. {did_you_mean(by, AXES)}".rstrip())
    groups: dict[str, list[float]] = {}
    for row in _outputs(report.rows):
        value = getattr(row.numbers, statistic)
        if value is not None:
            groups.setdefault(_name(row, by), []).append(float(value))
    if not groups:
        raise ConfigError(
            f"--y: expected a statistic that the dump has, got {statistic}. Dump tensors, or that column."
        )
    names = sorted(groups, key=int) if by in (ITERATION, RANK) else list(groups)
    return Curve(tuple(names), tuple(JOINERS[statistic](groups[name]) for name in names))


def usual_statistic(numbers: Iterable[Statistics | StatisticRow | None]) -> str:
    """What to draw where no statistic was named: the l2norm, or the largest element where files have no l2norm, as a
    statistic.csv of the classic columns and the default of ACL's csv have none."""
    return "l2norm" if any(one is not None and one.l2norm is not None for one in numbers) else "max"


def _outputs(rows: Iterable[TensorStatistics]) -> Iterator[TensorStatistics]:
    """Without parameters, and without memory that was never written."""
    for row in rows:
        operator = row.operator
        if operator is not None and not operator.is_parameter and not row.is_unset and row.tensor.io == OUTPUT:
            yield row


def _name(row: TensorStatistics, by: str) -> str:
    assert row.operator is not None  # rows of `_outputs` have one
    if by == ITERATION:
        return str(row.step.iteration or 0)
    if by == RANK:
        return str(row.step.rank_id or 0)
    return row.role.layer or row.operator.label if by == LAYER else row.operator.label

"""Statistics of tensors side by side: of one graph over its iterations, of one step over its ranks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from msdump.analysis.overview.contents import ExportedOperator
from msdump.analysis.overview.health import HealthOfDump
from msdump.analysis.stat.rows import TensorStatistics
from msdump.analysis.steps import StepKey

STATISTICS = ("max", "min", "avg", "l2norm", "nan", "zero")
MAX_CELLS = 100_000  # of one statistic: what a page shows at a glance and a file has room for
_Name = tuple[str, str, str]
_DIGITS = 6


def series(
    steps: Sequence[tuple[StepKey, Sequence[ExportedOperator]]], columns: Sequence[int], health: HealthOfDump
) -> dict[str, Any]:
    """One row for each tensor that at least one step has, one column for each step.

    steps    in the order of the columns
    columns  what the steps are called: iterations or ranks
    Edges:   with more cells than MAX_CELLS the healthiest tensors are left out, and of these the last ones; `left_out`
             counts them. A step that has not the tensor has None. Numbers have six digits.
    """
    found: dict[_Name, list[TensorStatistics | None]] = {}
    operators: dict[_Name, int] = {}
    for column, (_, step) in enumerate(steps):
        for operator in step:
            for row in operator.tensors:
                name = operator.operator.label, row.tensor.io, row.tensor.slot_text
                found.setdefault(name, [None] * len(steps))[column] = row
                operators.setdefault(name, operator.number)
    worst = {name: min(health.of(row).rank for row in rows if row is not None) for name, rows in found.items()}
    room = max(1, MAX_CELLS // max(1, len(steps)))
    order = {name: position for position, name in enumerate(found)}
    kept = sorted(sorted(found, key=lambda name: (worst[name], order[name]))[:room], key=order.__getitem__)
    firsts = {name: next(row for row in found[name] if row is not None) for name in kept}
    return {
        "columns": list(columns),
        "tensors": {
            "operator": [operators[name] for name in kept],
            "name": [name[0] for name in kept],
            "io": [name[1] for name in kept],
            "slot": [name[2] for name in kept],
            "parameter": [firsts[name].role.parameter for name in kept],
            "is_gradient": [firsts[name].role.is_gradient for name in kept],
            "health": [
                min((health.of(row) for row in found[name] if row is not None), key=_rank).value for name in kept
            ],
        },
        "statistics": {
            statistic: [[_number(row, statistic) for row in found[name]] for name in kept] for statistic in STATISTICS
        },
        "left_out": len(found) - len(kept),
    }


def _rank(health: Any) -> int:
    return int(health.rank)


def _number(row: TensorStatistics | None, statistic: str) -> float | int | str | None:
    value = None if row is None else getattr(row.numbers, statistic)
    if value is None or isinstance(value, int):
        return value
    return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else str(value)

"""The steps of a dump in the order in which they ran, with the numbers of all tensors: what findings are made of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msdump.analysis.find._health import Damaged, HealthTable
from msdump.analysis.graph_info import GraphFiles
from msdump.analysis.steps import StatisticSteps, Step, nothing_selected, read_statistic_steps, read_steps

if TYPE_CHECKING:
    from msdump.analysis._payload import Progress
    from msdump.analysis.measurements import Measurements
    from msdump.formats.dump_dir import DumpDir
    from msdump.formats.dump_tensor import DumpedTensor
    from msdump.formats.selection import StepSelection


@dataclass(frozen=True, slots=True)
class MeasuredSteps:
    """Of some steps.   table: rows of those that have statistics alone"""

    steps: list[Step]
    health: HealthTable
    table: StatisticSteps
    graphs: GraphFiles
    damaged: Damaged


def measured_steps(
    dump: DumpDir,
    selection: StepSelection,
    measurements: Measurements | None = None,
    thread_count: int | None = None,
    progress: Progress | None = None,
) -> MeasuredSteps:
    """Statistics are used where a step has them; tensors are read where it has none.

    Raises: ConfigError when there is nothing to look at.
    """
    with dump.listed_once():
        graphs, health = GraphFiles(dump), HealthTable()
        table, damaged = read_statistic_steps(dump, selection, every_run=True)
        measured = list(table.steps)
        health.add_rows(table.row, _tensors(measured), damaged)
        keys = {step.key for step in measured}
        others = [step for step in read_steps(dump, selection, every_run=True) if step.key not in keys]
    health.add_tensors(_tensors(others), damaged, thread_count, progress, measurements)
    steps = sorted([*measured, *others], key=_when)
    if not any(step.operators for step in steps):
        raise nothing_selected(dump, selection, expected="tensors or statistics")
    return MeasuredSteps(steps, health, table, graphs, damaged)


def _when(step: Step) -> tuple[int, ...]:
    """Order in time: what happens in one iteration on two ranks happens together."""
    key = step.key
    parts = (step.time_us, key.iteration, key.rank_id, step.began_us, key.graph_id)
    return tuple(-1 if part is None else part for part in parts)


def _tensors(steps: Iterable[Step]) -> list[DumpedTensor]:
    return [tensor for step in steps for operator in step.operators for _, _, tensor in operator.all_tensors()]

"""Parameters that a training has not changed: updates that the dtype rounds away, a branch that nothing reaches.

from msdump.analysis.overview.unchanged import unchanged_parameters
for parameter in unchanged_parameters("dump").parameters:
    print(parameter.name, parameter.largest_gradient)
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from msdump.analysis._payload import Progress
from msdump.analysis.find.measured import measured_steps
from msdump.analysis.learning.series import Series
from msdump.analysis.learning.updates import never_changes
from msdump.analysis.missing import lost_of
from msdump.analysis.steps import Step, opened
from msdump.errors import FormatError, NothingFoundError
from msdump.formats.dump_dir import DumpDir
from msdump.formats.selection import StepSelection
from msdump.formats.sidecars import Lost


@dataclass(frozen=True, slots=True)
class Unchanged:
    """A parameter that was the same after each of several iterations.

    iterations        first and last one in which it was dumped
    largest_gradient  largest absolute value of its gradients; None where the dump shows none, as of a frozen one
    is_stepped        whether an optimizer steps it; None where the dump does not tell
    """

    name: str
    rank_id: int | None
    dtype: str
    shape: tuple[int, ...]
    iterations: tuple[int, int]
    largest_gradient: float | None
    is_stepped: bool | None = None


@dataclass(frozen=True, slots=True)
class UnchangedReport:
    """Parameters without a change, of how many.

    damaged  (file, what is wrong) of what could not be measured
    lost     what dumps that are not complete lack, by rank
    """

    parameters: tuple[Unchanged, ...]
    parameter_count: int
    damaged: tuple[tuple[str, FormatError], ...]
    lost: Mapping[int, Lost]


def unchanged_parameters(
    dump: DumpDir | str | os.PathLike[str],
    *,
    rank: int | Collection[int] | None = None,
    graph: int | Collection[int] | None = None,
    iteration: int | Collection[int] | None = None,
    thread_count: int | None = None,
    progress: Progress | None = None,
) -> UnchangedReport:
    """Which parameters are the same after all iterations of a dump.

    Edges:  equal statistics count as equal bytes. A buffer of floats counts as a parameter.
    Raises: NothingFoundError where no parameter was dumped in two iterations; FormatError when there is no dump.
    """
    dump = opened(dump)
    selection = StepSelection(rank, graph, iteration)
    measured = measured_steps(dump, selection, None, thread_count, progress)
    lost, learning = lost_of(dump, selection), dump.learning
    ranks: dict[int | None, list[Step]] = {}
    for step in measured.steps:
        ranks.setdefault(step.key.rank_id, []).append(step)
    found: list[Unchanged] = []
    count = 0
    for rank_id, steps in ranks.items():
        series = Series(steps, measured.health, measured.graphs, learning.get(rank_id or 0))
        several = {name: rows for name, rows in series.parameters.items() if len(rows) > 1}
        count += len(several)
        for name, rows in several.items():
            if not never_changes(series, name):
                continue
            first, last = min(rows), max(rows)
            tensor, row = rows[last][1], series.rows.get(name)
            gradients = [series.largest(made) for made in series.gradients.get(name, {}).values()]
            found.append(
                Unchanged(
                    name,
                    rank_id,
                    tensor.true_dtype,
                    tuple(tensor.original_shape or tensor.shape),
                    (first, last),
                    max(gradients, default=None),
                    None if row is None else row.optimizer is not None,
                )
            )
    if not count:
        raise NothingFoundError(
            f"{dump.path}: expected parameters of two iterations, got none. Parameters are dumped with "
            '"kernels": [] and all iterations.'
        )
    return UnchangedReport(tuple(found), count, (*dump.damaged, *measured.damaged), lost)

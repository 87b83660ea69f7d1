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
from msdump.analysis.graph_info import GraphFiles
from msdump.analysis.ranks.subjects import GRADIENT_OF, subjects_of
from msdump.analysis.stat.rows import TensorStatistics
from msdump.analysis.stat.statistics import tensor_statistics
from msdump.analysis.steps import opened
from msdump.errors import FormatError, NothingFoundError
from msdump.formats.dump_dir import DumpDir
from msdump.formats.learning_json import Learning
from msdump.formats.sidecars import Lost
from msdump.tensors.records import OUTPUT


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
    """Which parameters hold the same bytes after all iterations of a dump.

    Edges:  where there are statistics only, equal statistics count as equal bytes. A buffer counts as a parameter.
    Raises: NothingFoundError where no parameter was dumped in two iterations; FormatError when there is no dump.
    """
    opened_dump = opened(dump)
    report = tensor_statistics(
        opened_dump, rank=rank, graph=graph, iteration=iteration, has_md5=True, thread_count=thread_count,
        progress=progress,
    )  # fmt: skip
    contents: dict[tuple[int | None, str], dict[int, TensorStatistics]] = {}
    gradients: dict[tuple[int | None, str], float] = {}
    learned = _Learned(opened_dump.learning)
    for row, subject in zip(report.rows, subjects_of(report.rows, GraphFiles(opened_dump)), strict=True):
        if row.step.iteration is None:
            continue
        subject = learned.gradient(row) or subject
        if subject is None:
            continue
        if subject.startswith(GRADIENT_OF):
            name = row.step.rank_id, subject.removeprefix(GRADIENT_OF)
            gradients[name] = max(gradients.get(name, 0.0), _largest(row))
        elif row.operator is not None and row.operator.is_parameter:
            # The last graph of an iteration shows what the iteration has left.
            contents.setdefault((row.step.rank_id, subject), {})[row.step.iteration] = row
    several = {name: rows for name, rows in contents.items() if len(rows) > 1}
    if not several:
        raise NothingFoundError(
            f"{opened_dump.path}: expected parameters of two iterations, got none. Parameters are dumped with "
            '"kernels": [] and all iterations.'
        )
    found = [
        Unchanged(
            name,
            rank_id,
            rows[last].tensor.true_dtype,
            rows[last].shape,
            (first, last),
            gradients.get((rank_id, name)),
            learned.is_stepped(rank_id, name),
        )
        for (rank_id, name), rows in several.items()
        for first, last in [(min(rows), max(rows))]
        if len({_content(row) for row in rows.values()}) == 1
    ]
    return UnchangedReport(tuple(found), len(several), report.damaged, report.lost)


class _Learned:
    """What a dump tells of gradients and optimizers, by rank."""

    def __init__(self, learning: Mapping[int, Learning]) -> None:
        self._rows = {rank: {row.name: row for row in one.parameters} for rank, one in learning.items()}
        self._outputs: dict[tuple[int, int], dict[tuple[int | None, str | None, int | None], str]] = {}

    def gradient(self, row: TensorStatistics) -> str | None:
        """`gradient of` a parameter, where a tensor is one."""
        rank, graph, iteration = row.step
        rows = self._rows.get(rank or 0)
        if rows is None or iteration is None or row.operator is None or row.tensor.io != OUTPUT:
            return None
        at = rank or 0, iteration
        if at not in self._outputs:
            spans = ((name, one.at(iteration)) for name, one in rows.items())
            self._outputs[at] = {
                (span.graph, span.operator, span.slot): name for name, span in spans if span is not None and span.has
            }
        name = self._outputs[at].get((graph, row.operator.label, row.tensor.slot or 0))
        return None if name is None else f"{GRADIENT_OF}{name}"

    def is_stepped(self, rank: int | None, name: str) -> bool | None:
        row = self._rows.get(rank or 0, {}).get(name)
        return None if row is None else row.optimizer is not None


def _content(row: TensorStatistics) -> str:
    numbers = row.numbers
    return row.md5 or repr((numbers.max, numbers.min, numbers.avg, numbers.l2norm))


def _largest(row: TensorStatistics) -> float:
    return max((abs(value) for value in (row.numbers.max, row.numbers.min) if value is not None), default=0.0)

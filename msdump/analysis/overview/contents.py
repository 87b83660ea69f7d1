"""Parts of a dump that exports read, each once and only when a form needs it."""

from __future__ import annotations

import copy
import os
import tempfile
from collections.abc import Callable
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any

from msdump.analysis.compare.dumps import compare_dumps
from msdump.analysis.compare.mapping import OperatorMap
from msdump.analysis.compare.result import Comparison
from msdump.analysis.compare.statistics import compare_statistics
from msdump.analysis.find.nan import NonFiniteReport, find_non_finite
from msdump.analysis.graph_info import GraphNode
from msdump.analysis.measurements import Measurements
from msdump.analysis.overview.health import Health, HealthOfDump
from msdump.analysis.overview.listing import bytes_on_disk
from msdump.analysis.stat.rows import StatisticReport, TensorStatistics
from msdump.analysis.stat.statistics import tensor_statistics
from msdump.analysis.steps import Operator, StepKey, opened
from msdump.errors import FormatError, MsdumpError
from msdump.formats.dump_dir import DumpDir
from msdump.formats.selection import ALL_STEPS, StepSelection
from msdump.graph.types import SourceLine

if TYPE_CHECKING:
    from msdump.analysis.ranks.job import JobReport

DumpPath = DumpDir | str | os.PathLike[str]


class ExportedOperator:
    """One operator of one step with the statistics of its tensors.

    number    in its step, from 0 on, in execution order
    tensors   inputs first
    healths   of each of them
    """

    __slots__ = ("healths", "node", "number", "operator", "step", "tensors")

    def __init__(self, rows: list[TensorStatistics], health: HealthOfDump) -> None:
        first = rows[0]
        assert first.operator is not None  # rows of a dump have one
        self.step: StepKey = first.step
        self.operator: Operator = first.operator
        self.number: int = first.number
        self.node: GraphNode | None = first.node
        self.tensors: tuple[TensorStatistics, ...] = tuple(rows)
        self.healths: tuple[Health, ...] = tuple(map(health.of, rows))

    @property
    def health(self) -> Health:
        """Of the worst of its tensors."""
        return min(self.healths, key=lambda health: health.rank)

    @property
    def line(self) -> SourceLine | None:
        """The user's line that made it, where the dump tells it."""
        return None if self.node is None else self.node.own_line


class Contents:
    """A dump, and maybe one to compare it with, as the exports see them. One thread.

    The parameters are those of `export`; `measurements` may be shared with others, and `is_compared` False leaves out
    the comparison, which reads both dumps; `is_searched` False finds no NaN, as nothing is measured yet; `is_job` True
    asks the ranks of a job what they disagree about, which reads the dump once more.
    """

    def __init__(
        self,
        dump: DumpPath,
        golden: DumpPath | None = None,
        selection: StepSelection = ALL_STEPS,
        *,
        mapping: OperatorMap | str | os.PathLike[str] | None = None,
        measurements: Measurements | None = None,
        is_compared: bool = True,
        is_searched: bool = True,
        is_job: bool = False,
        thread_count: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.dump = opened(dump)
        self.golden = None if golden is None else opened(golden)
        self._mapping = mapping
        self._selection = selection
        self._steps: dict[str, Any] = {
            "rank": selection.rank,
            "graph": selection.graph,
            "iteration": selection.iteration,
        }
        self._measurements = Measurements() if measurements is None else measurements
        self._is_compared = is_compared
        self._is_searched = is_searched
        self._is_job = is_job
        self._how: dict[str, Any] = {"thread_count": thread_count, "progress": progress}

    @cached_property
    def statistics(self) -> StatisticReport:
        """Raises: as `tensor_statistics`."""
        return tensor_statistics(self.dump, measurements=self._measurements, **self._steps, **self._how)

    @cached_property
    def non_finite(self) -> NonFiniteReport:
        """Raises: as `find_non_finite`."""
        if not self._is_searched:
            return NonFiniteReport((), (), 0, 0, ())
        return find_non_finite(self.dump, measurements=self._measurements, **self._steps, **self._how)

    @cached_property
    def comparison(self) -> Comparison | None:
        """None without a golden dump or where it is left out; of statistics where one of the dumps has no tensors.

        Raises: as `compare_dumps` and `compare_statistics`.
        """
        if self.golden is None or not self._is_compared:
            return None
        if has_tensors(self.dump) and has_tensors(self.golden):
            return compare_dumps(self.dump, self.golden, mapping=self._mapping, **self._steps, **self._how)
        return compare_statistics(self.dump, self.golden, mapping=self._mapping, **self._steps)

    @cached_property
    def job(self) -> JobReport | None:
        """What the ranks disagree about; None where that is not asked, or there is one rank, or no duckdb."""
        if not self._is_job or not self.has_ranks:
            return None
        from msdump.analysis.ranks.job import job_report, write_tables
        from msdump.analysis.ranks.questions import Tables

        with tempfile.TemporaryDirectory(prefix="msdump-tables-") as folder:
            try:
                write_tables([self.dump.path], folder, self._selection, engine="threads", jobs=1)
                return job_report(Tables(folder), [self.dump.path])
            except MsdumpError:
                return None  # the rest of the report needs none of it

    def with_job(self) -> Contents:
        """The same, with what was read up to now, and with `is_job`."""
        other = copy.copy(self)
        other._is_job = True
        for name in ("job", "health", "operators"):
            vars(other).pop(name, None)
        return other

    @property
    def has_ranks(self) -> bool:
        """Whether there are several ranks to ask."""
        return len({row.step.rank_id for row in self.statistics.rows}) > 1

    @cached_property
    def golden_contents(self) -> Contents | None:
        """The golden dump as one of its own, of the same steps."""
        if self.golden is None:
            return None
        return Contents(self.golden, selection=self._selection, measurements=self._measurements, **self._how)

    @cached_property
    def health(self) -> HealthOfDump:
        """Raises: as `non_finite` and `comparison`."""
        outvoted = () if self.job is None else self.job.outvoted
        return HealthOfDump(self.non_finite, self.comparison, lambda: self.statistics.rows, outvoted)

    @cached_property
    def operators(self) -> tuple[ExportedOperator, ...]:
        """Operators with their tensors, step by step, in execution order."""
        groups = groupby(self.statistics.rows, key=lambda row: (row.step, row.number))
        return tuple(ExportedOperator(list(rows), self.health) for _, rows in groups)

    @cached_property
    def disk_bytes(self) -> int | None:
        """As `bytes_on_disk`, of the selected steps."""
        return bytes_on_disk(self.dump, self._selection)

    @property
    def damaged(self) -> list[tuple[str, FormatError]]:
        """Files that could not be read by what was asked for up to now, each once."""
        parts = [part.damaged for name in ("statistics", "non_finite", "comparison") if (part := vars(self).get(name))]
        problems = {(path, str(error)): error for part in parts for path, error in part}
        return [(path, error) for (path, _), error in problems.items()]


def has_tensors(dump: DumpDir) -> bool:
    """Whether a dump holds tensors, and not only their statistics.

    Edges: constants, which a dump of statistics has as files too, are no tensors of a step.
    """
    return any(not file.levels.is_constants for file in dump.files())

"""Report on a job: write its tables with any engine, and find tensors on which its ranks disagree."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from msdump.analysis.ranks.questions import TOLERANCE, Answer, Tables
from msdump.analysis.ranks.shardings import ShardingRules
from msdump.analysis.ranks.tables import Part, units_of, write_part
from msdump.analysis.ranks.work import DASK, PROCESSES, each_unit, on_each_worker, share_of
from msdump.errors import ConfigError, FormatError, MsdumpError
from msdump.formats.dump_dir import DumpDir
from msdump.formats.selection import ALL_STEPS, StepSelection
from msdump.tables.messages import message

_Value = TypeVar("_Value", int, str)


def write_tables(
    dumps: Sequence[str | os.PathLike[str]],
    folder: str | os.PathLike[str],
    selection: StepSelection = ALL_STEPS,
    *,
    engine: str = PROCESSES,
    jobs: int | None = None,
    part: str | None = None,
    is_forced: bool = False,
    rules: ShardingRules | None = None,
    is_local: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> list[Part]:
    """Measure the ranks and iterations of a job, a Parquet file for each; what is there already stays.

    dumps   folders of one job, as of several machines
    engine, jobs, part, progress  as of `each_unit` and `share_of`
    rules   shardings of tensors of which layout.json says nothing
    is_local  the path leads to another disk on each machine: each worker measures what it finds there
    Raises: as `units_of`, `each_unit` and `share_of`. What a unit lacks is reported in its `Part`.
    """
    if is_local and engine.partition("=")[0] == DASK:
        own = partial(_own_tables, dumps, folder, selection, part, is_forced, rules)
        found = {one.path: one for each in on_each_worker(own, engine) for one in each}
        if not found:
            raise ConfigError(f"--local: expected a dump at {', '.join(map(str, dumps))} on some machine, got none.")
        return [found[path] for path in sorted(found)]
    units = share_of(units_of(dumps, selection), part)
    measure = partial(write_part, folder=os.fspath(folder), is_forced=is_forced, rules=rules)
    return each_unit(measure, units, engine, jobs, progress)


def _own_tables(
    dumps: Sequence[str | os.PathLike[str]],
    folder: str | os.PathLike[str],
    selection: StepSelection,
    part: str | None,
    is_forced: bool,
    rules: ShardingRules | None,
) -> list[Part]:
    """On a worker: the tables of the dumps on its machine, maybe none."""
    try:
        units = share_of(units_of(dumps, selection), part)
    except MsdumpError:
        return []
    return [write_part(unit, os.fspath(folder), is_forced, rules) for unit in units]


@dataclass(frozen=True, slots=True)
class JobReport:
    """Report on a job.

    hosts      rank -> machine, where it is known
    gaps       one sentence for each thing that is missing, or belongs to something else
    notes      one sentence for each thing that is odd and spoils no answer: order is by iteration and operator
    unequal    tensors that must be equal and are not, in logical time
    messages   messages that arrived as something else than was sent
    outliers   tensors of ranks that stand out
    first      of each rank the first tensor that differs from the golden job's; None without one
    compared   how many tensors of groups of ranks, and messages, there were to compare
    undeclared parameters and buffers that differ between replicas though nothing declares them equal, each once
    unhashed   how many of those compared have no hash: their statistics were compared
    """

    hosts: dict[int, str | None]
    gaps: tuple[str, ...]
    notes: tuple[str, ...]
    unequal: Answer
    messages: Answer
    outliers: Answer
    first: Answer | None
    compared: int
    damaged: tuple[tuple[str, FormatError], ...]
    undeclared: Answer
    unhashed: int

    @property
    def has_finding(self) -> bool:
        """Whether ranks disagree, or differ from the golden job."""
        answers = (self.unequal, self.messages, self.undeclared, self.first)
        return any(answer is not None and answer.rows for answer in answers)

    @property
    def first_disagreement(self) -> dict[str, Any] | None:
        """Of the tensors of the first iteration that has some the first with a majority, else the first at all."""
        rows = rows_as_values(self.unequal)
        of_first = [row for row in rows if row["iteration"] == rows[0]["iteration"]]
        return next((row for row in of_first if row["has_majority"]), rows[0] if rows else None)

    @property
    def outvoted(self) -> set[tuple[int | None, int | None, str, str | None, str | None]]:
        """(rank, iteration, name, input or output, slot) of each tensor in which a majority outvotes the rank.

        Edges: the last two are None for a parameter that nothing declares equal.
        """
        found = [(row, row["io"], row["slot"]) for row in rows_as_values(self.unequal) if row["has_majority"]]
        found += [(row, None, None) for row in rows_as_values(self.undeclared)]
        return {(rank, row["iteration"], row["name"], io, slot) for row, io, slot in found for rank in row["suspects"]}

    @property
    def suspects(self) -> dict[int, int]:
        """Rank -> number of tensors in which it is outvoted, largest first.

        Ties without a majority speak against none, nor do messages of which either rank may be the one.
        """
        counts: dict[int, int] = {}
        for answer in (self.unequal, self.messages):
            column = answer.titles.index("suspects")
            for row in answer.rows:
                for rank in row[column] if row[-1] else ():
                    counts[rank] = counts.get(rank, 0) + 1
        return dict(sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])))


def job_report(
    tables: Tables, dumps: Sequence[str | os.PathLike[str]] = (), *, tolerance: float = TOLERANCE
) -> JobReport:
    """Judge the tables of a job.

    dumps      whose layout.json tell how many ranks the job has, where tables do not
    tolerance  as of `Tables.first_divergence`
    """
    found = tables.ranks()
    counts = tables.rank_counts()
    for dump in map(DumpDir.open, dumps):
        counts.update({rank: sharding.rank_count for rank, sharding in dump.layouts.items()})
    gaps = [*missing(found, counts), *_strangers(counts), *_versions(tables.versions())]
    hosts = {rank: host for rank, (host, _) in found.items()}
    return JobReport(
        hosts,
        tuple(gaps),
        tuple(_clocks(tables.clocks())),
        tables.hashes(),
        tables.messages(),
        tables.outliers(),
        tables.first_divergence(tolerance) if tables.has_golden else None,
        tables.compared(),
        tuple(tables.damaged),
        tables.undeclared(),
        tables.unhashed(),
    )


def missing(found: Mapping[int, tuple[str | None, Sequence[int]]], counts: Mapping[int, int]) -> Iterator[str]:
    """Ranks of which there is nothing, and iterations that some of the others lack."""
    count = _most(counts.values()) or 0
    missing = sorted(set(range(count)) - set(found))
    if missing:
        yield message("no dump of rank {ranks} of {count}", ranks=_listed(missing), count=count)
    every = {step for _, steps in found.values() for step in steps}
    for rank, (_, steps) in sorted(found.items(), key=lambda entry: -1 if entry[0] is None else entry[0]):
        lacking = sorted(every - set(steps))
        if lacking:
            yield message("rank {rank} has no iteration {iterations}", rank=rank, iterations=_listed(lacking))


def _strangers(counts: Mapping[int, int]) -> Iterator[str]:
    """Ranks that belong to another job than most of the others."""
    most = _most(counts.values())
    for rank, count in sorted(counts.items()):
        if most is not None and count != most:
            yield message(
                "rank {rank} is of another job, which has {count} ranks rather than {most}",
                rank=rank, count=count, most=most,
            )  # fmt: skip


def _versions(versions: Mapping[int, str]) -> Iterator[str]:
    most = _most(versions.values())
    for rank, version in sorted(versions.items()):
        if version != most:
            yield message(
                "rank {rank} was dumped by version {version}, most others by {most}",
                rank=rank, version=version, most=most,
            )  # fmt: skip


def _clocks(clocks: Mapping[int, float]) -> Iterator[str]:
    for rank, seconds in sorted(clocks.items()):
        numbers = {"rank": rank, "seconds": abs(seconds)}
        if seconds > 0:
            yield message("the clock of rank {rank} is {seconds:.0f} s ahead of those of most others", **numbers)
        else:
            yield message("the clock of rank {rank} is {seconds:.0f} s behind those of most others", **numbers)


def _most(values: Iterable[_Value]) -> _Value | None:
    """The value that most have, the smallest of several; None of nothing."""
    found = Counter(values)
    return min(found, key=lambda value: (-found[value], value), default=None)


def _listed(numbers: Sequence[int], most: int = 10) -> str:
    names: str = ", ".join(map(str, numbers[:most]))
    more = len(numbers) - most
    return message("{names} and {more} more", names=names, more=more) if more > 0 else names


def rows_as_values(answer: Answer) -> list[dict[str, Any]]:
    """Rows of an answer as objects for JSON."""
    return [dict(zip(answer.titles, row, strict=True)) for row in answer.rows]

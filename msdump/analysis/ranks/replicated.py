"""Jobs whose dumps do not say what ranks share: all ranks are taken for replicas of one model.

Parameters and buffers are read as each step left them, rank by rank, and only what tells them apart is kept: equal
ranks are ranges, so that memory does not grow with their number.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from msdump.analysis.ranks.job import JobReport, missing
from msdump.analysis.ranks.questions import HASH_TITLES, OWN_BY_DESIGN, TOLERANCE, Answer, Row
from msdump.analysis.ranks.tables import Unit, units_of
from msdump.analysis.steps import PARAMETER, read_statistic_steps
from msdump.errors import FormatError
from msdump.formats.dump_dir import DumpDir
from msdump.formats.selection import ALL_STEPS, StepSelection
from msdump.statistics.md5 import md5_hex
from msdump.tensors.records import OUTPUT

_NONE = Answer((), ())
_OWN = re.compile(OWN_BY_DESIGN)
# Contents of one tensor that are told apart; of more only the ranks are known.
_MOST_CONTENTS = 64

# Iteration, graph, name, slot, shape and whether there is a hash, of tensors that must be equal.
_Name = tuple[int, int, str, str, tuple[int, ...], bool]


def is_declared(dumps: Sequence[str | os.PathLike[str]]) -> bool:
    """Whether a layout.json says what ranks share; none is opened.   Raises: FormatError, nothing is at a path."""
    return any(DumpDir.open(dump).has_layouts for dump in dumps)


def undeclared_report(dumps: Sequence[str | os.PathLike[str]], selection: StepSelection = ALL_STEPS) -> JobReport:
    """The report of a job of which nothing says what must be equal, from the names of its folders.

    Raises: as `units_of`.
    """
    return _report(_Votes(), _by_rank(dumps, selection), [])


def replicated_report(
    dumps: Sequence[str | os.PathLike[str]],
    selection: StepSelection = ALL_STEPS,
    progress: Callable[[int, int], None] | None = None,
) -> JobReport:
    """Report on a job whose ranks must hold equal parameters and buffers after each step, by name and shape.

    progress  called with (ranks done, ranks in all)

    Edges:  running statistics of a batch norm are left out, as each rank has its own. Of a dump of statistics alone
            max, min, the number of NaN and the l2norm (within 1e-5) are compared.
    Raises: as `units_of`.
    """
    ranks = _by_rank(dumps, selection)
    votes = _Votes()
    damaged: dict[str, FormatError] = {}
    for done, (rank, units) in enumerate(ranks.items(), 1):
        for name, content, l2norm in _contents(units, damaged):
            votes.add(name, rank, content, l2norm)
        if progress is not None:
            progress(done, len(ranks))
    return _report(votes, ranks, list(damaged.items()))


def _by_rank(dumps: Sequence[str | os.PathLike[str]], selection: StepSelection) -> dict[int, list[Unit]]:
    """Units of each rank, by number; one process that has none is rank 0."""
    units = sorted(units_of(dumps, selection), key=lambda unit: (unit.rank or 0, unit.path))
    return {rank: list(own) for rank, own in itertools.groupby(units, key=lambda unit: unit.rank or 0)}


def _contents(units: Sequence[Unit], damaged: dict[str, FormatError]) -> Iterator[tuple[_Name, str, float | None]]:
    """Parameters and buffers of a rank: the name, what must be equal, and the l2norm where there is no hash."""
    for path, own in itertools.groupby(units, key=attrgetter("path")):
        listed = list(own)
        selection = StepSelection(listed[0].rank, iteration=[unit.iteration for unit in listed])
        dump = DumpDir.open(path)
        with dump.listed_once():
            files = [file for file in dump.files_of(selection) if file.op_type == PARAMETER]
            table, problems = read_statistic_steps(dump, selection)
        covered = set()
        for tensor in itertools.chain.from_iterable(map(dump.read, files)):
            place = tensor.iteration or 0, tensor.graph_id or 0
            covered.add(place)
            if tensor.io == OUTPUT and not _OWN.search(tensor.op_name):
                try:
                    content = md5_hex(tensor.load_host())
                except FormatError as error:
                    problems.append((tensor.path, error))
                    continue
                yield (*place, tensor.op_name, tensor.slot_text, tuple(tensor.shape), True), content, None
        for step in table.steps:
            place = step.key.iteration or 0, step.key.graph_id or 0
            for operator in step.operators if place not in covered else ():
                if not operator.is_parameter or _OWN.search(operator.op_name):
                    continue
                for slot, tensor in operator.outputs.items():
                    row = table.row(tensor)
                    numbers = getattr(row, "max", None), getattr(row, "min", None), getattr(row, "nan", None)
                    l2norm = getattr(row, "l2norm", None)
                    if row.md5 is None and numbers[0] is None and l2norm is None:
                        continue  # a dump may select its statistics
                    name = (*place, operator.op_name, str(slot), tuple(tensor.shape), row.md5 is not None)
                    yield name, row.md5 or str(numbers), None if row.md5 else l2norm
        damaged |= {os.fspath(where): error for where, error in (*dump.damaged, *problems)}


@dataclass(slots=True)
class _Content:
    """One content of a tensor, and the ranks that have it: ranges of which both ends belong to it, ascending.

    text   None: some other one than those that are told apart
    """

    text: str | None
    l2norm: float | None
    ranges: list[list[int]] = field(default_factory=list)

    def is_of(self, text: str, l2norm: float | None) -> bool:
        if self.text != text:
            return False
        if l2norm is None or self.l2norm is None:
            return l2norm is self.l2norm
        return str(l2norm) == str(self.l2norm) or abs(l2norm - self.l2norm) <= TOLERANCE * abs(self.l2norm)

    def add(self, rank: int) -> None:
        if self.ranges and self.ranges[-1][1] + 1 == rank:
            self.ranges[-1][1] = rank
        else:
            self.ranges.append([rank, rank])

    @property
    def count(self) -> int:
        return sum(last + 1 - first for first, last in self.ranges)

    @property
    def ranks(self) -> list[int]:
        return [rank for first, last in self.ranges for rank in range(first, last + 1)]


class _Votes:
    """What each tensor holds on which ranks."""

    def __init__(self) -> None:
        self._contents: dict[_Name, list[_Content]] = {}

    def add(self, name: _Name, rank: int, text: str, l2norm: float | None) -> None:
        """Take one; ranks come in ascending order."""
        contents = self._contents.setdefault(name, [])
        found = next((content for content in contents if content.is_of(text, l2norm)), None)
        if found is None and len(contents) > _MOST_CONTENTS:
            found = contents[-1]
        elif found is None:
            is_last = len(contents) == _MOST_CONTENTS
            found = _Content(None if is_last else text, None if is_last else l2norm)
            contents.append(found)
        found.add(rank)

    def compared(self, *, has_hash: bool) -> int:
        """How many tensors several ranks have."""
        shared = (name for name, found in self._contents.items() if sum(content.count for content in found) > 1)
        return sum(name[-1] is has_hash for name in shared)

    def unequal(self) -> Answer:
        """In the form of `Tables.hashes`."""
        rows: list[Row] = []
        for name, found in sorted(self._contents.items(), key=lambda item: item[0]):
            if len(found) < 2:
                continue
            iteration, graph, text, slot, _, _ = name
            counts = [content.count for content in found]
            winner = max(range(len(found)), key=counts.__getitem__)
            has_majority = counts.count(counts[winner]) == 1 and found[winner].text is not None
            everyone = sorted(rank for content in found for rank in content.ranks)
            others = (content for index, content in enumerate(found) if not has_majority or index != winner)
            suspects = sorted(rank for content in others for rank in content.ranks)
            rows.append((iteration, graph, None, text, text, OUTPUT, slot, everyone, suspects, [], has_majority))
        return Answer(HASH_TITLES, tuple(rows))


def _report(votes: _Votes, ranks: dict[int, list[Unit]], damaged: list[tuple[str, FormatError]]) -> JobReport:
    unhashed = votes.compared(has_hash=False)
    iterations = {rank: (None, [unit.iteration for unit in units]) for rank, units in ranks.items()}
    return JobReport(
        hosts=dict.fromkeys(ranks),
        gaps=tuple(missing(iterations, {})),
        notes=(),
        unequal=votes.unequal(),
        messages=Answer(("suspects",), ()),
        outliers=_NONE,
        first=None,
        compared=votes.compared(has_hash=True) + unhashed,
        damaged=tuple(damaged),
        undeclared=_NONE,
        unhashed=unhashed,
    )

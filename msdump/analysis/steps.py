"""A dump as steps of operators: the tensors of DumpDir, or the rows of its statistics, gathered under the operator that
had them; and the error where a dump holds none of those that are selected."""

from __future__ import annotations

import functools
import itertools
import os
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from msdump.analysis.full_names import short_label, stage_of
from msdump.errors import FormatError, NothingFoundError
from msdump.formats.acl_stats_csv import read_acl_stats
from msdump.formats.dump_dir import DumpDir, OperatorOrder
from msdump.formats.dump_folders import DumpedFolder
from msdump.formats.dump_tensor import DumpedFile, DumpedTensor
from msdump.formats.msprobe_json import read_msprobe_json
from msdump.formats.paths.parse import FX, DumpName, FolderLevels, safe_text
from msdump.formats.selection import ALL_STEPS, Numbers, StepSelection, is_selected
from msdump.formats.statistic_csv import read_statistic_csv
from msdump.formats.statistic_row import StatisticRow
from msdump.operators.traits import subgraph_labels
from msdump.storage.plain import readable
from msdump.tables.messages import COMMA, Message, joined, message
from msdump.tensors.makers import maker
from msdump.tensors.records import DEFAULT_FORMAT, INPUT, OUTPUT

PARAMETER = "Parameter"
_OP_NUMBER = re.compile(r"-op[0-9]+$")
STATISTIC = "statistic"  # form of the file of a tensor without bytes


class Slot(NamedTuple):
    """Number among the inputs or outputs; `part` is the index in a list of tensors that is one argument, `keyword` the
    name of an argument that has no place among the others."""

    number: int
    part: int = 0
    keyword: str = ""

    def __str__(self) -> str:
        name = self.keyword or str(self.number)
        return f"{name}.{self.part}" if self.part else name


class StepKey(NamedTuple):
    """One iteration of one graph of one process; None where the folders do not tell it."""

    rank_id: int | None
    graph_id: int | None
    iteration: int | None

    def __str__(self) -> str:
        parts = (
            None if self.rank_id is None else message("rank {rank}", rank=self.rank_id),
            None if self.graph_id is None else message("graph {graph}", graph=self.graph_id),
            None if self.iteration is None else message("iteration {iteration}", iteration=self.iteration),
        )
        return joined(COMMA, (part for part in parts if part is not None)) or message("the dump")

    def iteration_text(self, tells_graph: bool) -> str:
        """A cell of a table; `tells_graph` where graphs count their own steps, whose numbers alone say little."""
        iteration = "-" if self.iteration is None else str(self.iteration)
        if not tells_graph or self.graph_id is None:
            return iteration
        return message("{iteration} of graph {graph}", iteration=iteration, graph=self.graph_id)


@dataclass(frozen=True, eq=False, slots=True)
class Operator:
    """One operator of one step with whatever was dumped of it.

    op_name    as the files' names say it
    full_name  with scope, where the dump tells it
    parts      the operators that this one stands for, when a mapping makes a chain one operator
    original   in a compiled graph whose operators were gathered under the names that the user's program has for them:
               that name, "" for an operator in between. None elsewhere
    hands_on   it gives what the operators of its subgraphs have made, which the dump holds as well
    """

    op_type: str
    op_name: str
    full_name: str | None = None
    position: int | None = None
    task_id: int | None = None
    stream_id: int | None = None
    inputs: Mapping[Slot, DumpedTensor] = field(default_factory=dict)
    outputs: Mapping[Slot, DumpedTensor] = field(default_factory=dict)
    parts: tuple[Operator, ...] = ()
    original: str | None = None
    hands_on: bool = False

    @property
    def label(self) -> str:
        """The longest name that is known."""
        return self.full_name or self.op_name or self.op_type

    @property
    def stage(self) -> str:
        """ "forward", "backward" or "optimizer": the part of a step of training, as the full name tells."""
        return stage_of(self.label)

    @property
    def names(self) -> frozenset[str]:
        """Every name by which a user may mean it."""
        return frozenset(
            name
            for name in (self.full_name, self.op_name, f"{self.op_type}.{self.op_name}", self.original or None)
            if name is not None
        )

    @property
    def originals(self) -> tuple[tuple[str, int], ...]:
        """What its outputs are in the program as the user wrote it, where the files tell: operators and outputs."""
        return tuple(tensor.original for tensor in self.outputs.values() if tensor.original is not None)

    @property
    def safe_name(self) -> str:
        """The longest name, spelled alike whether it comes from a file's name, a header or an execution order."""
        return safe_text(self.label)

    @property
    def scope(self) -> str:
        """`safe_name` without the operator's number, which changes from compile to compile."""
        return _OP_NUMBER.sub("", self.safe_name)

    @property
    def is_parameter(self) -> bool:
        return self.op_type == PARAMETER

    @property
    def input_shapes(self) -> tuple[tuple[int, ...], ...]:
        return tuple(tensor.shape for tensor in self.inputs.values())

    @property
    def output_shapes(self) -> tuple[tuple[int, ...], ...]:
        return tuple(tensor.shape for tensor in self.outputs.values())

    def tensors(self, io: str) -> Mapping[Slot, DumpedTensor]:
        return self.inputs if io == INPUT else self.outputs

    def all_tensors(self) -> Iterator[tuple[str, Slot, DumpedTensor]]:
        """Side, slot and tensor, inputs first."""
        for io, tensors in ((INPUT, self.inputs), (OUTPUT, self.outputs)):
            for slot, tensor in tensors.items():
                yield io, slot, tensor


@dataclass(frozen=True, eq=False)
class Step:
    """One step of a dump: operators in execution order, parameters last.

    time_us   of its last file where each graph counts steps of its own, so that only time tells which came first
    began_us  of its first file: graphs of one iteration may run in another order than that of their numbers
    """

    key: StepKey
    operators: tuple[Operator, ...]
    time_us: int | None = None
    began_us: int | None = None


def operator_id(step: StepKey, operator: Operator) -> str:
    """Name and place in one word, such as Conv2D-op12@0.1.3: of rank 0, graph 1, iteration 3; "-": not known.

    Commands take it as the name of an operator.
    """
    name = operator.label if step.graph_id is None else short_label(operator.label)
    return f"{name}@{'.'.join('-' if part is None else str(part) for part in step)}"


def place_text(operator: Operator, where: object) -> Message:
    """An operator, its type where it has one, and where it is, unless no folder tells a step."""
    name = operator.label
    if operator.op_type:
        name = message("{name} ({type})", name=name, type=operator.op_type)
    place = where if isinstance(where, str) else str(where)
    return joined(COMMA, [name] if place == str(StepKey(None, None, None)) else [name, place])


def opened(dump: DumpDir | str | os.PathLike[str]) -> DumpDir:
    """The dump, opened when it is a path.   Raises: FormatError when there is nothing at it."""
    return dump if isinstance(dump, DumpDir) else DumpDir.open(dump)


def read_steps(dump: DumpDir, selection: StepSelection = ALL_STEPS, *, every_run: bool = False) -> list[Step]:
    """Steps of a dump in the order in which they ran; constants, which belong to no step, are left out.

    every_run  a step for each run of a graph that ran several times in an iteration, as the body of a loop does
    Edges:  when a run has written into the folder of an earlier one, the newest tensor of each operator counts.
    """
    gathered: dict[StepKey, list[DumpedTensor]] = {}
    place: FolderLevels | None = None
    step: list[DumpedTensor] = []
    for tensor in dump.tensors_of(selection):
        # Tensors of one folder come one after the other, and share its place.
        if tensor.file.levels is not place:
            place = tensor.file.levels
            key = StepKey(tensor.rank_id, tensor.graph_id, tensor.iteration)
            step = [] if place.is_constants else gathered.setdefault(key, [])
        step.append(tensor)
    return [
        Step(key, operators_of(run), _time_of(run), _first_time(run))
        for key, tensors in gathered.items()
        for run in (_runs_of(dump, tensors) if every_run else [tensors])
    ]


def as_they_ran(steps: Iterable[Step]) -> list[Step]:
    """Graphs of one iteration in the order of their first files, which need not be that of their numbers.

    Edges:  where not all of them tell a time, or graphs count steps of their own, the order stays as it is.
    """
    ordered = list(steps)
    if all(step.began_us is not None and step.time_us is None and step.key.iteration is not None for step in ordered):
        ordered.sort(key=lambda step: (step.key.rank_id or 0, step.key.iteration or 0, step.began_us or 0))
    return ordered


def count_iterations(keys: Iterable[StepKey]) -> int:
    """How many steps the program has run: each graph and each rank has a folder of every iteration.

    Edges:  folders without a number of an iteration are one step, where no others are there.
    """
    iterations = {key.iteration for key in keys}
    return len(iterations - {None}) or len(iterations)


def has_several_graphs(keys: Iterable[StepKey]) -> bool:
    """True when the number of an iteration alone does not tell a step."""
    return len({key.graph_id for key in keys}) > 1


def _time_of(tensors: Iterable[DumpedTensor]) -> int | None:
    times = (tensor.timestamp_us for tensor in tensors if tensor.file.levels.grammar == FX)
    return max((time for time in times if time is not None), default=None)


def _first_time(tensors: Iterable[DumpedTensor]) -> int | None:
    return min((time for tensor in tensors if (time := tensor.file.name.timestamp_us) is not None), default=None)


def _runs_of(dump: DumpDir, tensors: list[DumpedTensor]) -> list[list[DumpedTensor]]:
    """Tensors of one step by run of its graph: a tensor that comes once more begins another run."""
    if any(tensor.timestamp_us is None for tensor in tensors) or not dump.may_run_again(tensors[0].file):
        return [tensors]
    runs: list[list[DumpedTensor]] = []
    seen: set[tuple[object, ...]] = set()
    for tensor in sorted(tensors, key=lambda tensor: tensor.timestamp_us or 0):
        name = (*_identity(tensor), *_slot(tensor))
        if not runs or name in seen:
            runs.append([])
            seen.clear()
        seen.add(name)
        runs[-1].append(tensor)
    place = {id(tensor): number for number, tensor in enumerate(tensors)}
    return [sorted(run, key=lambda tensor: place[id(tensor)]) for run in runs]


def _identity(tensor: DumpedTensor) -> tuple[object, ...]:
    name = tensor.file.name
    return (name.op_type, name.op_name, name.task_id, name.stream_id, *name.task_part)


def _slot(tensor: DumpedTensor) -> tuple[str, Slot]:
    return _known_slot(tensor.io, tensor.slot, tensor.part or 0, tensor.file.name.keyword or "")


@functools.lru_cache(maxsize=4096)
def _known_slot(io: str, number: int, part: int, keyword: str) -> tuple[str, Slot]:
    """A dump has few of them, and each many times."""
    return io, Slot(number, part, keyword)


def operators_of(tensors: Iterable[DumpedTensor]) -> tuple[Operator, ...]:
    """Operators of one step, by first appearance; parameters last."""
    by_operator: dict[tuple[object, ...], dict[tuple[str, Slot], DumpedTensor]] = {}
    for tensor in tensors:
        identity, slot = _identity(tensor), _slot(tensor)
        slots = by_operator.get(identity)
        if slots is None:
            by_operator[identity] = {slot: tensor}
            continue
        earlier = slots.get(slot)
        if earlier is None or (tensor.timestamp_us or 0) >= (earlier.timestamp_us or 0):
            slots[slot] = tensor
    operators = [_operator(slots) for slots in by_operator.values()]
    for index in inner_operators(operators):
        operators[index] = replace(operators[index], hands_on=True)
    return tuple(sorted(operators, key=lambda operator: operator.op_type == PARAMETER))


def inner_operators(operators: Sequence[Operator]) -> dict[int, list[int]]:
    """Place of each operator that runs others -> places of those, where the dump holds some."""
    found: dict[int, list[int]] = {}
    types = {op_type for op_type in {one.op_type for one in operators} if subgraph_labels(op_type)}
    owners = [(index, one) for index, one in enumerate(operators) if one.op_type in types] if types else []
    names = sorted((one.safe_name, place) for place, one in enumerate(operators)) if owners else []
    for index, owner in owners:
        inside: list[int] = []
        for label in subgraph_labels(owner.op_type):
            beginning = safe_text(f"{owner.label}/{label}/")
            following = map(names.__getitem__, range(bisect_left(names, (beginning, 0)), len(names)))
            inside += (place for _, place in itertools.takewhile(partial(_begins_with, beginning), following))
        if inside:
            found[index] = sorted(inside)
    return found


def _begins_with(beginning: str, named: tuple[str, int]) -> bool:
    return named[0].startswith(beginning)


_made_operator = maker(Operator)


def _operator(tensors: Mapping[tuple[str, Slot], DumpedTensor]) -> Operator:
    first = next(iter(tensors.values()))
    name = first.file.name
    inputs: dict[Slot, DumpedTensor] = {}
    outputs: dict[Slot, DumpedTensor] = {}
    for place in sorted(tensors) if len(tensors) > 1 else tensors:
        if place[0] == INPUT:
            inputs[place[1]] = tensors[place]
        elif place[0] == OUTPUT:
            outputs[place[1]] = tensors[place]
    full_name = first.full_name
    if full_name is None and len(tensors) > 1:
        full_name = next((tensor.full_name for tensor in tensors.values() if tensor.full_name is not None), None)
    return _made_operator(
        name.op_type,
        name.op_name,
        full_name,
        first.file.position,
        name.task_id,
        name.stream_id,
        inputs,
        outputs,
    )


_fields_of_operator = attrgetter(*(one.name for one in fields(Operator)))


def with_own_operators(step: Step) -> Step:
    """The step as a second reading of the same files gives it: operators are told apart by what object they are."""
    return replace(step, operators=tuple(_made_operator(*_fields_of_operator(one)) for one in step.operators))


@dataclass(frozen=True, slots=True)
class StatisticSteps:
    """Steps whose tensors have no bytes, and the row behind each of them."""

    steps: tuple[Step, ...]
    _rows: dict[tuple[str, int], StatisticRow]

    def row(self, tensor: DumpedTensor) -> StatisticRow:
        """The statistics of a tensor of these steps."""
        return self._rows[tensor.path, tensor.offset]


def read_statistic_steps(
    dump: DumpDir, selection: StepSelection = ALL_STEPS, *, every_run: bool = False
) -> tuple[StatisticSteps, list[tuple[str, FormatError]]]:
    """All statistics of a dump (statistic.csv, ACL's csv of one operator, msprobe's dump.json), and the damaged files.

    every_run  as `read_steps`
    """
    rows: dict[tuple[str, int], StatisticRow] = {}
    damaged: list[tuple[str, FormatError]] = []
    tensors: dict[StepKey, list[DumpedTensor]] = {}
    readers: list[tuple[FolderLevels, Path, Callable[[], list[StatisticRow]]]] = []
    with dump.listed_once():
        readers += ((place, path, partial(read_statistic_csv, path)) for place, path in dump.statistic_files())
        readers += (
            (place, path, partial(read_acl_stats, path, name)) for place, path, name in dump.statistic_dump_files()
        )
        readers += ((place, path, partial(read_msprobe_json, path)) for place, path in dump.msprobe_files())
    for place, path, reader in readers:
        if not selection.takes(place):
            continue
        key = StepKey(place.rank_id, place.graph_id, place.iteration)
        try:
            with readable(path):
                read = reader()
        except FormatError as error:
            damaged.append((os.fspath(path), error))
            continue
        order = dump.order_in(DumpedFolder(os.fspath(path.parent), place, (path.name,)))
        for line, row in enumerate(read):
            rows[os.fspath(path), line] = row
            tensors.setdefault(key, []).append(_tensor(path, place, line, row, order))
    steps = tuple(
        Step(key, operators_of(sorted(run, key=_place_in_order)), began_us=_first_time(run))
        for key, listed in sorted(tensors.items(), key=lambda item: tuple(part or 0 for part in item[0]))
        for run in (_runs_of(dump, listed) if every_run else [listed])
    )
    return StatisticSteps(steps, rows), damaged


def _tensor(path: Path, place: FolderLevels, line: int, row: StatisticRow, order: OperatorOrder) -> DumpedTensor:
    """A tensor without bytes; its `offset` is its row."""
    position = order.find(row.op_name)
    full_name = None if position is None else order.full_names[position]
    name = DumpName(STATISTIC, row.op_type, row.op_name, row.task_id, row.stream_id, row.timestamp_us, row.io, row.slot)
    file = DumpedFile(os.fspath(path), place, name, path.name, position, full_name)
    return DumpedTensor(file, row.io, row.slot, row.dtype, row.shape, DEFAULT_FORMAT, line, row.size_bytes, full_name)


def _place_in_order(tensor: DumpedTensor) -> tuple[int, int]:
    last = 1 << 62
    return (last if tensor.position is None else tensor.position, tensor.timestamp_us or 0)


def nothing_selected(
    dump: DumpDir,
    selection: StepSelection,
    *,
    expected: str,
    advice: str = "Is it the folder that holds rank_0, or one below it?",
) -> NothingFoundError:
    """The error that names the selector which fits nothing, with what would fit; `advice` where the dump is empty.

    expected   what was looked for, such as "tensors or statistics"
    """
    places = _places(dump)
    empty = _empty_statistics(dump, selection)
    if empty:
        return NothingFoundError(
            f"{dump.path}: expected {expected}, got {empty}, which holds no row. Nothing had matched `kernels`, "
            "or the run ended before a step did."
        )
    if not places:
        return NothingFoundError(f"{dump.path}: expected {expected}, got none. {advice}")
    graph = selection.graph
    selectors = (
        ("rank", selection.rank, {place.rank_id for place in places}),
        ("graph", None if isinstance(graph, str) else graph, {place.graph_id for place in places}),
        ("iteration", selection.iteration, {place.iteration for place in places}),
    )
    for name, numbers, values in selectors:
        if not any(is_selected(value, numbers) for value in values):
            present = ranges_text(value for value in values if value is not None)
            fix = f"The dump holds {present}." if present else f"The folders of the dump tell no {name}: leave it out."
            return NothingFoundError(f"{name}: expected a number that {dump.path} holds, got {_text(numbers)}. {fix}")
    selected = [f"{name} {_text(numbers)}" for name, numbers, _ in selectors if numbers is not None]
    if isinstance(graph, str):
        selected.append(f'graph "{graph}"')
    if not selected:
        return NothingFoundError(f"{dump.path}: expected {expected}, got none. {advice}")
    return NothingFoundError(
        f"{dump.path}: expected {expected} of {', '.join(selected)}, got none. No step has all of these: leave one out."
    )


def _empty_statistics(dump: DumpDir, selection: StepSelection) -> str:
    """The first selected statistic.csv, where there are some, without rows in any, and no files of tensors; else ""."""
    paths = [path for place, path in dump.statistic_files() if selection.takes(place)]
    if not paths or any(selection.takes(file.levels) for file in dump.files()):
        return ""
    try:
        has_rows = any(map(read_statistic_csv, paths))
    except (FormatError, OSError):
        return ""  # damaged, which is another answer
    return "" if has_rows else os.fspath(paths[0])


def ranges_text(numbers: Iterable[int]) -> str:
    """Numbers in the form of the configuration: "0|5-8"."""
    ranges: list[list[int]] = []
    for number in sorted(set(numbers)):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return "|".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def _text(numbers: Numbers) -> str:
    if isinstance(numbers, (list, tuple, set, frozenset)):
        return ranges_text(numbers)
    return str(numbers)


def _places(dump: DumpDir) -> list[FolderLevels]:
    """Places of data files and of statistics, each once."""
    places = dict.fromkeys(file.levels for file in dump.files() if not file.levels.is_constants)
    places |= dict.fromkeys(place for place, _ in dump.statistic_files())
    places |= dict.fromkeys(place for place, _, _ in dump.statistic_dump_files())
    places |= dict.fromkeys(place for place, _ in dump.msprobe_files())
    return list(places)

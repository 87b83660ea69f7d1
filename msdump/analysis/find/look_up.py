"""Look-up in a dump: the operators of a source line, and all data of an operator.

from msdump.analysis import find_source_line, show_operator
for hit in find_source_line("dump", "x = self.conv3(x)"):
    hit.node.full_name, hit.line, hit.files
"""

from __future__ import annotations

import fnmatch
import os
import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from msdump.analysis._payload import has_same_bytes
from msdump.analysis.find._health import HealthTable, health_of
from msdump.analysis.find.hints import zoom_line
from msdump.analysis.graph_info import GraphFile, GraphFiles, GraphNode, Origin
from msdump.analysis.memory_state import UnsetTensors, same_in
from msdump.analysis.steps import (
    Operator,
    Slot,
    StatisticSteps,
    Step,
    StepKey,
    nothing_selected,
    opened,
    read_statistic_steps,
    read_steps,
)
from msdump.errors import ConfigError, DtypeError, FormatError, NothingFoundError, did_you_mean
from msdump.formats.dump_dir import DumpDir
from msdump.formats.dump_file import read_dump
from msdump.formats.dump_tensor import DumpedTensor
from msdump.formats.paths.parse import BIN
from msdump.formats.selection import ALL_STEPS, StepSelection, is_selected
from msdump.formats.statistic_row import StatisticRow
from msdump.graph.types import SourceLine
from msdump.statistics.exponents import ExponentHistogram, exponent_histogram
from msdump.statistics.stats import Statistics, statistics
from msdump.tensors import dtypes
from msdump.tensors.records import INPUT

_FILE_AND_LINE = re.compile(r"(?P<file>[^:]+):(?P<line>[0-9]{1,9})")
# An operator has a few tensors; the import of a compiler takes longer than these take without it.
_PLAIN_BYTES = 8 << 20
_PREVIEW = 6
_HISTORY_STEPS, _HISTORY_BYTES = 60, 256 << 20


@dataclass(frozen=True, slots=True)
class FoundOperator:
    """An operator of one step, and its node of the graph file when there is one.

    table   statistics of its tensors, where the dump holds nothing else
    others  the same operator, as the other selected iterations of that rank and graph have it
    """

    step: Step
    operator: Operator
    node: GraphNode | None
    table: StatisticSteps | None = None
    others: tuple[tuple[StepKey, Operator], ...] = ()

    @property
    def key(self) -> StepKey:
        return self.step.key


def find_operator(
    dump: DumpDir,
    name: str,
    selection: StepSelection = ALL_STEPS,
    *,
    takes_statistics: bool = False,
    is_suspect: bool = False,
) -> FoundOperator:
    """The operator that a name means, in the first step that has it.

    name   full name, last part of it, `type.name` as in file names, the name that it had before the graph was compiled,
           or a glob of any of the first three
    takes_statistics  statistics will do where a dump has no tensors
    is_suspect        in the first iteration in which a tensor of it is not finite, where there is one

    Raises: ConfigError when no operator or more than one goes by that name.
    """
    steps = read_steps(dump, selection)
    table = None
    if not steps:
        table, damaged = read_statistic_steps(dump, selection)
        steps = list(table.steps)
        if damaged and not steps:
            raise damaged[0][1]
    if not steps:
        raise nothing_selected(dump, selection, expected="a dump with tensors")
    for step in steps:
        matches = [operator for operator in step.operators if name in operator.names]
        matches = matches or [o for o in step.operators if any(original == name for original, _ in o.originals)]
        matches = matches or [o for o in step.operators if any(fnmatch.fnmatchcase(known, name) for known in o.names)]
        if len(matches) > 1:
            listed = ", ".join(operator.label for operator in matches[:5]) + (", ..." if len(matches) > 5 else "")
            raise ConfigError(
                f'OP: expected the name of one operator, got "{name}", which {len(matches)} have: {listed}.'
            )
        if matches and table is not None and not takes_statistics:
            line = zoom_line(dump.path, matches[0])
            advice = (
                f"Dump the tensors of this operator: {line}" if line else 'Dump them: "task": "tensor" in config.json.'
            )
            raise ConfigError(f"{dump.path}: expected a dump with tensors, got statistics only. {advice}")
        if matches:
            operator = matches[0]
            if is_suspect:
                step, operator = _first_bad(_everywhere(operator, steps), table) or (step, operator)
            others = tuple(_same_elsewhere(step, operator, steps))
            return FoundOperator(step, operator, GraphFiles(dump).node(step.key, operator), table, others)
    operators = [operator for step in steps for operator in step.operators]
    names = [known for operator in operators for known in (operator.op_name, operator.label)]
    # A last part is nearer to a last part than to a name with its scope.
    hint = did_you_mean(name, [*names, *(known.rpartition("/")[2] for known in names)])
    raise NothingFoundError(f'OP: expected the name of a dumped operator, got "{name}". {hint}'.rstrip())


def _everywhere(operator: Operator, steps: Iterable[Step]) -> Iterator[tuple[Step, Operator]]:
    """The operator as each step has it that has it."""
    for step in steps:
        for candidate in step.operators:
            if (candidate.label, candidate.op_type) == (operator.label, operator.op_type):
                yield step, candidate
                break


def _same_elsewhere(step: Step, operator: Operator, steps: Iterable[Step]) -> Iterator[tuple[StepKey, Operator]]:
    for other, candidate in _everywhere(operator, steps):
        if other.key != step.key and other.key[:2] == step.key[:2]:
            yield other.key, candidate


def _first_bad(places: Iterable[tuple[Step, Operator]], table: StatisticSteps | None) -> tuple[Step, Operator] | None:
    """Of the same operator in several steps: the first in which it has a value that is not finite."""
    health = HealthTable()
    for step, operator in sorted(places, key=lambda place: place[0].key.iteration or 0):
        tensors = [tensor for _, _, tensor in operator.all_tensors()]
        if table is not None:
            health.add_rows(table.row, tensors, [])
            is_bad = any(health.of(tensor).is_bad for tensor in tensors)
        else:
            is_bad = any(health_of(tensor, _PLAIN_BYTES).is_bad for tensor in tensors)
        if is_bad:
            return step, operator
    return None


@dataclass(frozen=True, slots=True)
class SourceHit:
    """An operator that a source line led to.

    graph  None for a call of msprobe, which has no graph file
    line   the line that was looked for, among those that led to the operator
    files  its data files in the dump, in the order of the dump
    """

    graph: GraphFile | None
    node: GraphNode
    line: SourceLine
    files: tuple[str, ...]


def find_source_line(
    dump: DumpDir | str | os.PathLike[str],
    text: str,
    *,
    rank: int | Collection[int] | None = None,
    graph: int | Collection[int] | None = None,
    iteration: int | Collection[int] | None = None,
) -> list[SourceHit]:
    """Operators that a line of the user's script led to, in execution order.

    text   the line or a part of it, blanks do not matter; or a place, FILE:LINE

    Edges:   calls of msprobe have a stack.json in place of a graph file; equal calls of several steps are one.
    Raises:  ConfigError when there is neither; FormatError when there is nothing at the path.
    """
    dump = opened(dump)
    files_of_graphs = GraphFiles(dump)
    graphs, calls = list(files_of_graphs), list(files_of_graphs.calls())
    if calls and not graphs:
        return _calls_of_line(dump, calls, text, StepSelection(rank, graph, iteration))
    if not graphs:
        raise NothingFoundError(
            f"{dump.path}: expected graph files (rank_N/graphs/*.pb or *.ir) or stack.json of msprobe, got none. "
            "Open the folder that holds rank_0, not one below it."
        )
    selected = [
        graph_file
        for graph_file in graphs
        if is_selected(graph_file.rank_id, rank) and is_selected(graph_file.graph_id, graph)
    ]
    if not selected:
        some = ", ".join(str(StepKey(graph.rank_id, graph.graph_id, None)) for graph in graphs[:5])
        raise NothingFoundError(
            f"{dump.path}: expected a graph file of the selected rank and graph, got none. There are some of {some}"
            f"{', ...' if len(graphs) > 5 else ''}."
        )
    hits = [
        (graph_file, node, line)
        for graph_file in selected
        for node in graph_file.nodes
        for line in [_line_of(node, text)]
        if line is not None
    ]
    files = _files_by_operator(dump, StepSelection(rank, graph, iteration)) if hits else {}
    return [
        SourceHit(
            graph_file, node, line, tuple(files.get((graph_file.rank_id, graph_file.graph_id, node.full_name), ()))
        )
        for graph_file, node, line in hits
    ]


def _calls_of_line(
    dump: DumpDir, calls: Iterable[tuple[StepKey, GraphNode]], text: str, selection: StepSelection
) -> list[SourceHit]:
    """The same for calls of msprobe."""
    nodes: dict[tuple[int | None, str, SourceLine], tuple[GraphNode, dict[StepKey, None]]] = {}
    for key, node in calls:
        line = _line_of(node, text)
        is_asked = is_selected(key.rank_id, selection.rank) and is_selected(key.iteration, selection.iteration)
        if line is not None and is_asked:
            nodes.setdefault((key.rank_id, node.full_name, line), (node, {}))[1][key] = None
    paths: dict[tuple[StepKey, str], list[str]] = {}
    for file in dump.files_of(selection) if nodes else ():
        key = StepKey(file.levels.rank_id, file.levels.graph_id, file.levels.iteration)
        paths.setdefault((key, file.name.op_name), []).append(file.path)
    return [
        SourceHit(
            None,
            node,
            line,
            tuple(path for step in steps for path in paths.get((step, node.full_name), ())),
        )
        for (_, _, line), (node, steps) in nodes.items()
    ]


def _line_of(node: GraphNode, text: str) -> SourceLine | None:
    """The innermost line of an operator that is meant."""
    return next((line for line in reversed(node.source) if _matches(line, text)), None)


def nearest_lines(dump: DumpDir | str | os.PathLike[str], text: str) -> str:
    """Sentence that offers the nearest source lines of a dump, or ""."""
    dump = opened(dump)
    graphs = GraphFiles(dump)
    nodes = (*(node for graph in graphs for node in graph.nodes), *(node for _, node in graphs.calls()))
    return did_you_mean(text.strip(), (line.code.strip() for node in nodes for line in node.source))


def _matches(line: SourceLine, text: str) -> bool:
    asked_line = _FILE_AND_LINE.fullmatch(text.strip())
    if asked_line is not None:
        name, asked = line.path.replace("\\", "/"), _plain_path(asked_line["file"])
        return line.line == int(asked_line["line"]) and (name == asked or name.endswith("/" + asked))
    return _squeezed(text) in _squeezed(line.code)


def _plain_path(path: str) -> str:
    """A path of which the end of another one is asked: without steps up and back, which a script's path has not."""
    plain = posixpath.normpath(path.replace("\\", "/"))
    while plain.startswith("../"):
        plain = plain.removeprefix("../")
    return plain


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _files_by_operator(dump: DumpDir, selection: StepSelection) -> dict[tuple[int | None, int | None, str], list[str]]:
    files: dict[tuple[int | None, int | None, str], list[str]] = {}
    for file in dump.files_of(selection):
        if file.known_full_name is not None:
            key = file.levels.rank_id, file.levels.graph_id, file.known_full_name
            files.setdefault(key, []).append(file.path)
    return files


# -- one operator --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ShownTensor:
    """One tensor of an operator.

    origin      who made an input, where a graph file tells it
    numbers     None where there are none; `problem` then says why. Of a statistic.csv where that is all there is
    preview     its first elements as text
    shape       of what was measured; None where it could not be
    exponents   its elements by exponent; None where there are no bytes
    history     (iteration, numbers) of the same tensor, of this step and others, in their order; of at most 60
                iterations and 256 MiB, the last ones. Empty where there is one step
    is_unset    memory that no operator has written yet: neither numbers nor elements tell anything
    """

    io: str
    slot: Slot
    tensor: DumpedTensor
    origin: Origin | None
    numbers: Statistics | StatisticRow | None
    preview: str
    problem: str = ""
    shape: tuple[int, ...] | None = None
    exponents: ExponentHistogram | None = None
    history: tuple[tuple[int | None, Statistics | StatisticRow | None], ...] = ()
    is_unset: bool = False


@dataclass(frozen=True, slots=True)
class ShownOperator:
    """All data of a dump on an operator.

    readers  operators that read its outputs
    message  what its file says beside the data: how it failed
    """

    found: FoundOperator
    tensors: tuple[ShownTensor, ...]
    attrs: Mapping[str, object]
    source: tuple[SourceLine, ...]
    readers: tuple[str, ...]
    message: str = ""


def show_operator(
    dump: DumpDir | str | os.PathLike[str],
    name: str,
    *,
    rank: int | Collection[int] | None = None,
    graph: int | Collection[int] | None = None,
    iteration: int | Collection[int] | None = None,
    is_raw: bool = False,
) -> ShownOperator:
    """Inputs, outputs, shapes, statistics, first elements, attributes and source trace of an operator, in the first of
    the selected iterations in which it is not finite, else in the first that has it.

    Of a dump of statistics alone there are no first elements.

    is_raw  show data in a device format as they are stored, with their padding, not as the host has them

    Raises:  ConfigError when no operator or several go by that name; FormatError when there is nothing at the path.
    """
    dump = opened(dump)
    target = find_operator(dump, name, StepSelection(rank, graph, iteration), takes_statistics=True, is_suspect=True)
    node = target.node
    file = GraphFiles(dump).of(target.key)
    is_same = has_same_bytes if target.table is None else same_in(target.table)
    unset = UnsetTensors(target.step, file, is_same, is_strict=True)
    tensors = []
    for io, slot, tensor in target.operator.all_tensors():
        origin = None
        if io == INPUT and node is not None and slot.number < len(node.inputs):
            origin = node.inputs[slot.number]
        row = None if target.table is None else target.table.row(tensor)
        if unset.has(target.operator, io, slot):
            tensors.append(ShownTensor(io, slot, tensor, origin, None, "", is_unset=True))
            continue
        if row is not None:
            shown = ShownTensor(io, slot, tensor, origin, row, "")
        else:
            shown = _shown(io, slot, tensor, origin, is_raw)
        tensors.append(replace(shown, history=_history(target, shown)))
    readers: tuple[str, ...] = ()
    if node is not None and file is not None:
        readers = tuple(
            reader.full_name
            for reader in file.nodes
            if any(origin is not None and origin.name == node.full_name for origin in reader.inputs)
        )
    attributes, message = _notes([shown.tensor for shown in tensors])
    return ShownOperator(
        target,
        tuple(tensors),
        attributes if node is None or node.attrs is None else node.attrs,
        () if node is None else node.source,
        readers,
        message,
    )


def _history(
    target: FoundOperator, shown: ShownTensor
) -> tuple[tuple[int | None, Statistics | StatisticRow | None], ...]:
    found = [(target.key.iteration, shown.numbers)]
    room = _HISTORY_BYTES
    for key, operator in sorted(target.others, key=lambda entry: entry[0].iteration or 0, reverse=True):
        tensor = (operator.inputs if shown.io == INPUT else operator.outputs).get(shown.slot)
        if tensor is None or len(found) == _HISTORY_STEPS:
            continue
        room -= 0 if target.table is not None else tensor.size_bytes
        if room < 0:
            break
        found.append((key.iteration, _numbers(target, tensor)))
    return tuple(sorted(found, key=lambda entry: entry[0] or 0)) if len(found) > 1 else ()


def _numbers(target: FoundOperator, tensor: DumpedTensor) -> Statistics | StatisticRow | None:
    if target.table is not None:
        return target.table.row(tensor)
    try:
        array = tensor.load_host()
        return statistics(array, dtypes.dtype_from_numpy(array.dtype).name, plain_bytes=_PLAIN_BYTES)
    except (FormatError, DtypeError, OSError):
        return None


def _notes(tensors: Collection[DumpedTensor]) -> tuple[dict[str, object], str]:
    """Attributes and message in the dump files of an operator; most files have neither."""
    attributes: dict[str, object] = {}
    messages: list[str] = []
    for path in dict.fromkeys(tensor.path for tensor in tensors if tensor.file.form == BIN):
        try:
            content = read_dump(path)
        except (FormatError, OSError):
            continue  # its tensors tell of it
        attributes.update(content.attributes)
        messages += [content.message] if content.message else []
    return attributes, "\n".join(messages)


def _shown(io: str, slot: Slot, tensor: DumpedTensor, origin: Origin | None, is_raw: bool) -> ShownTensor:
    try:
        array = tensor.load() if is_raw else tensor.load_host()
        shape = tuple(array.shape)
        first = array.reshape(-1)[:_PREVIEW] if array.flags.c_contiguous else array.ravel()[:_PREVIEW]
        text = ", ".join(_element_text(value) for value in np.asarray(first))
        preview = f"[{text}{', ...' if array.size > _PREVIEW else ''}]"
        try:
            dtype = dtypes.dtype_from_numpy(array.dtype).name
            numbers = statistics(array, dtype, plain_bytes=_PLAIN_BYTES)
            exponents = exponent_histogram(array, dtype)
            return ShownTensor(io, slot, tensor, origin, numbers, preview, shape=shape, exponents=exponents)
        except DtypeError as error:
            return ShownTensor(io, slot, tensor, origin, None, preview, str(error), shape)
    except (FormatError, OSError) as error:
        return ShownTensor(io, slot, tensor, origin, None, "", str(error))


def _element_text(value: object) -> str:
    if isinstance(value, (bool, np.bool_, int, np.integer)):
        return str(value)
    if isinstance(value, (complex, np.complexfloating)):
        return f"{value:.6g}"
    return f"{float(value):.6g}"  # type: ignore[arg-type]

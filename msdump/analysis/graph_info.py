"""Data of graph files on operators: source lines, attributes, and producers of inputs.

Trees of msprobe have no graph files. Their stack.json tells the lines of a call, dump.json its attributes. Nor have
logs of DebugMode, which may tell the line of each call.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from msdump.analysis.steps import Operator, Slot, Step, StepKey
from msdump.errors import FormatError
from msdump.formats.debug_log import is_debug_log, operator_names, read_debug_log
from msdump.formats.dump_dir import DumpDir
from msdump.formats.dump_tensor import DumpedTensor
from msdump.formats.iterations_jsonl import ExecutedOperators, Maker
from msdump.formats.msprobe_json import Frame
from msdump.formats.paths.parse import msprobe_forward, msprobe_type
from msdump.graph.ir import IrGraph, IrNode, parse_ir, parse_ir_parameters
from msdump.graph.pb import BOOKKEEPING, GRADIENT_OF, GraphSummary, read_model
from msdump.graph.types import SourceLine, is_library
from msdump.storage.files import read_file
from msdump.storage.plain import GRAPH_BYTES, readable

_GRAPH_FILE = re.compile(r"ms_output_trace_code_graph_([0-9]{1,19})\.(?:pb|ir)")
_OPERAND = re.compile(r"%(?P<number>[0-9]{1,18})(?:\[(?P<item>[0-9]{1,18})\])?|%para[0-9]+_(?P<parameter>.*)")
_CONSTANT_NAMES = ("Default--data-", "Default_data-")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an input comes from: output `slot` of an operator, or a parameter or constant when `slot` is None.

    maker   (graph, full name, output) of the operator of another graph that made it in the same iteration, where the
            dump tells; `slot` is None then
    """

    name: str
    slot: int | None
    maker: tuple[int, str, int] | None = None

    @property
    def is_constant(self) -> bool:
        """True for a value that MindSpore fixed when the graph was compiled; it may be an attribute as well."""
        return self.slot is None and self.name.startswith(_CONSTANT_NAMES)


@dataclass(frozen=True, slots=True)
class GraphNode:
    """One operator as its graph file describes it.

    inputs   where each tensor input comes from; None for what is no tensor of the graph
    attrs    None when the file is text, which does not tell them as values
    source   the user's lines, outermost first
    """

    full_name: str
    op_type: str
    source: tuple[SourceLine, ...]
    inputs: tuple[Origin | None, ...]
    attrs: Mapping[str, Any] | None = None
    input_names: tuple[str, ...] = ()

    @property
    def own_line(self) -> SourceLine | None:
        """The line that a user would call the operator's: the innermost one outside of libraries."""
        own = [line for line in self.source if not is_library(line.path)]
        return own[-1] if own else self.source[-1] if self.source else None

    @property
    def inner_line(self) -> SourceLine | None:
        """The innermost line, where it is one of a library that the user's line calls; None where it is the user's."""
        return self.source[-1] if self.source and self.source[-1] != self.own_line else None


@dataclass(frozen=True, slots=True)
class GraphFile:
    """One graph: operators in execution order, and their indices by full name and by last part of it.

    inputs     names of its parameters and data inputs
    is_open    made while the program ran, without a word on what it returns
    gradients  output (full name of its operator, slot) -> input of the model whose gradient it is, where the file tells
    outputs    where what it returns comes from, in order, where the file tells
    """

    path: Path
    graph_id: int
    rank_id: int | None
    nodes: tuple[GraphNode, ...]
    by_name: Mapping[str, GraphNode] = field(repr=False)
    inputs: tuple[str, ...] = ()
    gradients: Mapping[tuple[str, int], str] = field(default_factory=dict)
    is_open: bool = False
    outputs: tuple[Origin | None, ...] = ()

    def find(self, *names: str | None) -> GraphNode | None:
        return next((self.by_name[name] for name in names if name is not None and name in self.by_name), None)


class GraphFiles:
    """The graph files of one dump, each read when it is first asked for. One thread.

    damaged   (file, what is wrong) of graph files that could not be read
    """

    def __init__(self, dump: DumpDir) -> None:
        self._paths: dict[tuple[int | None, int], list[Path]] = {}
        # Several of one step where processes have no ranks.
        self._calls: dict[StepKey, list[_MsprobeCalls | _LoggedCalls]] = {}
        if is_debug_log(dump.path):
            self._calls[StepKey(None, None, None)] = [_LoggedCalls(dump.path)]
        with dump.listed_once():
            paths = [path for suffix in ("pb", "ir") for path in dump.graph_files(suffix)]
            stacks = dump.msprobe_stack_files()
        for place, path in stacks:
            key = StepKey(place.rank_id, None, place.iteration)
            self._calls.setdefault(key, []).append(_MsprobeCalls(dump, path))
        for path in paths:
            match = _GRAPH_FILE.fullmatch(path.name)
            if match is not None:
                self._paths.setdefault((_rank_of(path), int(match[1])), []).append(path)
        self._ranks = list({rank for rank, _ in self._paths})
        self._read: dict[tuple[int | None, int], GraphFile | None] = {}
        self._dump = dump
        # As iterations executed them, which many have in common: by the object that says what was executed.
        self._executed: dict[tuple[int | None, int, int, int], tuple[ExecutedOperators, GraphFile]] = {}
        # The last step that was asked for: rows come step by step.
        self._last: tuple[StepKey, GraphFile] | None = None
        self.damaged: list[tuple[str, FormatError]] = []

    def __iter__(self) -> Iterator[GraphFile]:
        graphs = (self._graph(key) for key in sorted(self._paths, key=lambda key: (key[0] or 0, key[1])))
        return iter([graph for graph in graphs if graph is not None])

    @functools.cached_property
    def data_inputs(self) -> frozenset[str]:
        """Names of the inputs that are data of a step, and of no parameter or buffer. `.ir` files alone tell them.

        Edges: a file that cannot be read tells of none.
        """
        data: set[str] = set()
        weights: set[str] = set()
        for path in chain.from_iterable(self._paths.values()):
            if path.suffix == ".ir":
                with contextlib.suppress(FormatError, OSError, UnicodeDecodeError):
                    for each in parse_ir_parameters(_ir_text(path)):
                        (weights if each.is_weight else data).add(each.name)
        return frozenset(data - weights)

    def of(self, key: StepKey) -> GraphFile | None:
        """The graph of a step, as its iteration executed it; None when the dump has no file of it.

        Edges: a step of msprobe has none, but its stacks are read, so that the dump names a damaged file of them.
        """
        if key.graph_id is None:
            for calls in self._calls.get(key, ()):
                calls.read()
            return None
        if self._last is not None and self._last[0] == key:
            return self._last[1]
        graph = self._graph((key.rank_id, key.graph_id))
        executed = None if graph is None else self._dump.executed(_rank_dir(graph.path), graph.graph_id, key.iteration)
        if graph is None or executed is None:
            return graph
        names = partial(self._names, _rank_dir(graph.path))
        identity = key.rank_id, key.graph_id, id(executed.order), id(executed.makers)
        if identity not in self._executed:
            self._executed[identity] = executed, _as_executed(graph, executed, names)
        found = _with_attributes(self._executed[identity][1], executed.attributes, names(key.graph_id))
        self._last = key, found
        return found

    def node(self, key: StepKey, operator: Operator) -> GraphNode | None:
        """What the dump says of an operator beside its tensors; of a call of msprobe, its lines and attributes only."""
        if key.graph_id is None:
            return next((node for calls in self._calls.get(key, ()) if (node := calls.node(operator.op_name))), None)
        names = operator.full_name, operator.op_name
        graph = self.of(key)
        found = None if graph is None else graph.find(*names)
        if found is None and graph is not None:
            # One that raised has executed nothing.
            whole = self._graph((key.rank_id, key.graph_id))
            found = None if whole is None else whole.find(*names)
        return found

    def calls(self) -> Iterator[tuple[StepKey, GraphNode]]:
        """Calls that the stacks of msprobe name, step by step."""
        for key, parts in self._calls.items():
            for calls in parts:
                yield from ((key, node) for name in calls.names if (node := calls.node(name)) is not None)

    def _names(self, rank_dir: Path, graph_id: int) -> Sequence[str]:
        """Full names of the operators of a graph, as what was executed counts them."""
        return self._dump.order(rank_dir, graph_id).full_names

    def _graph(self, key: tuple[int | None, int]) -> GraphFile | None:
        if key not in self._paths and len(self._ranks) == 1:
            # An asynchronous dump tells the device of a process, its graph files the rank.
            key = self._ranks[0], key[1]
        if key not in self._read:
            self._read[key] = next((graph for graph in map(self._load, self._paths.get(key, ())) if graph), None)
        return self._read[key]

    def _load(self, path: Path) -> GraphFile | None:
        try:
            with readable(path):
                return read_graph(path)
        except FormatError as error:
            self.damaged.append((os.fspath(path), error))
        return None


class _MsprobeCalls:
    """Calls of one step of one process, as msprobe's files name them. Each file is read when it is first needed."""

    def __init__(self, dump: DumpDir, path: Path) -> None:
        self._dump, self._path = dump, path
        self._stacks: Mapping[str, tuple[Frame, ...]] | None = None
        self._arguments: Mapping[str, Mapping[str, Any]] | None = None

    @property
    def names(self) -> Iterable[str]:
        return self.read()

    def read(self) -> Mapping[str, tuple[Frame, ...]]:
        """Stacks by record."""
        if self._stacks is None:
            self._stacks = self._dump.msprobe_stacks(self._path)
        return self._stacks

    def node(self, name: str) -> GraphNode | None:
        """A record with the lines of its call; one of a backward pass has those of the forward call."""
        stacks = self.read()
        frames = stacks.get(name) or stacks.get(msprobe_forward(name))
        if not frames:
            return None
        if self._arguments is None:
            self._arguments = self._dump.msprobe_arguments(self._path)
        source = tuple(SourceLine(frame.path, frame.line, frame.code) for frame in frames)
        return GraphNode(name, msprobe_type(name), source, (), self._arguments.get(name) or None)


class _LoggedCalls:
    """Operators of a log of DebugMode that know their lines."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._nodes: dict[str, GraphNode] | None = None

    @property
    def names(self) -> Iterable[str]:
        return self.read()

    def read(self) -> Mapping[str, GraphNode]:
        """Operators by name."""
        if self._nodes is None:
            calls = [call for call in read_debug_log(self._path) if call.is_operator]
            self._nodes = {
                name: GraphNode(name, call.name, (SourceLine(frame.path, frame.line, frame.code),), ())
                for name, call in zip(operator_names(calls), calls, strict=True)
                if (frame := call.source) is not None
            }
        return self._nodes

    def node(self, name: str) -> GraphNode | None:
        return self.read().get(name)


def read_graph(path: str | os.PathLike[str]) -> GraphFile:
    """Read a graph file (.pb or .ir) of a synchronous dump.

    Raises: FormatError for a damaged one; OSError when it cannot be opened.
    """
    path = Path(path)
    match = _GRAPH_FILE.fullmatch(path.name)
    inputs: tuple[str, ...]
    gradients: Mapping[tuple[str, int], str] = {}
    outputs: tuple[Origin | None, ...] = ()
    is_open = False
    if path.suffix == ".ir":
        try:
            nodes = _ir_nodes(parse_ir(_ir_text(path)))
        except UnicodeDecodeError as error:
            raise FormatError(f"{path}: expected UTF-8 text, got byte {error.object[error.start]}.") from error
        inputs = _origins_outside(nodes)
    else:
        graph = read_model(path)
        nodes, gradients, outputs = _pb_nodes(graph)
        inputs = tuple(parameter.name for parameter in graph.parameters)
        is_open = any(
            node.op_type == "MakeTuple" and not node.inputs for node in graph.nodes if node.name in graph.outputs
        )
    graph_id = 0 if match is None else int(match[1])
    return GraphFile(path, graph_id, _rank_of(path), nodes, _by_name(nodes), inputs, gradients, is_open, outputs)


def _ir_text(path: Path) -> str:
    """Raises: UnicodeDecodeError; OSError when it cannot be opened."""
    return read_file(path, GRAPH_BYTES).decode().replace("\r\n", "\n")


def _as_executed(graph: GraphFile, executed: ExecutedOperators, names: Callable[[int], Sequence[str]]) -> GraphFile:
    """The graph with the operators that ran, in their order, and what they read in that iteration.

    names   graph -> full names of its operators, as they are counted
    """
    own = names(graph.graph_id)
    outside: dict[int, str] = {}
    for index, makers in executed.makers.items():
        node = graph.by_name.get(own[index]) if index < len(own) else None
        for maker, origin in zip(makers, () if node is None else node.inputs, strict=False):
            if isinstance(maker, int) and origin is not None and origin.slot is None:
                outside.setdefault(maker, origin.name)
    found = ((index, graph.by_name.get(own[index])) for index in executed.order if index < len(own))
    # One that ran several times under a name counts once, as the dump shows it.
    ran = {index: node for index, node in found if node is not None}
    nodes = tuple(
        replace(node, inputs=_executed_inputs(graph, node, executed.makers.get(index), names, outside))
        for index, node in ran.items()
    )
    return replace(graph, nodes=nodes, by_name=_by_name(nodes))


def _with_attributes(graph: GraphFile, attributes: Mapping[int, Mapping[str, Any]], names: Sequence[str]) -> GraphFile:
    """The graph with the attributes that an iteration had."""
    others = {names[index]: values for index, values in attributes.items() if index < len(names)}
    nodes = tuple(
        replace(node, attrs={**(node.attrs or {}), **others[node.full_name]}) if node.full_name in others else node
        for node in (graph.nodes if others else ())
    )
    return replace(graph, nodes=nodes, by_name=_by_name(nodes)) if others else graph


def _executed_inputs(
    graph: GraphFile,
    node: GraphNode,
    makers: tuple[Maker, ...] | None,
    names: Callable[[int], Sequence[str]],
    outside: Mapping[int, str],
) -> tuple[Origin | None, ...]:
    """outside: names of what no operator made in the iteration, where the graph file has them"""
    if makers is None:
        return node.inputs
    inputs: list[Origin | None] = []
    for slot, maker in enumerate(makers):
        first = node.inputs[slot] if slot < len(node.inputs) else None
        if isinstance(maker, int):
            # One that an operator has made in the iteration that the graph file describes has no name of its own.
            inputs.append(Origin(outside.get(maker, f"value {maker}"), None))
            continue
        if first is None or first.slot is not None:
            first = Origin(node.input_names[slot] if slot < len(node.input_names) else "", None)
        if maker is None:
            inputs.append(first)
            continue
        graph_id, index, output = maker
        makers_names = names(graph_id)
        if index >= len(makers_names):
            inputs.append(first)
        elif graph_id == graph.graph_id:
            inputs.append(Origin(makers_names[index], output))
        else:
            inputs.append(replace(first, maker=(graph_id, makers_names[index], output)))
    return tuple(inputs)


def _origins_outside(nodes: Sequence[GraphNode]) -> tuple[str, ...]:
    """Names of what operators read and no operator makes, but for constants."""
    origins = (origin for node in nodes for origin in node.inputs if origin is not None and origin.slot is None)
    return tuple(dict.fromkeys(origin.name for origin in origins if not origin.is_constant))


def _rank_dir(path: Path) -> Path:
    """Folder of the rank that a graph file describes."""
    return path.parent.parent


def _rank_of(path: Path) -> int | None:
    match = re.fullmatch(r"rank_([0-9]{1,19})", path.parent.parent.name)
    return None if match is None else int(match[1])


def _by_name(nodes: Sequence[GraphNode]) -> dict[str, GraphNode]:
    """By full name, and by the last part of it where only one operator has that."""
    by_name: dict[str, GraphNode] = {}
    shared: set[str] = set()
    for node in nodes:
        last = node.full_name.rsplit("/", 1)[-1]
        if by_name.setdefault(last, node) is not node:
            shared.add(last)
    for last in shared:
        del by_name[last]
    return {**by_name, **{node.full_name: node for node in nodes}}


class _Origins:
    """Where values come from, behind the nodes that only pass tensors on. Each chain of such nodes is walked once.

    follow   of a value: its origin, None when it has none; or the value that it is, and its index in that one where it
             is an item of a tuple
    """

    def __init__(self, follow: Callable[[str], Origin | tuple[str, int | None] | None]) -> None:
        self._follow = follow
        # Per value: origin, and whether an item between here and there has determined its slot.
        self._origins: dict[str, tuple[Origin | None, bool]] = {}

    def of(self, value: str) -> Origin | None:
        chain: dict[str, int | None] = {}
        origin_of_value: tuple[Origin | None, bool] = (None, False)
        while True:
            if value in self._origins:
                origin_of_value = self._origins[value]
                break
            if value in chain:  # a circle, which no graph has
                break
            step = self._follow(value)
            if not isinstance(step, tuple):
                chain[value] = None
                origin_of_value = step, False
                break
            chain[value] = step[1]
            value = step[0]
        for passed, item in reversed(chain.items()):
            origin, has_slot = origin_of_value
            if item is not None and not has_slot:
                if origin is not None and origin.slot is not None:
                    origin = replace(origin, slot=item)
                origin_of_value = origin, True
            self._origins[passed] = origin_of_value
        return origin_of_value[0]


def _pb_nodes(
    graph: GraphSummary,
) -> tuple[tuple[GraphNode, ...], dict[tuple[str, int], str], tuple[Origin | None, ...]]:
    """Operators, gradients and outputs, as of GraphFile."""
    by_number = {node.name: node for node in graph.nodes}
    items = {constant.key: constant.value for constant in graph.constants if isinstance(constant.value, int)}
    constants = {constant.key: constant.full_name for constant in graph.constants}

    def follow(name: str) -> Origin | tuple[str, int | None] | None:
        node = by_number.get(name)
        if node is None:
            return Origin(constants.get(name, name), None)
        if node.op_type not in BOOKKEEPING:
            return Origin(node.full_name, 0)
        if not node.inputs:
            return None
        is_item = node.op_type == "TupleGetItem" and len(node.inputs) == 2
        return node.inputs[0], items.get(node.inputs[1], 0) if is_item else None

    origins = _Origins(follow)
    nodes = tuple(
        GraphNode(
            node.full_name, node.op_type, node.source, tuple(map(origins.of, node.inputs)), node.attrs, node.input_names
        )
        for node in graph.kernels
    )
    gradients = {}
    for node in graph.nodes:
        names = node.attrs.get(GRADIENT_OF, ())
        for name, number in zip(names if isinstance(names, list | tuple) else (), node.inputs, strict=False):
            made_by = origins.of(number)
            if isinstance(name, str) and name and made_by is not None and made_by.slot is not None:
                gradients[made_by.name, made_by.slot] = name
    by_name = {node.name: node for node in graph.nodes}
    returned = [by_name[name] for name in graph.outputs if name in by_name]
    items_returned = [
        name for node in returned for name in (node.inputs if node.op_type == "MakeTuple" else (node.name,))
    ]
    return nodes, gradients, tuple(map(origins.of, items_returned))


def _ir_nodes(graph: IrGraph) -> tuple[GraphNode, ...]:
    by_number = {node.number: node for node in graph.nodes}

    def follow(text: str) -> Origin | tuple[str, int | None] | None:
        match = _OPERAND.fullmatch(text)
        if match is None:
            return None
        if match["parameter"] is not None:
            return Origin(match["parameter"], None)
        node: IrNode | None = by_number.get(int(match["number"]))
        if node is None:
            return None
        if match["item"] is not None:
            return f"%{match['number']}", int(match["item"])
        if node.op_type not in BOOKKEEPING:
            return Origin(node.full_name, 0)
        if not node.operands:
            return None
        index = re.search(r"-?[0-9]{1,18}", node.operands[1]) if len(node.operands) == 2 else None
        is_item = node.op_type == "TupleGetItem" and index is not None
        return node.operands[0], int(index[0]) if is_item and index is not None else None

    origins = _Origins(follow)
    return tuple(
        GraphNode(node.full_name, node.op_type, node.source, tuple(map(origins.of, node.operands)))
        for node in graph.nodes
        if node.op_type not in BOOKKEEPING
    )


def with_inputs(step: Step, graph: GraphFile | None) -> Step:
    """The step with inputs that were not dumped taken from the outputs of the operators that made them.

    Edges: operators with any dumped input stay as they are; parameters are left out, because a dump shows them as the
           step left them.
    """
    if graph is None:
        return step
    outputs = {}
    for operator in step.operators:
        node = graph.find(operator.full_name, operator.op_name)
        if node is not None:
            outputs[node.full_name] = operator.outputs
    return replace(step, operators=tuple(_with_inputs(operator, graph, outputs) for operator in step.operators))


def _with_inputs(operator: Operator, graph: GraphFile, outputs: Mapping[str, Mapping[Slot, DumpedTensor]]) -> Operator:
    node = None if operator.inputs else graph.find(operator.full_name, operator.op_name)
    if node is None:
        return operator
    inputs = {}
    for number, origin in enumerate(node.inputs):
        if origin is not None and origin.slot is not None:
            tensor = outputs.get(origin.name, {}).get(Slot(origin.slot))
            if tensor is not None:
                inputs[Slot(number)] = tensor
    return replace(operator, inputs=inputs)

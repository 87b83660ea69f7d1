"""TorchAir's eager data dump: an FX graph as the watched run sees it, with all values that its operators read and make.

Values need not be tensors: numbers, text and lists of them are dumped as well.
"""

from __future__ import annotations

import itertools
import operator
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Graph as FxGraph
from torch.fx import GraphModule, Node

from msdump import measuring
from msdump.arrays import Array
from msdump.dumpers.capture import Clock
from msdump.dumpers.immediate import ImmediateDumper
from msdump.dumpers.limits import Footprint
from msdump.errors import ConfigError
from msdump.formats.paths.torchair import (
    INPUT,
    OUTPUT,
    SKIPPED_FILE,
    TorchairFileName,
    format_torchair_name,
    rank_dir,
    safe_target,
    step_dir,
)
from msdump.formats.torchair import TorchairWriter, Unshown, torchair_size, unshown
from msdump.frontends.torch.convert import NoArrayError, array_from_value, original_dtype
from msdump.frontends.torch.program import FxProgram
from msdump.frontends.torchair.file_dump import FileDump, eager
from msdump.frontends.torchair.ranks import process_rank
from msdump.graph.graph import Graph, Value
from msdump.graph.primitive import Primitive, PrimitiveDef
from msdump.graph.run import Calls, ObservedGraph
from msdump.graph.types import TensorType
from msdump.records import INPUT as READ
from msdump.records import OpInfo, TensorRecord

NodeFilter = Callable[[Node], Any]


@dataclass(frozen=True, slots=True)
class NodePlan:
    """A node that is dumped.

    is_collective  its results are not there before somebody waited for them
    is_wait        it is that wait: its input is not there before it ran
    """

    name: str
    target: str
    is_collective: bool = False
    is_wait: bool = False


def plan_nodes(graph: FxGraph, node_filter: NodeFilter | None) -> dict[Node, NodePlan]:
    """Plans of the nodes that call an operator and pass the filter.

    The filter sees every node of the graph once.
    Raises: ConfigError that names the node when the filter raises or gives anything but this node or nothing.
    Source: TorchAir eager data dump, `data_dump.filter`.
    """
    chosen = [node for node in graph.nodes if node_filter is None or _passes(node, node_filter)]
    return {node: _plan(node) for node in chosen if node.op == "call_function" and node.target is not operator.getitem}


def target_name(target: Any) -> str:
    """Name of an operator in file names: "aten.add.Tensor"; "_operator.mul" for a Python function."""
    if isinstance(target, torch._ops.OpOverload):
        return safe_target(str(target))
    name = getattr(target, "__name__", None)
    if name is None or isinstance(target, torch._ops.HigherOrderOperator):
        return safe_target(str(target))
    return safe_target(f"{getattr(target, '__module__', None) or 'builtins'}.{name}")


def _passes(node: Node, node_filter: NodeFilter) -> bool:
    where = "config.debug.data_dump.filter"
    try:
        answer = node_filter(node)
    except Exception as error:
        raise ConfigError(
            f"{where}: expected an answer for node {node.name!r} ({node.op} {target_name(node.target)}), got "
            f"{type(error).__name__}: {error}. It sees every node, also inputs (op placeholder) and the output."
        ) from error
    if answer is node:
        return True
    if isinstance(answer, Node):
        raise ConfigError(
            f"{where}: expected node {node.name!r} itself or None, got node {answer.name!r}. Return the function's "
            "argument, not another node."
        )
    if answer:
        raise ConfigError(
            f"{where}: expected node {node.name!r} itself or None, got {answer!r}. Write `n if ... else None`."
        )
    return False


def _plan(node: Node) -> NodePlan:
    target = target_name(node.target)
    is_distributed = target.startswith(("_c10d_functional.", "_c10d_functional_autograd."))
    is_wait = is_distributed and ".wait_tensor." in target
    return NodePlan(node.name, target, is_distributed and not is_wait, is_wait)


# Position or name of an argument, or position of a result; element of a list, None for what is no list of tensors.
_Place = tuple[int | str, int | None]
_NO_PLACE = "it is of another structure than the compiled graph says"


@dataclass(frozen=True, slots=True)
class _Operands:
    """Where the values of a call are."""

    op: OpInfo
    plan: NodePlan
    inputs: tuple[_Place, ...]
    outputs: tuple[_Place, ...]


class EagerDump:
    """The dump into one folder, of all graphs of this process that go there."""

    def __init__(self, root: str, clock: Clock) -> None:
        self._places: dict[tuple[int, str], tuple[tuple[_Place, ...], tuple[_Place, ...]]] = {}
        self.files = FileDump(
            root,
            eager,
            lambda *parts: TorchairWriter(parts[0], self._name, *parts[1:]),
            Footprint(torchair_size, _is_unshown, lambda record: (self._text(record), SKIPPED_FILE)),
            " and differ in their time stamps only",
        )
        self.dumper = ImmediateDumper([self.files.writer], self.files.tally, clock)

    def add(self, graph_id: int, name: str, inputs: tuple[_Place, ...], outputs: tuple[_Place, ...]) -> None:
        """What the slots of an operator's records are in the names of files."""
        self._places[graph_id, name] = inputs, outputs

    def _name(self, record: TensorRecord) -> TorchairFileName:
        inputs, outputs = self._places[record.graph_id, record.op_name]
        io, places = (INPUT, inputs) if record.io == READ else (OUTPUT, outputs)
        slot, element = places[record.slot]
        return TorchairFileName(record.op_name, record.op_type, io, slot, element, record.timestamp_us)

    def _text(self, record: TensorRecord) -> str:
        return format_torchair_name(self._name(record))


def eager_dump(root: str, clock: Clock) -> EagerDump:
    """The one of this process.   Raises: ConfigError for a limit of the environment that cannot be read."""
    return _dumps.setdefault(root, EagerDump(root, clock)) if root not in _dumps else _dumps[root]


_dumps: dict[str, EagerDump] = {}


class DumpedGraph:
    """One compiled graph. Each call of `run` is one step with a folder of its own; any thread may call it.

    A step whose number was given keeps it when the model raises in the middle: its files never mix with another call's.
    """

    def __init__(self, module: GraphModule, plans: Mapping[Node, NodePlan], dump: EagerDump, graph_id: int) -> None:
        self._program = FxProgram(module)
        self._dump = dump
        self._graph_id = graph_id
        self._steps = itertools.count()
        graph = Graph(f"graph_{graph_id}", graph_id)
        places: list[tuple[NodePlan, tuple[_Place, ...], tuple[_Place, ...]] | None] = []
        for call in self._program.calls:
            plan = plans.get(call.node)
            places.append(None if plan is None else (plan, *_add_node(graph, call.node, plan, module)))
        self._seen = ObservedGraph(graph, [dump.dumper])
        ops = iter(self._seen.ops)
        self._operands = [None if place is None else _Operands(next(ops), *place) for place in places]
        # Of one run.
        self._values = sum(len(each.inputs) + len(each.outputs) for each in self._operands if each is not None)
        for operands in self._operands:
            if operands is not None:
                dump.add(graph_id, operands.plan.name, operands.inputs, operands.outputs)

    def run(self, args: list[Any]) -> Any:
        """Run the graph; `args` is emptied, so that inputs are freed as soon as nobody needs them."""
        step = next(self._steps)
        files, place = self._dump.files, (self._graph_id, step)
        measuring.note_run(self._graph_id, eager)
        rank = rank_dir(files.root, *process_rank())
        if not files.enter(os.fspath(rank), self._values):
            return self._program.run(args)
        files.begin_run(*place, step_dir(rank, *place))
        try:
            watched = self._seen.begin(step)
            if watched is None:
                return self._program.run(args)
            slots = self._program.begin(args)
            watched.run(_EagerCalls(self._program, self._operands, slots))
            return self._program.outputs(slots)
        finally:
            # Also after Ctrl-C, of which observers are not told.
            self._dump.dumper.end_iteration(*place)
            files.end_run(*place)


class _EagerCalls(Calls):
    """One run. Arrays are views of the tensors wherever numpy can have one."""

    def __init__(self, program: FxProgram, operands: Sequence[_Operands | None], slots: list[Any]) -> None:
        self.ops = [None if each is None else each.op for each in operands]
        self._calls = program.calls
        self._operands = operands
        self._slots = slots

    def launch(self, number: int) -> None:
        call = self._calls[number]
        self._slots[call.out] = call.run(self._slots)

    def inputs(self, number: int) -> Sequence[Array]:
        call, operands = self._calls[number], self._of(number)
        args = call.gather(self._slots)
        keywords = call.keywords(self._slots) if call.keywords is not None else {}
        if operands.plan.is_wait:
            _wait(args)
        return [_array(keywords if isinstance(place[0], str) else args, place) for place in operands.inputs]

    def outputs(self, number: int) -> Sequence[Array]:
        operands, result = self._of(number), self._slots[self._calls[number].out]
        if operands.plan.is_collective:
            _wait(result)
        results = result if isinstance(result, (list, tuple)) else (result,)
        return [_array(results, place) for place in operands.outputs]

    def array(self, value: Value) -> Array:
        return unshown("nothing is read when the step has ended")

    def release(self, number: int) -> None:
        for slot in self._calls[number].frees:
            self._slots[slot] = None

    def _of(self, number: int) -> _Operands:
        operands = self._operands[number]
        assert operands is not None
        return operands


def _add_node(
    graph: Graph, node: Node, plan: NodePlan, module: GraphModule
) -> tuple[tuple[_Place, ...], tuple[_Place, ...]]:
    """Append the node of a call; the places of its inputs and outputs."""
    arguments: list[tuple[int | str, Any]] = [*enumerate(node.args), *node.kwargs.items()]
    read = [each for slot, value in arguments for each in _places(slot, value, module)]
    result = node.meta.get("val")
    results = enumerate(result if isinstance(result, (list, tuple)) else (result,))
    made = [each for slot, value in results for each in _places(slot, value, module)]
    # Each operand is a value of its own: nothing says which of them another operator may write.
    inputs = [graph.add_input(f"{plan.name}.{place}", _type(value)) for place, value in read]
    primitive = Primitive(plan.target, definition=PrimitiveDef(plan.target))
    graph.add_foreign_node(primitive, inputs, [_type(value) for _, value in made], "", name=plan.name)
    return tuple(place for place, _ in read), tuple(place for place, _ in made)


def _places(slot: int | str, value: Any, module: GraphModule) -> Iterator[tuple[_Place, Any]]:
    """One for an argument or a result, or one for each element of a list that holds tensors."""
    value = _value(value, module)
    if isinstance(value, (list, tuple)):
        elements = [_value(element, module) for element in value]
        if any(isinstance(element, torch.Tensor) for element in elements):
            for number, element in enumerate(elements):
                yield (slot, number), element
            return
    yield (slot, None), value


def _value(value: Any, module: GraphModule) -> Any:
    """What stands for the value of a node: a fake tensor, mostly."""
    if not isinstance(value, Node):
        return value
    return operator.attrgetter(str(value.target))(module) if value.op == "get_attr" else value.meta.get("val")


def _type(value: Any) -> TensorType:
    """The dtype where numpy lacks it; all else is the array's own."""
    return TensorType(original_dtype(value) or "", (-1,))


def _array(values: Any, place: _Place) -> Array:
    slot, element = place
    try:
        value = values[slot] if element is None else values[slot][element]
    except (LookupError, TypeError):
        return unshown(_NO_PLACE)
    try:
        return array_from_value(value)
    except (NoArrayError, MemoryError) as error:
        return unshown(str(error) or "there is not enough memory for a copy")


def _is_unshown(record: TensorRecord) -> bool:
    return isinstance(record.data, Unshown)


def _wait(values: Any) -> None:
    """Wait until a collective's results are there; the graph's own wait then finds nothing left to do."""
    for tensor in values if isinstance(values, (list, tuple)) else (values,):
        if isinstance(tensor, torch.Tensor):
            torch.ops._c10d_functional.wait_tensor(tensor)

"""FX graphs as the watched run sees them, with all values that their operators read and make.

Values need not be tensors: numbers, text and lists of them are shown as well.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Graph as FxGraph
from torch.fx import GraphModule, Node

from msdump.errors import ConfigError
from msdump.formats.paths.torchair import (
    safe_target,
)
from msdump.formats.torchair import unshown
from msdump.frontends.torch.convert import NoArrayError, array_from_value, original_dtype
from msdump.frontends.torch.program import FxProgram
from msdump.graph.graph import Graph, Value
from msdump.graph.primitive import Primitive, PrimitiveDef
from msdump.graph.run import Calls, ObservedGraph, Observer
from msdump.graph.types import TensorType
from msdump.tensors.arrays import Array
from msdump.tensors.records import OpInfo

NodeFilter = Callable[[Node], Any]


@dataclass(frozen=True, slots=True)
class NodePlan:
    """A node that is dumped.

    is_collective  results are valid after `wait_tensor`
    is_wait        it is `wait_tensor`: its input is valid after it ran
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


def target_name(target: object) -> str:
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
_OperandPath = tuple[int | str, int | None]
# Of the inputs and of the outputs of a node.
Slots = tuple[tuple[_OperandPath, ...], tuple[_OperandPath, ...]]
# The call whose result a value is, and where in the result it is.
_Source = tuple[Node, tuple[int, ...]]
_NO_OPERAND = "its structure differs from the compiled graph"


@dataclass(frozen=True, slots=True)
class _Operands:
    """Where the values of a call are."""

    op: OpInfo
    plan: NodePlan
    inputs: tuple[_OperandPath, ...]
    outputs: tuple[_OperandPath, ...]


class EagerGraph:
    """An FX graph as observers see it: the calls that have a plan, in the order in which they run.

    operand_paths  name of a node -> what the slots of its operands are in the names of files: inputs, outputs
    values  how many operands a run has

    Two operands are one value when they are the same result of the same call, and no call between them may have written
    to memory: one whose schema says that it writes, and one that has no schema.
    """

    def __init__(
        self, module: GraphModule, plans: Mapping[Node, NodePlan], graph_id: int, observers: Sequence[Observer]
    ) -> None:
        self._program = FxProgram(module)
        graph = _GraphOfCalls(module, graph_id)
        plan_by_call = [plans.get(call.node) for call in self._program.calls]
        for call, plan in zip(self._program.calls, plan_by_call, strict=True):
            graph.add(call.node, plan)
        self._seen = ObservedGraph(graph.graph, observers)
        self.operand_paths = graph.operand_paths
        ops = {op.full_name: op for op in self._seen.ops}
        self._operands = [
            None if plan is None else _Operands(ops[plan.name], plan, *self.operand_paths[plan.name])
            for plan in plan_by_call
        ]
        self.values = sum(len(inputs) + len(outputs) for inputs, outputs in self.operand_paths.values())

    def run(self, step: int, args: list[object]) -> Any:
        """Run the graph; `args` is emptied, so that inputs are freed after their last use."""
        watched = self._seen.begin(step)
        if watched is None:
            return self.run_unobserved(args)
        slots = self._program.begin(args)
        watched.run(_EagerCalls(self._program, self._operands, slots))
        return self._program.outputs(slots)

    def run_unobserved(self, args: list[object]) -> Any:
        return self._program.run(args)


class _EagerCalls(Calls):
    """One run. Arrays are views of the tensors wherever numpy can have one."""

    def __init__(self, program: FxProgram, operands: Sequence[_Operands | None], slots: list[object]) -> None:
        self.ops = [None if operand is None else operand.op for operand in operands]
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
        return [
            _array(keywords if isinstance(operand_path[0], str) else args, operand_path)
            for operand_path in operands.inputs
        ]

    def outputs(self, number: int) -> Sequence[Array]:
        operands, result = self._of(number), self._slots[self._calls[number].out]
        if operands.plan.is_collective:
            _wait(result)
        results = result if isinstance(result, (list, tuple)) else (result,)
        return [_array(results, operand_path) for operand_path in operands.outputs]

    def array(self, value: Value) -> Array:
        return unshown("nothing is read when the step has ended")

    def release(self, number: int) -> None:
        for slot in self._calls[number].frees:
            self._slots[slot] = None

    def _of(self, number: int) -> _Operands:
        operands = self._operands[number]
        assert operands is not None
        return operands


class _GraphOfCalls:
    """Makes the graph of the calls that are dumped, one call after another."""

    def __init__(self, module: GraphModule, graph_id: int) -> None:
        self.graph = Graph(f"graph_{graph_id}", graph_id)
        self.operand_paths: dict[str, Slots] = {}
        self._module = module
        # Tensors that have not been written since they were made.
        self._values: dict[_Source, Value] = {}

    def add(self, node: Node, plan: NodePlan | None) -> None:
        """Append the node of a call. One without a plan may have written to memory all the same."""
        inputs: list[Value] = []
        read: list[_OperandPath] = []
        arguments: list[tuple[int | str, object]] = (
            [] if plan is None else [*enumerate(node.args), *node.kwargs.items()]
        )
        for slot, argument in arguments:
            for operand_path, value, source in _operand_paths(slot, argument, self._module):
                inputs.append(self._value(source) or self._input(f"{node.name}.{operand_path}", value, source))
                read.append(operand_path)
        if not _keeps_memory(node):
            self._values.clear()
        if plan is not None:
            self._add_call(node, plan, inputs, tuple(read))

    def _add_call(self, node: Node, plan: NodePlan, inputs: Sequence[Value], read: tuple[_OperandPath, ...]) -> None:
        result = node.meta.get("val")
        is_list = isinstance(result, (list, tuple))
        results: Sequence[Any] = result if isinstance(result, (list, tuple)) else (result,)
        parts = [operand_path for slot, value in enumerate(results) for operand_path in _operand_paths(slot, value)]
        primitive = Primitive(plan.target, definition=PrimitiveDef(plan.target))
        types = [_type(value) for _, value, _ in parts]
        made = self.graph.add_foreign_node(primitive, inputs, types, "", name=plan.name).outputs
        for ((slot, element), _, _), value in zip(parts, made, strict=True):
            path = (int(slot),) if element is None else (int(slot), element)
            self._values[node, path if is_list else path[1:]] = value
        self.operand_paths[plan.name] = read, tuple(operand_path for operand_path, _, _ in parts)

    def _value(self, source: _Source | None) -> Value | None:
        return None if source is None else self._values.get(source)

    def _input(self, name: str, value: object, source: _Source | None) -> Value:
        made = self.graph.add_input(name, _type(value))
        if source is not None:
            self._values[source] = made
        return made


def _operand_paths(
    slot: int | str, value: object, module: GraphModule | None = None
) -> Iterator[tuple[_OperandPath, object, _Source | None]]:
    """One for an argument or a result, or one for each element of a list that holds tensors.

    (path of the operand, what stands for the value, where it comes from)
    """
    shown = _value(value, module)
    if isinstance(shown, (list, tuple)):
        elements = [_value(element, module) for element in shown]
        if any(isinstance(element, torch.Tensor) for element in elements):
            for number, element in enumerate(elements):
                source = _source(value, number) if isinstance(value, Node) else _source(shown[number])
                yield (slot, number), element, source
            return
    yield (slot, None), shown, _source(value)


def _source(value: Any, *path: int) -> _Source | None:
    """None for what is no result of a call, as a number that stands in the graph."""
    if not isinstance(value, Node):
        return None
    while value.target is operator.getitem and isinstance(value.args[0], Node) and isinstance(value.args[1], int):
        value, path = value.args[0], (value.args[1], *path)
    return value, path


# They write the running mean and variance of which their schemas say that they are only read.
_WRITES_UNSAID = frozenset({"aten::native_batch_norm", "aten::cudnn_batch_norm", "aten::miopen_batch_norm"})


def _keeps_memory(node: Node) -> bool:
    """Whether it is sure that a call writes no tensor that was there before."""
    target = node.target
    if isinstance(target, torch._ops.OpOverload):
        schema = target._schema
        return target.namespace in ("aten", "prims") and not schema.is_mutable and schema.name not in _WRITES_UNSAID
    is_tensor = (isinstance(read.meta.get("val"), torch.Tensor) for read in node.all_input_nodes)
    return target is operator.getitem or not any(is_tensor)


def _value(value: object, module: GraphModule | None) -> Any:
    """What stands for the value of a node: a fake tensor, mostly."""
    if not isinstance(value, Node) or module is None:
        return value
    return operator.attrgetter(str(value.target))(module) if value.op == "get_attr" else value.meta.get("val")


def _type(value: object) -> TensorType:
    """The dtype where numpy lacks it; all else is the array's own."""
    return TensorType(original_dtype(value) or "", (-1,))


def _array(values: Any, operand_path: _OperandPath) -> Array:
    slot, element = operand_path
    try:
        value = values[slot] if element is None else values[slot][element]
    except (LookupError, TypeError):
        return unshown(_NO_OPERAND)
    try:
        return array_from_value(value)
    except (NoArrayError, MemoryError) as error:
        return unshown(str(error) or "there is not enough memory for a copy")


def _wait(values: object) -> None:
    """Wait until a collective's results are there; the graph's own wait then finds nothing left to do."""
    for tensor in values if isinstance(values, (list, tuple)) else (values,):
        if isinstance(tensor, torch.Tensor):
            torch.ops._c10d_functional.wait_tensor(tensor)

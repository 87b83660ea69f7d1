"""AclWatchedGraph: what an acl.json says about one graph of a model, decided once: which operand is written when.

This is the one place that turns the plan's choices and positions into what the dumper does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msdump.config.acl_plan import AclPlan
from msdump.config.acl_selection import Choice, Operator
from msdump.dump.snapshot import Operand
from msdump.dump.watched import GraphMemory
from msdump.events import AFTER, BEFORE, OpInfo, TensorInfo
from msdump.graph.graph import Graph, KeyTable, Node, Value
from msdump.records import INPUT, OUTPUT

DATA = "Data"
_COLLECTIVE_PREFIX = "Hcom"


@dataclass(frozen=True, slots=True)
class DataOperator:
    """An input of the graph as the operator that hands it in: its input and its output are the same tensor."""

    value: Value
    info: TensorInfo
    operands: tuple[Operand, ...]


class AclWatchedGraph(GraphMemory):
    """What is written of one graph.

    before     by operator: operands of a file of their own, written as they are before the operator runs
    after      by operator: operands that are written when it has run
    data       by operator: inputs of the graph that it is the first to read
    late_data  inputs of the graph that no operator reads
    masks      what the executor has to show
    """

    def __init__(self, graph: Graph, plan: AclPlan, choices: Sequence[Choice | None]) -> None:
        """choices: for each of `graph_operators`, or for those that compute alone: then no input is written."""
        self.ops = graph.op_infos()
        super().__init__(graph, self.ops)
        of_data = len(choices) - len(self.ops)
        wanted = (INPUT,) * plan.dumps_input + (OUTPUT,) * plan.dumps_output
        self.before: list[tuple[Operand, ...]] = []
        self.after: list[tuple[Operand, ...]] = []
        for op, choice in zip(self.ops, choices[of_data:], strict=True):
            operands = _operands(op.inputs, op.outputs, wanted, choice)
            is_apart = overwrites_inputs(op)
            self.before.append(tuple(each for each in operands if is_apart and each.io == INPUT))
            self.after.append(tuple(each for each in operands if not (is_apart and each.io == INPUT)))
        self.data: dict[int, list[tuple[int, DataOperator]]] = {}
        self.late_data: list[DataOperator] = []
        for value, choice in zip(graph.inputs[:of_data], choices[:of_data], strict=True):
            self._add_data(graph, value, wanted, choice)
        self.masks = [
            (BEFORE if before or op.index in self.data else 0) | (AFTER if after else 0)
            for op, before, after in zip(self.ops, self.before, self.after, strict=True)
        ]
        self.operator_masks = [len(before) + len(after) for before, after in zip(self.before, self.after, strict=True)]

    @property
    def is_watched(self) -> bool:
        """False when nothing of the graph is written."""
        return any(self.masks) or bool(self.late_data)

    def _add_data(self, graph: Graph, value: Value, wanted: Sequence[str], choice: Choice | None) -> None:
        """Written when its first reader is about to run: later operators may write its memory."""
        key = KeyTable(graph).of(value)
        info = TensorInfo(key, value.type.dtype, value.type.shape, value.format, value.sub_format)
        operands = _operands((info,), (info,), wanted, choice)
        if not operands:
            return
        found = DataOperator(value, info, operands)
        for op in self.ops:
            for slot, read in enumerate(op.inputs):
                if read.key == key:
                    self.data.setdefault(op.index, []).append((slot, found))
                    return
        self.late_data.append(found)


def graph_operators(graph: Graph, originals: Mapping[str, tuple[str, ...]]) -> list[Operator]:
    """The operators of a graph as ACL counts them: one of type `Data` for each input, then those that compute.

    originals   name of an operator -> its names before it was renamed or fused
    """
    place_by_value = {value.id: place for place, value in enumerate(graph.inputs)}
    operators = [Operator(DATA, value.name) for value in graph.inputs]
    place_by_node = {node.id: len(operators) + index for index, node in enumerate(graph.kernels)}
    for node in graph.kernels:
        places = (_producer(value, place_by_value, place_by_node) for value in node.inputs)
        producers = tuple(dict.fromkeys(place for place in places if place is not None))
        operators.append(Operator(node.op_type, node.full_name, originals.get(node.full_name, ()), producers))
    return operators


def overwrites_inputs(op: OpInfo) -> bool:
    """True for operators that may change what they read: their inputs are written before they run.

    Source: ACL, `dump_mode` all: collective operators (Hcom...) have a file of inputs and a file of outputs.
    """
    return bool(op.mutates) or op.op_type.startswith(_COLLECTIVE_PREFIX)


def _operands(
    inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo], wanted: Sequence[str], choice: Choice | None
) -> tuple[Operand, ...]:
    if choice is None:
        return ()
    infos_by_io = {INPUT: inputs, OUTPUT: outputs}
    return tuple(
        Operand(io, slot, info) for io in wanted for slot, info in enumerate(infos_by_io[io]) if choice.dumps(io, slot)
    )


def _producer(value: Value, place_by_value: dict[int, int], place_by_node: dict[int, int]) -> int | None:
    """Place of the operator that makes a value; one that only keeps an order hands on its first operand."""
    node: Node | None = value.node
    while node is not None and node.id not in place_by_node and node.inputs:
        value = node.inputs[0]
        node = value.node
    return place_by_value.get(value.id) if node is None else place_by_node.get(node.id)

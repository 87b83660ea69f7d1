"""Uninitialised tensors of a step, also in part: their values say nothing about any operator."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msdump.analysis._payload import has_same_bytes
from msdump.analysis.graph_info import GraphFile, GraphNode
from msdump.analysis.steps import Operator, Slot, Step
from msdump.formats.dump_tensor import DumpedTensor
from msdump.formats.statistic_csv import StatisticRow
from msdump.graph.traits import is_unset, makes_unset
from msdump.tensors.records import INPUT, OUTPUT

UNSET = "memory that no operator has written yet"
IsSame = Callable[[DumpedTensor, DumpedTensor], bool]


class UnsetTensors:
    """Uninitialised tensors of the operators of a step.

    graph    tells who made an input; where it does not, an input is unset when its bytes are those of an unset result
    is_same  whether two tensors of one dtype and shape hold the same bytes
    operands   all of them, by operator
    """

    def __init__(self, step: Step, graph: GraphFile | None, is_same: IsSame = has_same_bytes) -> None:
        self._graph = graph
        self._is_same = is_same
        self._keys: set[tuple[int, str, Slot]] = set()
        self.operands: list[tuple[Operator, str, Slot]] = []
        self._results: set[tuple[str, int]] = set()
        self._tensors: list[DumpedTensor] = []
        for operator in step.operators:
            if not operator.is_parameter:
                self._add(operator)

    def has(self, operator: Operator, io: str, slot: Slot) -> bool:
        return (id(operator), io, slot) in self._keys

    def _add(self, operator: Operator) -> None:
        if not self._results and not self._tensors and not makes_unset(operator.op_type):
            return  # nothing is there that it could have read
        node = None if self._graph is None else self._graph.find(operator.full_name, operator.op_name)
        unset = {slot for slot, tensor in operator.inputs.items() if self._is_input(slot, tensor, node)}
        self._put(operator, INPUT, unset)
        of_graph = () if node is None else node.inputs
        reads = bool(unset) or any(o is not None and (o.name, o.slot) in self._results for o in of_graph)
        if not is_unset(operator.op_type, [reads]):
            return
        self._put(operator, OUTPUT, operator.outputs)
        for slot, tensor in operator.outputs.items():
            if tensor.size_bytes:
                self._tensors.append(tensor)
            if node is not None:
                self._results.add((node.full_name, slot.number))

    def _put(self, operator: Operator, io: str, slots: Iterable[Slot]) -> None:
        for slot in slots:
            self._keys.add((id(operator), io, slot))
            self.operands.append((operator, io, slot))

    def _is_input(self, slot: Slot, tensor: DumpedTensor, node: GraphNode | None) -> bool:
        if node is not None:
            origin = node.inputs[slot.number] if slot.number < len(node.inputs) else None
            return origin is not None and (origin.name, origin.slot) in self._results
        return any(
            (tensor.dtype, tensor.shape) == (known.dtype, known.shape) and self._is_same(tensor, known)
            for known in self._tensors
        )


def has_same_statistics(left: StatisticRow, right: StatisticRow) -> bool:
    """Whether all that two rows say of their values is alike. NaN is equal to itself."""
    names = ("md5", "max", "min", "avg", "nan", "negative_inf", "positive_inf", "zero", "l2norm")
    return all(repr(getattr(left, name)) == repr(getattr(right, name)) for name in names)

"""A model as observers see it: which values its operators read and write, and their bytes while it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from msdump.errors import ExecutionError
from msdump.frontends.onnx.arena import Arena, NodeKernel
from msdump.frontends.onnx.graph_from_onnx import OnnxGraph
from msdump.frontends.onnx.ort_values import array_of
from msdump.frontends.onnx.program import OnnxProgram, Slots
from msdump.graph.graph import Graph, Value
from msdump.graph.run import Calls, ObservedGraph, Observer, WatchedRun
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array
from msdump.tensors.records import OpInfo


@dataclass(frozen=True, slots=True)
class NodeOperands:
    """(value, slot of the program) of each operand of one call."""

    op: OpInfo
    inputs: tuple[tuple[Value, int], ...]
    outputs: tuple[tuple[Value, int], ...]


class ObservedOnnxProgram:
    """A program with the Graph that it is for one set of shapes, and that observers know.

    operands  of each call; None for a call that observers do not see
    drops     ids of values that are not read after each call
    arena     memory that the results share; None: each has its own
    """

    def __init__(
        self,
        program: OnnxProgram,
        onnx_graph: OnnxGraph,
        observers: Sequence[Observer],
        has_arena: bool = False,
        kernels: Mapping[str, NodeKernel] | None = None,
    ) -> None:
        self.program = program
        if has_arena:
            # The next run overwrites them.
            onnx_graph.graph.held = {value.id for value in onnx_graph.graph.constants}
        self.seen = ObservedGraph(onnx_graph.graph, observers)
        slot_by_value = {value.id: program.slot_by_name[name] for name, value in onnx_graph.values.items()}
        infos = iter(self.seen.ops)
        self.operands: list[NodeOperands | None] = []
        for node in onnx_graph.nodes:
            if node is None:
                self.operands.append(None)
                continue
            inputs = tuple((value, slot_by_value[value.id]) for value in node.inputs)
            outputs = tuple((value, slot_by_value[value.id]) for value in node.outputs)
            self.operands.append(NodeOperands(next(infos), inputs, outputs))
        self.ops = [None if operands is None else operands.op for operands in self.operands]
        value_by_slot = {slot_by_value[value.id]: value.id for value in onnx_graph.values.values()}
        self.drops = [
            tuple(value_by_slot[slot] for slot in call.frees if slot in value_by_slot) for call in program.calls
        ]
        self.arena = self._arena(onnx_graph, kernels) if has_arena else None
        self.launches = [call.launch for call in program.calls] if self.arena is None else self.arena.launches

    @property
    def graph(self) -> Graph:
        return self.seen.graph

    def run(self, watched: WatchedRun | None, slots: Slots, arrays: Mapping[str, Array]) -> None:
        """Run once while observers watch; without observers for the sake of the arena.

        arrays  inputs of the model by name
        Raises: ExecutionError, after `on_error`.
        """
        if watched is None:
            watched = WatchedRun(self.seen, (), 0)
        watched.run(_ModelCalls(self, slots, arrays))

    def _arena(self, onnx_graph: OnnxGraph, kernels: Mapping[str, NodeKernel] | None) -> Arena:
        """Operands that an observer keeps are not overwritten by other results."""
        kept = [
            value
            for operands in self.operands
            if operands is not None and self.seen.is_kept(operands.op)
            for value, _ in (*operands.inputs, *operands.outputs)
        ]
        return Arena(self.program, onnx_graph, not self.seen.needs_all_values, kept, kernels)


class _ModelCalls(Calls):
    """One run of a program. Arrays are views of what onnxruntime made: nothing is copied."""

    def __init__(self, seen: ObservedOnnxProgram, slots: Slots, arrays: Mapping[str, Array]) -> None:
        self.ops = seen.ops
        self._seen = seen
        self._slots = slots
        # Results lose their place when one of them turns out to have another shape.
        self._placed: Mapping[int, Array] = {} if seen.arena is None else seen.arena.arrays
        # Inputs and constants are there all the time.
        self._fixed = {value.id: arrays[value.name] for value in seen.graph.inputs}
        for value in seen.graph.constants:
            assert value.constant is not None
            self._fixed[value.id] = value.constant
        self._arrays: dict[int, Array] = {}

    def launch(self, number: int) -> None:
        results = self._seen.launches[number](self._slots)
        for index, slot in enumerate(self._seen.program.calls[number].out):
            self._slots[slot] = results[index]

    def explain(self, number: int, error: Exception) -> Exception:
        return self._seen.program.explain(error, self._seen.program.calls[number])

    def inputs(self, number: int) -> Sequence[Array]:
        return [self._array(value, self._slots[slot]) for value, slot in self._of(number).inputs]

    def outputs(self, number: int) -> Sequence[Array]:
        return [self._array(value, self._slots[slot]) for value, slot in self._of(number).outputs]

    def failed_outputs(self, number: int) -> Sequence[Array]:
        """In an arena there is what the operator came to write; elsewhere there is nothing yet."""
        return [
            self._placed.get(value.id, np.empty((0,), dtypes.dtype(value.type.dtype).numpy))
            for value, _ in self._of(number).outputs
        ]

    def array(self, value: Value) -> Array:
        array = self._fixed.get(value.id)
        if array is None:
            array = self._placed.get(value.id)
        if array is None:
            raise ExecutionError(f"%{value.name}: expected an input or a constant, got a result that was freed.")
        return array

    def release(self, number: int) -> None:
        for slot in self._seen.program.calls[number].frees:
            self._slots[slot] = None
        for value_id in self._seen.drops[number]:
            self._arrays.pop(value_id, None)

    # -- parts ------------------------------------------------------------------------------------

    def _of(self, number: int) -> NodeOperands:
        operands = self._seen.operands[number]
        assert operands is not None
        return operands

    def _array(self, value: Value, held: object) -> Array:
        array = self._fixed.get(value.id)
        if array is None:
            array = self._placed.get(value.id)
        if array is None:
            array = self._arrays.get(value.id)
        if array is None:
            array = self._arrays[value.id] = array_of(held)
        return array

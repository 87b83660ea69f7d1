"""A model as observers see it: which values its operators read and write, and their bytes while it runs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from msdump.errors import ExecutionError
from msdump.frontends.onnx.arena import Arena, NodeKernel
from msdump.frontends.onnx.graph_from_onnx import OnnxGraph
from msdump.frontends.onnx.ort_values import array_of
from msdump.frontends.onnx.program import Body, OnnxProgram, Slots
from msdump.graph.graph import SAVED, Graph, Value, run_name
from msdump.graph.run import Calls, ObservedGraph, Observer, WatchedRun
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array
from msdump.tensors.records import OpInfo, TensorKey


@dataclass(frozen=True, slots=True)
class NodeOperands:
    """(value, slot of the program) of each operand of one call."""

    op: OpInfo
    inputs: tuple[tuple[Value, int], ...]
    outputs: tuple[tuple[Value, int], ...]


class ObservedPart:
    """A program, of a model or of a subgraph, with its part of the Graph that observers know.

    operands  of each call; None for a call that observers do not see
    ops       the same, without operands
    loops     of each operator by its index: where its name has the numbers of a run
    drops     ids of values that are not read after each call
    made      ids of values that each run of it makes, or is given
    parts     of each subgraph
    """

    def __init__(self, program: OnnxProgram, onnx_graph: OnnxGraph, ops: Iterator[OpInfo]) -> None:
        """ops: of the operators of this part, and of the subgraphs in it, in the order of the Graph"""
        self.program = program
        self.parts: dict[Body, ObservedPart] = {}
        self.operands: list[NodeOperands | None] = []
        self.loops: dict[int, tuple[int, ...]] = {}
        slot_by_value = {
            value.id: program.slot_by_name[name]
            for name, value in onnx_graph.values.items()
            if name in program.slot_by_name
        }
        for call, node in zip(program.calls, onnx_graph.nodes, strict=True):
            for body in call.flow.bodies if call.flow is not None else ():
                self.parts[body] = ObservedPart(body.program, onnx_graph.parts[body], ops)
            if node is None:
                self.operands.append(None)
                continue
            op = next(ops)
            self.loops[op.index] = node.loops
            inputs = tuple((value, slot_by_value[value.id]) for value in node.inputs)
            outputs = tuple((value, slot_by_value[value.id]) for value in node.outputs)
            self.operands.append(NodeOperands(op, inputs, outputs))
        self.ops = [None if operands is None else operands.op for operands in self.operands]
        value_by_slot = {slot: value_id for value_id, slot in slot_by_value.items()}
        self.drops = [
            tuple(value_by_slot[slot] for slot in call.frees if slot in value_by_slot) for call in program.calls
        ]
        made = {value.id for node in onnx_graph.nodes if node is not None for value in node.outputs}
        self.made = made | {value.id for value in onnx_graph.values.values() if value.kind == SAVED}

    def all_operands(self) -> Iterator[NodeOperands]:
        """Those of subgraphs included."""
        for part in self.parts.values():
            yield from part.all_operands()
        yield from (operands for operands in self.operands if operands is not None)


class ObservedOnnxProgram:
    """A program with the Graph that it is for one set of shapes, and that observers know.

    part    all of it
    arena   memory that the results share; None: each has its own
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
        self.part = ObservedPart(program, onnx_graph, iter(self.seen.ops))
        self.arena = self._arena(onnx_graph, kernels) if has_arena else None

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
        watched.run(_ModelCalls(_Run(self, watched, arrays), self.part, slots))

    def _arena(self, onnx_graph: OnnxGraph, kernels: Mapping[str, NodeKernel] | None) -> Arena:
        """Operands that an observer keeps are not overwritten by other results."""
        kept = [
            value
            for operands in self.part.all_operands()
            if self.seen.is_kept(operands.op)
            for value, _ in (*operands.inputs, *operands.outputs)
        ]
        return Arena(self.program, onnx_graph, not self.seen.needs_all_values, kept, kernels)


class _Run:
    """What the runs of all programs have in common in one run of a model.

    fixed    arrays of inputs and constants, by value id: they are there all the time
    placed   the same of results in an arena, which lose their place when one of them turns out to have another shape
    numbers  counts the runs of subgraphs
    """

    def __init__(self, seen: ObservedOnnxProgram, watched: WatchedRun, arrays: Mapping[str, Array]) -> None:
        self.watched = watched
        self.arena = seen.arena
        self.placed: Mapping[int, Array] = {} if seen.arena is None else seen.arena.arrays
        self.fixed = {value.id: arrays[value.name] for value in seen.graph.handed_in}
        for value in seen.graph.constants:
            assert value.constant is not None
            self.fixed[value.id] = value.constant
        self.numbers = itertools.count(1)


class _ModelCalls(Calls):
    """One run of a program. Arrays are views of what onnxruntime made: nothing is copied.

    around   the run of the program around this subgraph
    numbers  of this run, in each of the loops around its operators
    """

    def __init__(
        self,
        run: _Run,
        part: ObservedPart,
        slots: Slots,
        around: _ModelCalls | None = None,
        numbers: tuple[int, ...] = (),
    ) -> None:
        self.ops = part.ops
        self._run = run
        self._part = part
        self._slots = slots
        self._around = around
        self._numbers = numbers
        self._arrays: dict[int, Array] = {}
        # In each run of a subgraph its values are further versions; the model's own are the first.
        self._version = 0 if around is None else next(run.numbers)

    def launch(self, number: int) -> None:
        call = self._part.program.calls[number]
        arena = self._run.arena if self._around is None else None
        if call.flow is None or (arena is not None and arena.has_kernel(number)):
            results = (call.launch if arena is None else arena.launches[number])(self._slots)
        else:
            results = call.flow.run(self._slots, self._run_body)
            if arena is not None:
                results = arena.place(number, results)
        for index, slot in enumerate(call.out):
            self._slots[slot] = results[index]

    def named(self, op: OpInfo) -> OpInfo:
        if self._around is None:
            return op
        return replace(
            op,
            full_name=run_name(op.full_name, self._part.loops[op.index], self._numbers),
            inputs=tuple(replace(info, key=self._key_of(info.key)) for info in op.inputs),
            outputs=tuple(replace(info, key=self._key_of(info.key)) for info in op.outputs),
        )

    def explain(self, number: int, error: Exception) -> Exception:
        return self._part.program.explain(error, self._part.program.calls[number])

    def inputs(self, number: int) -> Sequence[Array]:
        return [self._array(value, self._slots[slot]) for value, slot in self._of(number).inputs]

    def outputs(self, number: int) -> Sequence[Array]:
        return [self._array(value, self._slots[slot]) for value, slot in self._of(number).outputs]

    def failed_outputs(self, number: int) -> Sequence[Array]:
        """In an arena there is what the operator came to write; elsewhere there is nothing yet."""
        return [
            self._run.placed.get(value.id, np.empty((0,), dtypes.dtype(value.type.dtype).numpy))
            for value, _ in self._of(number).outputs
        ]

    def array(self, value: Value) -> Array:
        array = self._run.fixed.get(value.id)
        if array is None:
            array = self._run.placed.get(value.id)
        if array is None:
            raise ExecutionError(f"%{value.name}: expected an input or a constant, got a result that was freed.")
        return array

    def release(self, number: int) -> None:
        for slot in self._part.program.calls[number].frees:
            self._slots[slot] = None
        for value_id in self._part.drops[number]:
            self._arrays.pop(value_id, None)

    # -- parts ------------------------------------------------------------------------------------

    def _run_body(self, body: Body, slots: Slots, number: int | None) -> None:
        numbers = self._numbers if number is None else (*self._numbers, number)
        self._run.watched.launch_all(_ModelCalls(self._run, self._part.parts[body], slots, self, numbers))

    def _key_of(self, key: TensorKey) -> TensorKey:
        """Of a tensor of this run, or of a run around it."""
        calls: _ModelCalls | None = self
        while calls is not None and key.value_id not in calls._part.made:
            calls = calls._around
        return key if calls is None or not calls._version else TensorKey(key.value_id, calls._version)

    def _of(self, number: int) -> NodeOperands:
        operands = self._part.operands[number]
        assert operands is not None
        return operands

    def _array(self, value: Value, held: object) -> Array:
        array = self._run.fixed.get(value.id)
        if array is None:
            array = self._run.placed.get(value.id)
        if array is None:
            array = self._arrays.get(value.id)
        if array is None:
            array = self._arrays[value.id] = array_of(held)
        return array

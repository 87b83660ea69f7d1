"""WatchedRun: one run of a model while observers look on."""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from msdump import dtypes
from msdump.errors import ExecutionError
from msdump.events import AFTER, BEFORE, KEEP, Array, FinishedStep, Observer, OpEvent, OpInfo
from msdump.frontends.onnx.arena import Arena, NodeKernel
from msdump.frontends.onnx.graph_from_onnx import OnnxGraph
from msdump.frontends.onnx.ort_values import array_of
from msdump.frontends.onnx.program import Call, Launch, Program, Slots
from msdump.graph.graph import Value


@dataclass(frozen=True, slots=True)
class Watch:
    """What observers may see of one call.

    inputs, outputs  (value, slot of the program) of each operand
    """

    op: OpInfo
    inputs: tuple[tuple[Value, int], ...]
    outputs: tuple[tuple[Value, int], ...]


class ObservedGraph:
    """A program with the Graph that it is for one set of shapes, and what each observer wants to see of it.

    arena   memory that the results share; None: each has its own
    """

    def __init__(
        self,
        program: Program,
        found: OnnxGraph,
        observers: Sequence[Observer],
        has_arena: bool = False,
        kernels: Mapping[str, NodeKernel] | None = None,
    ) -> None:
        self.program = program
        self.graph = found.graph
        slot_by_value = {value.id: program.slot_by_name[name] for name, value in found.values.items()}
        infos = iter(found.graph.op_infos())
        self.watches: list[Watch | None] = []
        for node in found.nodes:
            if node is None:
                self.watches.append(None)
                continue
            inputs = tuple((value, slot_by_value[value.id]) for value in node.inputs)
            outputs = tuple((value, slot_by_value[value.id]) for value in node.outputs)
            self.watches.append(Watch(next(infos), inputs, outputs))
        value_by_slot = {slot_by_value[value.id]: value.id for value in found.values.values()}
        self.drops = [
            tuple(value_by_slot[slot] for slot in call.frees if slot in value_by_slot) for call in program.calls
        ]
        if has_arena:
            # The next run overwrites them.
            found.graph.held = {value.id for value in found.graph.constants}
        self.masks = {observer: tuple(observer.on_graph(found.graph)) for observer in observers}
        self.arena = self._arena(found, kernels) if has_arena else None
        self.launches = [call.launch for call in program.calls] if self.arena is None else self.arena.launches

    def _arena(self, found: OnnxGraph, kernels: Mapping[str, NodeKernel] | None) -> Arena:
        """Operands that an observer keeps are not overwritten by other results."""
        watched = [watch for watch in self.watches if watch is not None]
        kept = [
            value
            for watch in watched
            if any(mask[watch.op.index] & KEEP for mask in self.masks.values())
            for value, _ in (*watch.inputs, *watch.outputs)
        ]
        is_reused = not any(observer.needs_all_values for observer in self.masks)
        return Arena(self.program, found, is_reused, kept, kernels)


class WatchedRun:
    """Lives while one run is watched, in an arena also while none is. Arrays are views of what onnxruntime made:
    nothing is copied."""

    def __init__(
        self, seen: ObservedGraph, watching: Sequence[Observer], iteration: int, arrays: Mapping[str, Array]
    ) -> None:
        self._seen = seen
        self._watching = watching
        self._iteration = iteration
        self._masks = [(observer, seen.masks[observer]) for observer in watching]
        count = sum(watch is not None for watch in seen.watches)
        self._wanted = [functools.reduce(operator.or_, (m[at] for _, m in self._masks), 0) for at in range(count)]
        self._placed: Mapping[int, Array] = {} if seen.arena is None else seen.arena.arrays
        # Inputs and constants are there all the time.
        self._fixed = {value.id: arrays[value.name] for value in seen.graph.inputs}
        for value in seen.graph.constants:
            assert value.constant is not None
            self._fixed[value.id] = value.constant
        self._arrays: dict[int, Array] = {}
        self._kept: dict[int, Array] = {}

    def run(self, slots: Slots) -> None:
        """Raises: ExecutionError, after `on_error`."""
        seen = self._seen
        for call, launch, watch, drops in zip(seen.program.calls, seen.launches, seen.watches, seen.drops, strict=True):
            if watch is None:
                self._store(call, slots, self._launch(call, launch, None, slots, ()))
            else:
                self._call(call, launch, watch, slots)
            for slot in call.frees:
                slots[slot] = None
            for value_id in drops:
                self._arrays.pop(value_id, None)
        self._finish()

    # -- parts ------------------------------------------------------------------------------------

    def _call(self, call: Call, launch: Launch, watch: Watch, slots: Slots) -> None:
        op = watch.op
        wanted = self._wanted[op.index]
        if not wanted:
            self._store(call, slots, self._launch(call, launch, watch, slots, ()))
            return
        inputs = [self._array(value, slots[slot]) for value, slot in watch.inputs]
        if wanted & BEFORE:
            before = OpEvent(op, self._iteration, inputs, ())
            for observer, mask in self._masks:
                if mask[op.index] & BEFORE:
                    observer.before_op(before)
        self._store(call, slots, self._launch(call, launch, watch, slots, inputs))
        outputs = [self._array(value, slots[slot]) for value, slot in watch.outputs]
        if wanted & KEEP:
            for (value, _), array in zip((*watch.inputs, *watch.outputs), (*inputs, *outputs), strict=True):
                self._kept[value.id] = array
        if wanted & AFTER:
            after = OpEvent(op, self._iteration, inputs, outputs)
            for observer, mask in self._masks:
                if mask[op.index] & AFTER:
                    observer.after_op(after)

    def _launch(
        self, call: Call, launch: Launch, watch: Watch | None, slots: Slots, inputs: Sequence[Array]
    ) -> Sequence[object]:
        try:
            return launch(slots)
        except Exception as error:
            explained = self._seen.program.explain(error, call)
            if watch is not None:
                shown = inputs or [self._array(value, slots[slot]) for value, slot in watch.inputs]
                # In an arena there is what the operator came to write; elsewhere there is nothing yet.
                shown_outputs = [
                    self._placed.get(value.id, np.empty((0,), dtypes.dtype(value.type.dtype).numpy))
                    for value, _ in watch.outputs
                ]
                for observer in self._watching:
                    observer.on_error(OpEvent(watch.op, self._iteration, shown, shown_outputs), explained)
            raise explained from error

    def _store(self, call: Call, slots: Slots, results: Sequence[object]) -> None:
        for at, slot in enumerate(call.out):
            slots[slot] = results[at]

    def _array(self, value: Value, held: object) -> Array:
        array = self._fixed.get(value.id)
        if array is None:
            array = self._placed.get(value.id)
        if array is None:
            array = self._arrays.get(value.id)
        if array is None:
            array = self._arrays[value.id] = array_of(held)
        return array

    def _finish(self) -> None:
        self._arrays.clear()
        kept = {**self._fixed, **self._kept}
        events = []
        for watch in self._seen.watches:
            if watch is None:
                continue
            if self._wanted[watch.op.index] & KEEP:
                ins, outs = (
                    [kept[value.id] for value, _ in watch.inputs],
                    [kept[value.id] for value, _ in watch.outputs],
                )
                events.append(OpEvent(watch.op, self._iteration, ins, outs))
            else:
                events.append(OpEvent(watch.op, self._iteration, (), ()))

        def array(value: Value) -> Array:
            if value.id not in kept:
                raise ExecutionError(f"%{value.name}: expected a value that an observer keeps, got one that is gone.")
            return kept[value.id]

        step = FinishedStep(self._seen.graph, self._iteration, events, array)
        for observer in self._watching:
            observer.on_iteration_end(step)

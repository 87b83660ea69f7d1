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
from msdump.frontends.onnx.graph_from_onnx import OnnxGraph
from msdump.frontends.onnx.ort_values import array_of
from msdump.frontends.onnx.program import Call, Program, Slots
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
    """A program with the Graph that it is for one set of shapes, and what each observer wants to see of it."""

    def __init__(self, program: Program, found: OnnxGraph, observers: Sequence[Observer]) -> None:
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
        self.masks = {observer: tuple(observer.on_graph(found.graph)) for observer in observers}


class WatchedRun:
    """Lives while one run is watched. Arrays are views of what onnxruntime made: nothing is copied."""

    def __init__(
        self, seen: ObservedGraph, watching: Sequence[Observer], iteration: int, arrays: Mapping[str, Array]
    ) -> None:
        self._seen = seen
        self._watching = watching
        self._iteration = iteration
        self._masks = [(observer, seen.masks[observer]) for observer in watching]
        self._wanted = [functools.reduce(operator.or_, bits) for bits in zip(*(m for _, m in self._masks), strict=True)]
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
        for call, watch, drops in zip(seen.program.calls, seen.watches, seen.drops, strict=True):
            if watch is None:
                self._store(call, slots, self._launch(call, None, slots, ()))
            else:
                self._call(call, watch, slots)
            for slot in call.frees:
                slots[slot] = None
            for value_id in drops:
                self._arrays.pop(value_id, None)
        self._finish()

    # -- parts ------------------------------------------------------------------------------------

    def _call(self, call: Call, watch: Watch, slots: Slots) -> None:
        op = watch.op
        wanted = self._wanted[op.index]
        if not wanted:
            self._store(call, slots, self._launch(call, watch, slots, ()))
            return
        inputs = [self._array(value, slots[slot]) for value, slot in watch.inputs]
        if wanted & BEFORE:
            before = OpEvent(op, self._iteration, inputs, ())
            for observer, mask in self._masks:
                if mask[op.index] & BEFORE:
                    observer.before_op(before)
        self._store(call, slots, self._launch(call, watch, slots, inputs))
        outputs = [self._array(value, slots[slot]) for value, slot in watch.outputs]
        if wanted & KEEP:
            for (value, _), array in zip((*watch.inputs, *watch.outputs), (*inputs, *outputs), strict=True):
                self._kept[value.id] = array
        if wanted & AFTER:
            after = OpEvent(op, self._iteration, inputs, outputs)
            for observer, mask in self._masks:
                if mask[op.index] & AFTER:
                    observer.after_op(after)

    def _launch(self, call: Call, watch: Watch | None, slots: Slots, inputs: Sequence[Array]) -> Sequence[object]:
        try:
            return call.launch(slots)
        except Exception as error:
            explained = self._seen.program.explain(error, call)
            if watch is not None:
                shown = inputs or [self._array(value, slots[slot]) for value, slot in watch.inputs]
                empty = [np.empty((0,), dtypes.dtype(info.dtype).numpy) for info in watch.op.outputs]
                for observer in self._watching:
                    observer.on_error(OpEvent(watch.op, self._iteration, shown, empty), explained)
            raise explained from error

    def _store(self, call: Call, slots: Slots, results: Sequence[object]) -> None:
        for at, slot in enumerate(call.out):
            slots[slot] = results[at]

    def _array(self, value: Value, held: object) -> Array:
        array = self._fixed.get(value.id)
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

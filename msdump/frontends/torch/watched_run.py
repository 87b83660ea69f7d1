"""WatchedRun: one run of an FX graph while observers look on."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from msdump import dtypes
from msdump.events import AFTER, BEFORE, KEEP, Array, FinishedStep, Observer, OpEvent, OpInfo
from msdump.frontends.torch.arrays import array_of
from msdump.frontends.torch.device import PinnedCopies, measured_array
from msdump.frontends.torch.graph_from_fx import FxGraph
from msdump.frontends.torch.operators import Path, is_collective
from msdump.frontends.torch.program import Call, Program
from msdump.graph.graph import SAVED, Graph, Value
from msdump.records import TensorKey


@dataclass(frozen=True, slots=True)
class Watch:
    """What observers may see of one call.

    inputs   (value, slot of the program) of each input
    outputs  (value, place in the result) of each output
    over     ids of values that lie in memory which the call writes
    """

    op: OpInfo
    inputs: tuple[tuple[Value, int], ...]
    outputs: tuple[tuple[Value, Path], ...]
    over: frozenset[int]
    is_collective: bool


class ObservedGraph:
    """A program with the Graph that it is for one set of shapes, and what each observer wants to see of it."""

    def __init__(self, program: Program, found: FxGraph, observers: Sequence[Observer]) -> None:
        self.program = program
        self.graph: Graph = found.graph
        infos = dict(zip((node.id for node in found.graph.nodes), found.graph.op_infos(), strict=True))
        values_by_root: dict[int, set[int]] = {}
        for value_id, root in found.roots.items():
            values_by_root.setdefault(root, set()).add(value_id)
        slots = program.slot_by_node
        self.watches: list[Watch | None] = []
        for call in program.calls:
            node = found.nodes.get(call.node)
            if node is None:
                self.watches.append(None)
                continue
            inputs = [(value, slots[argument]) for argument, value in found.operands[call.node]]
            places = [(value, path) for (made, path), value in found.values.items() if made is call.node]
            over = {
                other for slot in node.definition.mutates for other in values_by_root[found.roots[node.inputs[slot].id]]
            }
            self.watches.append(
                Watch(infos[node.id], tuple(inputs), tuple(places), frozenset(over), is_collective(call.node.target))
            )
        self.arguments = [
            (value, slots[node]) for node in program.placeholders if (value := found.value_of(node)) is not None
        ]
        self.drops = _drops(program, found)
        self.masks = {observer: tuple(observer.on_graph(found.graph)) for observer in observers}


def _drops(program: Program, found: FxGraph) -> list[tuple[int, ...]]:
    """Ids of values that are not read after each call."""
    drops: list[tuple[int, ...]] = []
    node_by_slot = {slot: node for node, slot in program.slot_by_node.items()}
    for call in program.calls:
        nodes = [node_by_slot[slot] for slot in call.frees]
        values = [found.values.get((node, ())) or found.value_of(node) for node in nodes]
        drops.append(tuple(value.id for value in values if value is not None))
    return drops


class WatchedRun:
    """Lives while one run is watched. Arrays are views of the tensors; nothing is copied but what would be lost.

    copies         brings tensors of a device to the host; None where they are there
    measures_only  nobody wants more than statistics: of a device nothing else is brought
    """

    def __init__(
        self,
        seen: ObservedGraph,
        watching: Sequence[Observer],
        iteration: int,
        copies: PinnedCopies | None,
        report: Callable[[str], None],
        *,
        measures_only: bool = False,
    ) -> None:
        self._seen = seen
        self._watching = watching
        self._iteration = iteration
        self._copies = copies
        self._report = report
        self._measures = measures_only and copies is not None
        self._arrays: dict[int, Array] = {}
        self._kept: dict[TensorKey, Array] = {}
        self._late: deque[tuple[Any, Observer, OpEvent]] = deque()
        self._masks = [(observer, seen.masks[observer]) for observer in watching]
        sums = zip(*(mask for _, mask in self._masks), strict=True)
        self._wanted = [np.bitwise_or.reduce(masks) for masks in sums] if len(watching) > 1 else self._masks[0][1]

    def run(self, args: list[Any]) -> Any:
        seen = self._seen
        slots = seen.program.begin(args)
        # The user's own tensors, as the step leaves them; what was saved for this graph belongs to the step.
        inputs = {value.id: slots[slot] for value, slot in seen.arguments if value.kind != SAVED}
        arrays = self._arrays
        for call, watch, drops in zip(seen.program.calls, seen.watches, seen.drops, strict=True):
            if watch is None:
                slots[call.out] = call.run(slots)
            else:
                slots[call.out] = self._call(call, watch, slots)
            for slot in call.frees:
                slots[slot] = None
            for value_id in drops:
                arrays.pop(value_id, None)
        outputs = seen.program.outputs(slots)
        self._deliver(is_last=True)
        self._finish(inputs)
        return outputs

    # -- parts ------------------------------------------------------------------------------------

    def _call(self, call: Call, watch: Watch, slots: list[Any]) -> Any:
        op = watch.op
        wanted = self._wanted[op.index]
        if watch.over:
            self._save(watch)
        if not wanted:
            return self._launch(call, watch, slots, ())
        inputs = [self._array(value, slots[slot]) for value, slot in watch.inputs]
        if wanted & KEEP:
            for info, array in zip(op.inputs, inputs, strict=True):
                self._kept.setdefault(info.key, array)
        # Observers ask before an operator to save what it will overwrite. Statistics are safe from that.
        if wanted & BEFORE and not self._measures:
            self._deliver(is_last=True)
            event = OpEvent(op, self._iteration, inputs, ())
            for observer, mask in self._masks:
                if mask[op.index] & BEFORE:
                    observer.before_op(event)
        result = self._launch(call, watch, slots, inputs)
        if watch.is_collective:
            result = _waited(result)
        outputs = [self._array(value, _at(result, path)) for value, path in watch.outputs]
        if wanted & KEEP:
            for info, array in zip(op.outputs, outputs, strict=True):
                self._kept.setdefault(info.key, array)
        if wanted & AFTER:
            self._tell(OpEvent(op, self._iteration, inputs, outputs), is_now=bool(wanted & BEFORE))
        return result

    def _launch(self, call: Call, watch: Watch, slots: list[Any], inputs: Sequence[Array]) -> Any:
        try:
            return call.run(slots)
        except Exception as error:
            self._deliver(is_last=True)
            shown = inputs or [self._array(value, slots[slot]) for value, slot in watch.inputs]
            self._deliver(is_last=True)
            empty = [np.empty((0,), dtypes.dtype(info.dtype).numpy) for info in watch.op.outputs]
            for observer in self._watching:
                observer.on_error(OpEvent(watch.op, self._iteration, shown, empty), error)
            raise

    def _tell(self, event: OpEvent, is_now: bool) -> None:
        index = event.op.index
        for observer, mask in self._masks:
            if mask[index] & AFTER:
                if self._copies is None:
                    observer.after_op(event)
                else:
                    self._late.append((self._copies.mark(), observer, event))
        if self._late:
            self._deliver(is_last=is_now)

    def _deliver(self, is_last: bool) -> None:
        """Hand on the events whose arrays have arrived from the device; with `is_last` wait for them."""
        if is_last and self._copies is not None:
            self._copies.mark().synchronize()
        while self._late and (is_last or self._late[0][0].query()):
            _, observer, event = self._late.popleft()
            observer.after_op(event)

    def _array(self, value: Value, tensor: Any) -> Array:
        known = self._arrays.get(value.id)
        if known is None:
            known = self._arrays[value.id] = self._read(value, tensor)
        return known

    def _read(self, value: Value, tensor: Any) -> Array:
        expected = value.type
        numpy_dtype = dtypes.dtype(expected.dtype).numpy
        try:
            if self._copies is not None and self._copies.takes(tensor):
                array = measured_array(self._copies, tensor) if self._measures else self._copies.array(tensor)
            elif tensor.device.type == "cpu":
                array = array_of(tensor)
            else:
                array = array_of(tensor.detach().cpu())
        except (RuntimeError, TypeError, AttributeError) as error:
            self._report(f"tensor of {_owner(value)} that cannot be read ({type(error).__name__})")
            return np.empty((0,), numpy_dtype)
        if array.dtype != numpy_dtype or (array.shape != expected.shape and -1 not in expected.shape):
            self._report(f"tensor of {_owner(value)} that is of another type than the operator declares")
            return np.empty((0,), numpy_dtype)
        return array

    def _save(self, watch: Watch) -> None:
        """An operator is about to write: copy what somebody still wants to see as it is, forget the other views."""
        if self._copies is not None:
            self._copies.protect()
        else:
            for key, array in self._kept.items():
                if key.value_id in watch.over:
                    self._kept[key] = array.copy()
        for value_id in watch.over:
            self._arrays.pop(value_id, None)

    def _finish(self, inputs: dict[int, Any]) -> None:
        graph = self._seen.graph
        self._arrays.clear()
        kept = self._kept
        events = []
        for watch in self._seen.watches:
            if watch is None:
                continue
            op = watch.op
            if self._wanted[op.index] & KEEP:
                ins, outs = [kept[info.key] for info in op.inputs], [kept[info.key] for info in op.outputs]
                events.append(OpEvent(op, self._iteration, ins, outs))
            else:
                events.append(OpEvent(op, self._iteration, (), ()))

        def array(value: Value) -> Array:
            found = self._array(value, inputs[value.id])
            self._deliver(is_last=True)
            return found

        step = FinishedStep(graph, self._iteration, events, array)
        for observer in self._watching:
            observer.on_iteration_end(step)


def _owner(value: Value) -> str:
    """Name of the operator that made a value, or of the input that it is."""
    return value.name if value.node is None else value.node.full_name


def _at(result: Any, path: Path) -> Any:
    for index in path:
        result = result[index]
    return result


def _waited(result: Any) -> Any:
    """What a collective returned, once all ranks have given their part."""
    if isinstance(result, torch.Tensor):
        return torch.ops._c10d_functional.wait_tensor(result)
    return [torch.ops._c10d_functional.wait_tensor(item) for item in result]

"""The watched run: the only loop that shows observers what a graph computes. Every front end runs through it.

A front end brings its graph, and for each iteration `Calls`: how to launch an operator, and its operands as arrays.
"""

from __future__ import annotations

import functools
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Protocol, overload

from msdump.graph.graph import Graph, Value
from msdump.statistics.measured import MeasuredNumbers
from msdump.tensors.arrays import Array
from msdump.tensors.c_order import c_copy
from msdump.tensors.records import AFTER, BEFORE, KEEP, OpEvent, OpInfo, TensorKey, made_event


@dataclass(frozen=True, slots=True)
class FinishedStep:
    """A watched iteration that has ended: one event per operator that ran, in execution order, and the memory of any
    value of the graph (parameters and inputs included) as the step left it.

    key   of a parameter of an open graph, as the step left it; None where it has other values of its name by then
    measured  number of a parameter in `numbers` of measured calls, as the step left it; None where it has none
    attributes  of operators of an open graph, by full name, where they are others than in the iteration before
    state  equal for two iterations that have run the same measured calls, and left the same parameters; None: not known
    """

    graph: Graph
    iteration: int
    events: Sequence[OpEvent]
    array: Callable[[Value], Array]
    key: Callable[[Value], TensorKey | None]
    attributes: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    measured: Callable[[Value], int | None] = lambda _: None
    state: Hashable = None

    @property
    def ops(self) -> Sequence[OpInfo]:
        """The operators that ran, in execution order."""
        events = self.events
        return events.ops if isinstance(events, MeasuredEvents) else [event.op for event in events]


class MeasuredCalls(Protocol):
    """Calls of an open graph that have run, whose tensors were measured as they ran.

    ops      what observers know of each; the same object as long as a program does the same
    numbers  statistics of distinct tensors
    places   in `numbers` of each input, then each output, of one call after the other; -1 where there are none
    """

    ops: Sequence[OpInfo]
    numbers: MeasuredNumbers
    places: Sequence[int]

    def arrays(self, number: int) -> tuple[Sequence[Array], Sequence[Array]]:
        """Inputs and outputs of a call, which have statistics in the place of values."""


class MeasuredEvents(Sequence[OpEvent]):
    """Events of an iteration that consists of measured calls alone: each is made when it is asked for."""

    def __init__(self, iteration: int, parts: Sequence[MeasuredCalls]) -> None:
        self.iteration = iteration
        self.parts = tuple(parts)
        self.ops: Sequence[OpInfo] = parts[0].ops if len(parts) == 1 else [op for part in parts for op in part.ops]

    def __len__(self) -> int:
        return len(self.ops)

    @functools.cached_property
    def _places(self) -> list[tuple[MeasuredCalls, int]]:
        return [(part, number) for part in self.parts for number in range(len(part.ops))]

    @overload
    def __getitem__(self, place: int) -> OpEvent: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[OpEvent]: ...

    def __getitem__(self, place: int | slice) -> OpEvent | Sequence[OpEvent]:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        part, number = self._places[place]
        return made_event(part.ops[number], self.iteration, *part.arrays(number))


class Observer(Protocol):
    """Everything that watches a run. All calls come from the thread that runs the graph.

    `needs_all_values` asks the executor for memory without reuse: at the end of an iteration every value is
    still there, as the last operator that wrote it left it.
    """

    needs_all_values: bool

    def on_graph(self, graph: Graph) -> Sequence[int]:
        """A graph was compiled. Returns one mask per operator: 0 or some of BEFORE, AFTER, KEEP."""

    def on_operator(self, graph: Graph, op: OpInfo) -> int:
        """An open graph got a further operator, which is about to run for the first time. Returns its mask."""

    def on_parameter(self, graph: Graph, value: Value) -> None:
        """An open graph got a further parameter."""

    def on_iteration_begin(self, graph: Graph, iteration: int) -> bool:
        """True when this iteration is to be watched; False: the graph runs without observers."""

    def before_op(self, event: OpEvent) -> None: ...

    def after_op(self, event: OpEvent) -> None: ...

    def on_iteration_end(self, step: FinishedStep) -> None: ...

    def on_error(self, event: OpEvent, error: BaseException) -> None:
        """A kernel raised; the error is re-raised after this call."""

    def close(self) -> None:
        """The last call: everything that is pending is finished or reported."""


class Gate:
    """An observer that can be replaced by another between two runs, without a change of compiled graphs.

    version    changes with each observer: graphs tell the new one what they told the last
    on_begin   called with the gate when a run is about to begin; it may replace the observer of this gate
    is_open    False lets nothing through: models live longer than the dump that was in force for them

    Whether all values are needed is decided by the first observer, as memory is laid out when a graph is compiled.
    """

    def __init__(self, observer: Observer, on_begin: Callable[[Gate], object] | None = None) -> None:
        self.needs_all_values = observer.needs_all_values
        self.is_open = True
        self.version = -1
        self._on_begin = on_begin
        self.replace(observer)

    def replace(self, observer: Observer) -> None:
        """From the next run on another observer watches. The last one is closed by the caller."""
        self.observer = observer
        self.version += 1
        # What is told of each operator costs no call more than without a gate.
        self.before_op: Callable[[OpEvent], None] = observer.before_op
        self.after_op: Callable[[OpEvent], None] = observer.after_op

    def current_version(self) -> int:
        """`version`, for a run that is about to begin."""
        if self._on_begin is not None and self.is_open:
            self._on_begin(self)
        return self.version

    def on_graph(self, graph: Graph) -> Sequence[int]:
        return self.observer.on_graph(graph) if self.is_open else [0] * len(graph.op_infos())

    def on_operator(self, graph: Graph, op: OpInfo) -> int:
        return self.observer.on_operator(graph, op) if self.is_open else 0

    def on_parameter(self, graph: Graph, value: Value) -> None:
        self.observer.on_parameter(graph, value)

    def on_iteration_begin(self, graph: Graph, iteration: int) -> bool:
        return self.is_open and self.observer.on_iteration_begin(graph, iteration)

    def on_iteration_end(self, step: FinishedStep) -> None:
        self.observer.on_iteration_end(step)

    def on_error(self, event: OpEvent, error: BaseException) -> None:
        self.observer.on_error(event, error)

    def close(self) -> None:
        self.observer.close()


class Calls(ABC):
    """One iteration of a graph as its front end runs it: calls by number, in the order in which they run.

    ops             what observers know of each call; None for a call that they do not see
    is_late         whether arrays are complete only some time after the call that made them, as copies from a device
    attributes      as of `FinishedStep`, when the iteration has ended, as is `state`
    is_before_told  whether observers hear of an operator before it runs; False where what they see is never
                    overwritten, so that there is nothing for them to save
    """

    ops: Sequence[OpInfo | None]
    is_late = False
    is_before_told = True
    attributes: Mapping[str, Mapping[str, object]] = MappingProxyType({})
    state: Hashable = None

    @abstractmethod
    def launch(self, number: int) -> None:
        """Run a call and keep its results for the calls that read them.   Raises: what the operator raises."""

    @abstractmethod
    def inputs(self, number: int) -> Sequence[Array]:
        """What the operator reads, before it runs."""

    @abstractmethod
    def outputs(self, number: int) -> Sequence[Array]:
        """What the operator wrote, after it ran."""

    @abstractmethod
    def array(self, value: Value) -> Array:
        """Memory of any value when the iteration has ended; of parameters and inputs at least."""

    def key(self, value: Value) -> TensorKey | None:
        """As of `FinishedStep`, where no compiled graph says so."""
        raise AssertionError(f"{value.name}: its key follows from the graph")

    def measured(self, value: Value) -> int | None:
        """As of `FinishedStep`, when the iteration has ended."""
        return None

    def named(self, op: OpInfo) -> OpInfo:
        """What observers are told of an operator that runs several times in an iteration: this run has a name of its
        own, and makes tensors of its own."""
        return op

    def explain(self, number: int, error: Exception) -> Exception:
        """What observers are told, and what is raised, for what a call raised."""
        return error

    def failed_outputs(self, number: int) -> Sequence[Array]:
        """What is in the outputs of an operator that raised."""
        return ()

    def protect(self, number: int) -> Collection[int]:
        """The operator is about to overwrite values. Returns the ids of those whose arrays it overwrites with them,
        where these are to be copied for observers that look at them when the iteration ends."""
        return ()

    def release(self, number: int) -> None:  # noqa: B027 - most front ends have nothing to do
        """Drop what no later call reads."""

    def hand_over(self, tell: Callable[[], None]) -> None:
        """Where arrays are late: call `tell` when those that were asked for until now are complete, in this order."""
        tell()

    def settle(self) -> None:  # noqa: B027 - most front ends have nothing to do
        """Where arrays are late: wait for all of them, and call what was handed over."""


class ObservedGraph:
    """A graph that observers know.

    Attributes: `graph`; `ops`, one per operator; `masks`, what each observer said; `overwrites`, whether an operator
    may overwrite what another one was given; `repeats`, whether some run several times in an iteration, or not at all.
    """

    def __init__(self, graph: Graph, observers: Sequence[Observer]) -> None:
        self.graph = graph
        self.ops = graph.op_infos()
        self.overwrites = graph.is_open or any(op.mutates for op in self.ops)
        self.repeats = bool(graph.owners)
        self._parameters: list[Value] = []
        self._versions = {observer: observer.version for observer in observers if isinstance(observer, Gate)}
        self.masks = {observer: self._tell(observer) for observer in observers}
        self._unions: dict[tuple[Observer, ...], list[int]] = {}
        # Answers of `WatchedRun.may_wait`, by identity of what it was asked of.
        self.waiting: dict[int, tuple[Sequence[OpInfo], Sequence[int], bool]] = {}

    @property
    def needs_all_values(self) -> bool:
        return any(observer.needs_all_values for observer in self.masks)

    def is_kept(self, op: OpInfo) -> bool:
        """Whether an observer looks at the operands when the iteration ends."""
        return any(mask[op.index] & KEEP for mask in self.masks.values())

    def append(self, op: OpInfo) -> None:
        """Of an open graph: an operator that is about to run for the first time."""
        self.ops.append(op)
        for observer, mask in self.masks.items():
            mask.append(observer.on_operator(self.graph, op))
        for watching, union in self._unions.items():
            union.append(functools.reduce(operator.or_, (self.masks[each][-1] for each in watching)))

    def add_parameter(self, value: Value) -> None:
        """Of an open graph: a parameter that an operator is about to read for the first time."""
        self._parameters.append(value)
        for observer in self.masks:
            observer.on_parameter(self.graph, value)

    def begin(self, iteration: int) -> WatchedRun | None:
        """The iteration as the observers that want it see it; None when there is no such observer."""
        for gate, version in self._versions.items():
            if gate.current_version() != version:
                self._tell_again(gate)
        watching = tuple(mask for mask in self.masks if mask.on_iteration_begin(self.graph, iteration))
        return WatchedRun(self, watching, iteration) if watching else None

    def union(self, watching: tuple[Observer, ...]) -> Sequence[int]:
        """One mask per operator: what any of these observers asked for."""
        union = self._unions.get(watching)
        if union is None:
            masks = [self.masks[observer] for observer in watching]
            union = [0] * len(self.ops)
            for mask in masks:
                union = [left | right for left, right in zip(union, mask, strict=True)]
            self._unions[watching] = union
        return union

    def _tell(self, observer: Observer) -> list[int]:
        masks = list(observer.on_graph(self.graph))
        if self.graph.is_open:
            masks += [observer.on_operator(self.graph, op) for op in self.ops]
            for value in self._parameters:
                observer.on_parameter(self.graph, value)
        return masks

    def _tell_again(self, gate: Gate) -> None:
        """Another observer has replaced it: show the graph to the new one."""
        self._versions[gate] = gate.version
        self.masks[gate] = self._tell(gate)
        self._unions.clear()


_MAX_WAITING = 64


class WatchedRun:
    """One iteration of an observed graph. An operator that no observer selected costs one test of its mask."""

    def __init__(self, seen: ObservedGraph, watching: tuple[Observer, ...], iteration: int) -> None:
        self._seen = seen
        self._watching = watching
        self._iteration = iteration
        self._masks = [(observer, seen.masks[observer]) for observer in watching]
        self._union = seen.union(watching)
        # Operands of each operator that an observer keeps.
        self._kept: dict[int, tuple[Sequence[Array], Sequence[Array]]] = {}
        self._kept_by_key: dict[TensorKey, Array] = {}
        # Of a graph that is open or repeats: the operators of this iteration, in the order in which they ended.
        self._ran: list[OpInfo] = []
        # Of a graph that repeats: operands of those that an observer keeps, by place in `_ran`.
        self._kept_of_run: dict[int, tuple[Sequence[Array], Sequence[Array]]] = {}
        # An operator that runs others raises what one of them raised.
        self._told: BaseException | None = None
        # What was in those that were overwritten.
        self._saved: dict[TensorKey, Array] = {}
        # Measured calls, each with its place in `_ran`.
        self._measured: list[tuple[int, MeasuredCalls]] = []

    def run(self, calls: Calls) -> None:
        """Run every call, then end the iteration.   Raises: what an operator raises, after `on_error`."""
        self.launch_all(calls)
        self.finish(calls)

    def launch_all(self, calls: Calls) -> None:
        """Run every call; observers are told of each operator as they asked.   Raises: as `run`."""
        for number, op in enumerate(calls.ops):
            self.launch(calls, number, op)

    def launch(self, calls: Calls, number: int, op: OpInfo | None) -> None:
        """Run one call.   `op`: its description for observers.   Raises: as `run`."""
        if op is None:
            self._launch(calls, number, None, None)
        else:
            if op.mutates:
                self._save(calls.protect(number))
            if self._union[op.index]:
                op = calls.named(op)
                self._watch(calls, number, op, self._union[op.index])
            else:
                self._launch(calls, number, op, None)
            if self._seen.repeats:
                if op.index in self._kept:
                    self._kept_of_run[len(self._ran)] = self._kept.pop(op.index)
                self._ran.append(op)
            elif self._seen.graph.is_open:
                self._ran.append(op)
        calls.release(number)

    def add_measured(self, calls: MeasuredCalls, may_wait: bool) -> None:
        """Calls of an open graph have run.

        may_wait   no observer is told of any of them before the iteration ends
        """
        if may_wait:
            self._measured.append((len(self._ran), calls))
            self._ran += calls.ops
            return
        for number, op in enumerate(calls.ops):
            union = self._union[op.index]
            if union:
                inputs, outputs = calls.arrays(number)
                if union & KEEP:
                    self._kept[op.index] = inputs, outputs
                if union & AFTER:
                    self._tell_after(OpEvent(op, self._iteration, inputs, outputs))
            self._ran.append(op)

    def may_wait(self, ops: Sequence[OpInfo]) -> bool:
        """Whether all observers look at these when the iteration ends, or not at all."""
        known = self._seen.waiting.get(id(ops))
        if known is None or known[0] is not ops or known[1] is not self._union:
            waits = not any(self._union[op.index] & (BEFORE | AFTER) for op in ops)
            if len(self._seen.waiting) >= _MAX_WAITING:
                self._seen.waiting.clear()
            known = self._seen.waiting[id(ops)] = ops, self._union, waits
        return known[2]

    def resume(self) -> None:
        """The script has caught an error of an operator of an open graph, and continues the iteration."""
        for observer in self._watching:
            observer.on_iteration_begin(self._seen.graph, self._iteration)

    def finish(self, calls: Calls) -> None:
        """Tell the observers that the iteration ended, with the arrays of the operators that they keep."""
        calls.settle()
        events = self._events()
        state = calls.state if isinstance(events, MeasuredEvents) else None
        step = FinishedStep(
            self._seen.graph, self._iteration, events, calls.array, calls.key, calls.attributes, calls.measured, state
        )
        for observer in self._watching:
            observer.on_iteration_end(step)

    # -- parts ------------------------------------------------------------------------------------

    def _events(self) -> Sequence[OpEvent]:
        if self._measured and sum(len(part.ops) for _, part in self._measured) == len(self._ran):
            return MeasuredEvents(self._iteration, [part for _, part in self._measured])
        for start, part in self._measured:
            for number, op in enumerate(self._ran[start : start + len(part.ops)]):
                self._kept[op.index] = part.arrays(number)
        events = []
        # Of these graphs not all operators run in each iteration, nor in one order.
        ran = self._ran if self._seen.graph.is_open or self._seen.repeats else self._seen.ops
        for place, op in enumerate(ran):
            kept = self._kept_of_run.get(place) if self._seen.repeats else self._kept.get(op.index)
            inputs, outputs = kept or ((), ())
            if self._saved:
                inputs = [self._saved.get(info.key, array) for info, array in zip(op.inputs, inputs, strict=False)]
                outputs = [self._saved.get(info.key, array) for info, array in zip(op.outputs, outputs, strict=False)]
            events.append(made_event(op, self._iteration, inputs, outputs))
        return events

    def _watch(self, calls: Calls, number: int, op: OpInfo, union: int) -> None:
        inputs = calls.inputs(number)
        if union & BEFORE and calls.is_before_told:
            calls.settle()
            self._tell_before(OpEvent(op, self._iteration, inputs, ()))
        self._launch(calls, number, op, inputs)
        outputs = calls.outputs(number)
        if union & KEEP:
            self._kept[op.index] = inputs, outputs
            if self._seen.overwrites:
                for info, array in (*zip(op.inputs, inputs, strict=True), *zip(op.outputs, outputs, strict=True)):
                    self._kept_by_key.setdefault(info.key, array)
        if union & AFTER:
            event = OpEvent(op, self._iteration, inputs, outputs)
            if calls.is_late:
                calls.hand_over(partial(self._tell_after, event))
                if union & BEFORE:
                    calls.settle()
            else:
                self._tell_after(event)

    def _save(self, value_ids: Collection[int]) -> None:
        for key, array in self._kept_by_key.items() if value_ids else ():
            if key.value_id in value_ids and key not in self._saved:
                self._saved[key] = c_copy(array)

    def _launch(self, calls: Calls, number: int, op: OpInfo | None, inputs: Sequence[Array] | None) -> None:
        try:
            calls.launch(number)
        except Exception as error:
            explained = calls.explain(number, error)
            if op is not None:
                self._tell_error(calls, number, op, inputs, explained)
            if explained is error:
                raise
            raise explained from error

    def _tell_error(
        self, calls: Calls, number: int, op: OpInfo, inputs: Sequence[Array] | None, error: Exception
    ) -> None:
        if self._seen.repeats and error is self._told:
            return
        self._told = error
        calls.settle()
        read = calls.inputs(number) if inputs is None else inputs
        event = OpEvent(calls.named(op) if inputs is None else op, self._iteration, read, calls.failed_outputs(number))
        calls.settle()
        for observer in self._watching:
            observer.on_error(event, error)

    def _tell_before(self, event: OpEvent) -> None:
        for observer, mask in self._masks:
            if mask[event.op.index] & BEFORE:
                observer.before_op(event)

    def _tell_after(self, event: OpEvent) -> None:
        for observer, mask in self._masks:
            if mask[event.op.index] & AFTER:
                observer.after_op(event)

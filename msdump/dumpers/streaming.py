"""Streaming dumpers: hand the records of an operator to writers the moment the operator has ended."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from msdump.config.plan import Plan
from msdump.dumpers.capture import (
    DATA,
    AclWatchedGraph,
    Clock,
    DataOperator,
    GraphMemory,
    SelectedOperand,
    WatchedGraph,
    op_records,
    parameter_record,
)
from msdump.dumpers.delivery import DataOffsets, Delivery, Postponed, Round, Turns
from msdump.dumpers.dumper import Dumper
from msdump.dumpers.staging import Staged, staged_size
from msdump.dumpers.tally import Tally
from msdump.formats.writer import Writer, takers_of
from msdump.graph.graph import Graph, Value
from msdump.graph.run import FinishedStep
from msdump.statistics.stats import MeasuredArray, has_nan, measured_now
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array
from msdump.tensors.records import (
    AFTER,
    BEFORE,
    INPUT,
    AlreadyWritten,
    Identity,
    OpEvent,
    OpInfo,
    TensorKey,
    TensorRecord,
)

# How much waits before statistics are taken in turns with the step.
_TURN_BYTES = 128 << 20

W = TypeVar("W", bound=GraphMemory)
_NO_ARRAYS: dict[TensorKey, Array] = {}


@dataclass(eq=False, slots=True)
class Running(Generic[W]):
    """A run of a graph that is dumped now.

    postponed  jobs that are written when it has ended
    measured   statistics in the place of tensors; None: the writer needs the tensor
    """

    watched: W
    round: Round
    postponed: Postponed
    measured: AlreadyWritten[Array] = field(default_factory=AlreadyWritten)


class StreamingDumper(Dumper, Generic[W]):
    """Memory stays reused, and the step continues while files are written.

    writers   get the records of one operator at a time, from several threads at once
    delivery  copies, queues and counts; dumpers of several models may share one
    """

    def __init__(
        self, writers: Sequence[Writer], delivery: Delivery, tally: Tally, clock: Clock | None, model: Hashable = None
    ) -> None:
        super().__init__(tally, clock, model)
        self._writers = tuple(writers)
        self._delivery = delivery
        # Graphs are freed with their models, without notice.
        self._watched: WeakKeyDictionary[Graph, W] = WeakKeyDictionary()
        # By graph id. Another thread may end the dump while a model runs, so it is asked for once in a call.
        self._running: dict[int, Running[W]] = {}

    @property
    def writers(self) -> tuple[Writer, ...]:
        """They are closed by the owner of `delivery`, or by the caller that replaces this dumper."""
        return self._writers

    def on_iteration_end(self, step: FinishedStep) -> None:
        running = self._running.get(step.graph.graph_id)
        if running is not None:
            self._write_late(running, step)
        self._end(step.graph.graph_id, is_complete=not self._is_over())
        self._delivery.count()

    def on_error(self, event: OpEvent, error: BaseException) -> None:
        self._end(event.op.graph_id)

    # -- for dumpers ------------------------------------------------------------------------------

    @abstractmethod
    def _write_late(self, running: Running[W], step: FinishedStep) -> None:
        """Write what is read when the step has ended."""

    @abstractmethod
    def _submit(self, running: Running[W], records: Sequence[TensorRecord]) -> None:
        """Copy what must be copied and queue the records of one operator."""

    def _is_over(self) -> bool:
        return self._is_closed or self._delivery.has_stopped()

    def _forget(self, graph: Graph) -> None:
        self._end(graph.graph_id)

    def _begin(self, graph: Graph, iteration: int) -> bool:
        round_ = self._delivery.begin(self._writers, graph.graph_id, iteration, self._model)
        self._running[graph.graph_id] = Running(self._watched[graph], round_, Postponed(self._delivery.pool))
        return True

    def _close(self) -> None:
        """What waits is written by the owner of `delivery`."""
        for graph_id in list(self._running):
            self._end(graph_id)

    def _end(self, graph_id: int, is_complete: bool = False) -> None:
        running = self._running.pop(graph_id, None)
        if running is not None:
            with self._delivery.pool.hurry():
                must_wait = running.postponed.end()
                self._delivery.end(running.round, is_complete)
                if must_wait:
                    self._delivery.pool.drain()

    def _write(
        self,
        running: Running[W],
        event: OpEvent,
        operands: Sequence[SelectedOperand],
        lost: int,
        kept: Mapping[TensorKey, Array] = _NO_ARRAYS,
    ) -> None:
        """Queue operands of an operator.   `lost`: how many records are missing when that fails."""
        if self._delivery.has_stopped():
            self._tally.count_lost(lost)
        elif operands:
            with self._dumping(lost):
                op = event.op
                stamps = self._clock.stamps(len(operands))
                records = op_records(event, operands, op.graph_id, stamps, kept, op.task_id, op.stream_id)
                self._submit(running, list(records))


class AsyncDumper(StreamingDumper[WatchedGraph]):
    """The asynchronous dump of MindSpore: one file for each tensor, or one for each operator.

    budget_bytes  that copies of waiting tensors may take; a full budget makes the step wait, nothing is ever dropped
    data_offsets  where in its file the data of each record of an operator begins; the same for each run of it
    on_step       called in the step's thread before a dumped iteration begins
    """

    def __init__(
        self,
        plan: Plan,
        writers: Sequence[Writer],
        tally: Tally,
        budget_bytes: int,
        threads: int = 2,
        clock: Clock | None = None,
        data_offsets: DataOffsets | None = None,
        on_step: Callable[[Graph, int], None] | None = None,
    ) -> None:
        super().__init__(writers, Delivery(tally, budget_bytes, threads, data_offsets), tally, clock)
        self._plan = plan
        self._writes_once = all(writer.writes_once for writer in writers)
        self._on_step = on_step
        self.staging, self.pool = self._delivery.staging, self._delivery.pool
        self._turns = Turns(self._delivery, min(_TURN_BYTES, budget_bytes // 4))
        self._old_inputs: dict[TensorKey, Staged] = {}

    def on_graph(self, graph: Graph) -> Sequence[int]:
        takes_empty = any(writer.takes_empty for writer in self._writers)
        watched = self._watched[graph] = WatchedGraph(graph, self._plan, takes_empty)
        self._tally.count_graph(graph, watched.masks)
        return [_mask(op, operands) for op, operands in zip(watched.ops, watched.operands, strict=True)]

    def on_operator(self, graph: Graph, op: OpInfo) -> int:
        watched = self._watched[graph]
        self._tally.count_operator(op.full_name, watched.add(op))
        return _mask(op, watched.operands[-1])

    def on_parameter(self, graph: Graph, value: Value) -> None:
        self._watched[graph].add_parameter(value)

    def before_op(self, event: OpEvent) -> None:
        """Copy the inputs that the operator will overwrite."""
        self._old_inputs.clear()
        op = event.op
        running = self._running.get(op.graph_id)
        if running is None or self._delivery.has_stopped():
            return
        with self._dumping():
            round_, watched = running.round, running.watched
            overwritten = {
                operand.info.key: event.inputs[operand.slot]
                for operand in watched.operands[op.index]
                if operand.io == INPUT and operand.slot in op.mutates and not round_.written.has(_identity(operand))
            }
            if overwritten and self._measures_only(watched):
                # What waits for its turn keeps its share of the budget, and this thread alone ends the turn.
                self._turns.make_room(round_, sum(array.nbytes for array in overwritten.values()))
            self._delivery.reserve(sum(staged_size(array) for array in overwritten.values()))
            for key, array in overwritten.items():
                self._old_inputs[key] = self._delivery.stage(round_, key, array)

    def after_op(self, event: OpEvent) -> None:
        op = event.op
        running = self._running.get(op.graph_id)
        if running is not None:
            kept = {key: staged.array for key, staged in self._old_inputs.items()}
            watched = running.watched
            self._write(running, event, watched.operands[op.index], watched.op_size(op.index), kept)
        self._old_inputs.clear()

    # -- parts ------------------------------------------------------------------------------------

    def _is_dumped(self, graph: Graph, iteration: int) -> bool:
        return self._plan.when.dumps(iteration)

    def _forget(self, graph: Graph) -> None:
        self._turns.lose()
        self._old_inputs.clear()
        super()._forget(graph)

    def _begin(self, graph: Graph, iteration: int) -> bool:
        if self._on_step is not None:
            self._on_step(graph, iteration)
        return super()._begin(graph, iteration)

    def _end(self, graph_id: int, is_complete: bool = False) -> None:
        """The run ends: borrowed memory must not be read any more."""
        self._old_inputs.clear()
        self._turns.end()
        super()._end(graph_id, is_complete)

    def _close(self) -> None:
        super()._close()
        self._delivery.close(self._writers)

    def _write_late(self, running: Running[WatchedGraph], step: FinishedStep) -> None:
        """The parameters."""
        watched, graph_id = running.watched, step.graph.graph_id
        for value in watched.parameters_of(step):
            size = int(0 not in value.type.shape)
            if self._delivery.has_stopped():
                self._tally.count_lost(size)
                continue
            with self._dumping(size):
                record = parameter_record(
                    value.name,
                    value.type.dtype,
                    step.array(value),
                    watched.final_key(value, step),
                    step.iteration,
                    graph_id,
                    self._clock.next_us(),
                )
                self._submit(running, [record])

    def _submit(self, running: Running[WatchedGraph], records: Sequence[TensorRecord]) -> None:
        """Tensors that the iteration has handed over before need no copy where writers write once: their records wait,
        without data, for the job that has it.
        """
        round_, watched = running.round, running.watched
        fresh: list[TensorRecord] = []
        repeats: list[TensorRecord] = []
        for record in records:
            if record.data.size == 0:
                continue
            if not self._writes_once or round_.written.is_new(record):
                fresh.append(record)
            else:
                repeats.append(record)
        takes_turns = self._measures_only(watched)
        if fresh:
            if takes_turns:
                counted = self._old_inputs.keys()
                moved = (
                    fresh_record
                    for fresh_record in fresh
                    if not watched.is_constant(fresh_record.key) and fresh_record.key not in counted
                )
                self._turns.make_room(round_, sum(record.size_bytes for record in moved))
            # Statistics are quicker than copies: what is lent is measured before the run ends.
            is_lent = not self._plan.saved.tensors
            safe, held = self._delivery.staged(round_, watched, fresh, self._old_inputs, is_lent)
            if takes_turns:
                self._turns.add(safe, held)
            else:
                job = self._delivery.job(round_, safe, held)
                self.pool.submit(job)
                for record in fresh if self._writes_once else ():
                    round_.written.put(record, job)
        for record in repeats:
            shadow = replace(record, data=_shape_only(record.data), is_repeat=True)
            if takes_turns:
                self._turns.add_repeat(shadow)
            else:
                self.pool.submit(self._delivery.job(round_, [shadow], []), round_.written.get(record))
        # Behind the copies: when there is no memory for them, nothing of the operator may be queued yet.
        for record in records:
            if record.data.size == 0:
                self._submit_empty(round_, record)

    def _measures_only(self, watched: WatchedGraph) -> bool:
        """Statistics of another library's tensors: it computes with all cores, so they are taken in turns with it."""
        return watched.lends and not self._plan.saved.tensors

    def _submit_empty(self, round_: Round, record: TensorRecord) -> None:
        takers = takers_of(record, self._writers)
        if takers:
            self.pool.submit(self._delivery.job(round_, [record], [], takers))
        else:
            self._tally.count_skipped("empty tensor")


def _mask(op: OpInfo, operands: Sequence[SelectedOperand]) -> int:
    is_overwritten = any(operand.io == INPUT and operand.slot in op.mutates for operand in operands)
    return (AFTER if operands else 0) | (BEFORE if is_overwritten else 0)


class AclOperatorDumper(StreamingDumper[AclWatchedGraph]):
    """Operators that an acl.json selects, of one model or of operators that are called one by one.

    watch   what is written of a graph
    begins  whether an iteration is dumped; called once, before anything of it is written
    measures  whether the writers say no more of a tensor than its statistics, which the thread that runs the graph
              then takes itself: threads beside it would take cores from the library that computes
    Inputs that the operator may overwrite are written before it runs, in a file of their own; other operators have
    one file with inputs and outputs. A failure to write ends the dump of all models, not their runs.
    """

    def __init__(
        self,
        watch: Callable[[Graph], AclWatchedGraph],
        begins: Callable[[int], bool],
        writers: Sequence[Writer],
        delivery: Delivery,
        tally: Tally,
        clock: Clock,
        measures: bool = False,
    ) -> None:
        super().__init__(writers, delivery, tally, clock, self)
        self._watch = watch
        self._begins = begins
        self._measures = measures

    def on_graph(self, graph: Graph) -> Sequence[int]:
        watched = self._watched[graph] = self._watch(graph)
        self._tally.count_graph(graph, watched.operator_masks)
        return watched.masks

    def before_op(self, event: OpEvent) -> None:
        op = event.op
        running = self._running.get(op.graph_id)
        if running is not None:
            for slot, data in running.watched.data.get(op.index, ()):
                self._write_data(running, data, event.inputs[slot], op.graph_id, event.iteration)
            operands = running.watched.before[op.index]
            self._write(running, event, operands, len(operands))

    def after_op(self, event: OpEvent) -> None:
        running = self._running.get(event.op.graph_id)
        if running is not None:
            operands = running.watched.after[event.op.index]
            self._write(running, event, operands, len(operands))

    # -- parts ------------------------------------------------------------------------------------

    def _is_dumped(self, graph: Graph, iteration: int) -> bool:
        return self._watched[graph].is_watched

    def _begin(self, graph: Graph, iteration: int) -> bool:
        return self._begins(iteration) and super()._begin(graph, iteration)

    def _write_late(self, running: Running[AclWatchedGraph], step: FinishedStep) -> None:
        for data in running.watched.late_data:
            self._write_data(running, data, step.array(data.value), step.graph.graph_id, step.iteration)

    def _write_data(
        self, running: Running[AclWatchedGraph], data: DataOperator, array: Array, graph_id: int, iteration: int
    ) -> None:
        op = OpInfo(graph_id, -1, DATA, data.value.name, 0, 0, (data.info,), (data.info,))
        self._write(running, OpEvent(op, iteration, (array,), (array,)), data.operands, len(data.operands))

    def _submit(self, running: Running[AclWatchedGraph], records: Sequence[TensorRecord]) -> None:
        if self._measures:
            records = [self._measured(running, record) for record in records]
        safe, held = self._delivery.staged(running.round, running.watched, records)
        job = self._delivery.job(running.round, safe, held)
        if self._measures and all(record.is_constant or isinstance(record.data, MeasuredArray) for record in safe):
            running.postponed.add(job)
        else:
            self._delivery.pool.submit(job)

    def _measured(self, running: Running[AclWatchedGraph], record: TensorRecord) -> TensorRecord:
        """The record with statistics in the place of its tensor, which is measured once in a run."""
        is_measured = record.data.size and record.dtype in dtypes.MINDSPORE_DUMPED
        if not is_measured or running.watched.is_constant(record.key):
            return record
        found = running.measured.get(record)
        if found is None and not running.measured.has(record.identity):
            found = measured_now(record.data, record.dtype)
            if has_nan(found, record.dtype):
                found = None  # the extremes depend on the first element
            running.measured.put(record, found)
        return record if found is None else replace(record, data=found)


def _identity(operand: SelectedOperand) -> Identity:
    """`identity` of the record that will be made of an operand."""
    info = operand.info
    return info.key, info.shape, info.dtype, info.format


def _shape_only(array: Array) -> Array:
    """An array that says shape, dtype and size, and holds nothing."""
    return np.ndarray(array.shape, array.dtype, _NO_DATA, 0, (0,) * array.ndim)


_NO_DATA = bytes(16)

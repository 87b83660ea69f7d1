"""AsyncDumper: hands the records of an operator to writers the moment the operator has ended."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from msdump.config.plan import DumpPlan
from msdump.dump.clock import Clock
from msdump.dump.snapshot import Operand, op_records, parameter_record
from msdump.dump.staging import Staged, Staging, staged_size
from msdump.dump.tally import Tally
from msdump.dump.watched import WatchedGraph
from msdump.dump.writer_pool import Job, WriterPool
from msdump.errors import DumpError
from msdump.events import AFTER, BEFORE, Array, FinishedStep, OpEvent
from msdump.formats.writer import Writer
from msdump.graph.graph import Graph
from msdump.records import INPUT, OUTPUT, TensorKey, TensorRecord

log = logging.getLogger("msdump")

# How much waits before statistics are taken in turns with the step: few turns, and memory that is soon used again.
_TURN_BYTES = 128 << 20


class AsyncDumper:
    """Observer of the asynchronous dump: memory stays reused, the step goes on while files are written.

    writers       get the records of one operator at a time, from several threads at once
    budget_bytes  that copies of waiting tensors may take; a full budget makes the step wait, nothing is ever dropped
    data_offsets  where in its file the data of each record of an operator begins; the same for each run of it
    on_step       called in the step's thread before a dumped iteration begins
    A failure to write stops the dump, not the training: it is logged once and kept in `tally.error`, with the
    number of records that were lost.
    """

    needs_all_values = False

    def __init__(
        self,
        plan: DumpPlan,
        writers: Sequence[Writer],
        tally: Tally,
        budget_bytes: int,
        threads: int = 2,
        clock: Clock | None = None,
        data_offsets: Callable[[Sequence[TensorRecord]], Sequence[int]] | None = None,
        on_step: Callable[[Graph, int], None] | None = None,
    ) -> None:
        self._plan = plan
        self._writers = tuple(writers)
        self._writes_once = all(writer.writes_once for writer in writers)
        self._tally = tally
        self._clock = clock or Clock()
        self._data_offsets = data_offsets
        self._offsets: dict[Hashable, Sequence[int]] = {}
        self._on_step = on_step
        self.staging = Staging(budget_bytes)
        self._turn_bytes = min(_TURN_BYTES, budget_bytes // 4)
        self.pool = WriterPool(threads)
        self._watched: dict[int, WatchedGraph] = {}
        self._rounds: dict[int, _Round] = {}
        self._old_inputs: dict[TensorKey, Staged] = {}
        self._lost = 0
        self._counting = threading.Lock()
        self._is_closed = False

    def on_graph(self, graph: Graph) -> Sequence[int]:
        watched = WatchedGraph(graph, self._plan)
        self._watched[graph.graph_id] = watched
        self._tally.count_graph(graph, watched.masks)
        masks = []
        for op, operands in zip(watched.ops, watched.operands, strict=True):
            is_overwritten = any(operand.io == INPUT and operand.slot in op.mutates for operand in operands)
            masks.append((AFTER if operands else 0) | (BEFORE if is_overwritten else 0))
        return masks

    def on_iteration_begin(self, graph: Graph, iteration: int) -> bool:
        self._tally.count_run(iteration)
        # What an earlier run left that ended by Ctrl-C, which nobody tells observers about.
        self._end_round(graph.graph_id)
        self._old_inputs.clear()
        if self._is_closed or self._has_stopped() or iteration not in self._plan.iterations:
            return False
        with self._timed(), self._stop_on_failure():
            if self._on_step is not None:
                self._on_step(graph, iteration)
            if self._measures_only(self._watched[graph.graph_id]):
                self.pool.rest()
            self._rounds[graph.graph_id] = _Round(self._writers, graph.graph_id, iteration, self._count_iteration)
        return not self._has_stopped()

    def before_op(self, event: OpEvent) -> None:
        """Copy the inputs that the operator will overwrite."""
        self._old_inputs.clear()
        if self._has_stopped():
            return
        with self._timed(), self._stop_on_failure():
            op = event.op
            known = self._rounds[op.graph_id].first
            overwritten = {
                operand.info.key: event.inputs[operand.slot]
                for operand in self._watched[op.graph_id].operands[op.index]
                if operand.io == INPUT and operand.slot in op.mutates and _identity(operand) not in known
            }
            self.staging.reserve(sum(staged_size(array) for array in overwritten.values()))
            for key, array in overwritten.items():
                self._old_inputs[key] = self.staging.stage((op.graph_id, event.iteration, key), array)

    def after_op(self, event: OpEvent) -> None:
        op = event.op
        watched = self._watched[op.graph_id]
        if self._has_stopped():
            self._lost += len(watched.operands[op.index])
            self._old_inputs.clear()
            return
        with self._timed(), self._stop_on_failure(len(watched.operands[op.index])):
            kept = {key: staged.array for key, staged in self._old_inputs.items()}
            operands = watched.operands[op.index]
            records = list(op_records(event, operands, op.graph_id, self._clock, kept, op.task_id, op.stream_id))
            self._submit(self._rounds[op.graph_id], watched, records)
        self._old_inputs.clear()

    def on_iteration_end(self, step: FinishedStep) -> None:
        graph_id = step.graph.graph_id
        watched = self._watched[graph_id]
        for value in watched.parameters:
            if self._has_stopped():
                self._lost += 1
                continue
            with self._timed(), self._stop_on_failure(1):
                record = parameter_record(
                    value.name,
                    value.type.dtype,
                    step.array(value),
                    watched.final_keys[value.id],
                    step.iteration,
                    graph_id,
                    self._clock.next_us(),
                )
                self._submit(self._rounds[graph_id], watched, [record])
        self._give_back(watched)
        self._end_round(graph_id, is_complete=not self._has_stopped())
        self._count()

    def on_error(self, event: OpEvent, error: BaseException) -> None:
        self._old_inputs.clear()
        self._give_back(self._watched[event.op.graph_id])
        self._end_round(event.op.graph_id)

    def close(self) -> None:
        """Write what waits; runs that come later are not dumped. Errors of writers are in `tally.error` afterwards."""
        self._is_closed = True
        for graph_id in list(self._rounds):
            self._end_round(graph_id)
        try:
            self.pool.close()
        finally:
            self._has_stopped()
            for writer in self._writers:
                with self._stop_on_failure():
                    writer.close()
            self._count()

    # -- parts ------------------------------------------------------------------------------------

    def _submit(self, round_: _Round, watched: WatchedGraph, records: Sequence[TensorRecord]) -> None:
        """Copy what must be copied and queue the records of one operator.

        Tensors that the iteration has handed over before need no copy where writers write once: their records wait,
        without data, for the job that has it.
        """
        fresh: dict[Hashable, TensorRecord] = {}
        repeats: list[TensorRecord] = []
        for record in records:
            identity = record.identity
            if record.data.size == 0:
                self._submit_empty(round_, record)
            elif self._writes_once and (identity in round_.first or identity in fresh):
                repeats.append(record)
            else:
                fresh[identity if self._writes_once else len(fresh)] = record
        if fresh:
            job = self._job(round_, *self._staged(watched, list(fresh.values())))
            round_.first.update(dict.fromkeys(fresh, job) if self._writes_once else {})
            self.pool.submit(job)
        for record in repeats:
            shadow = replace(record, data=_shape_only(record.data), is_repeat=True)
            self.pool.submit(self._job(round_, [shadow], []), round_.first[record.identity])

    def _staged(
        self, watched: WatchedGraph, records: Sequence[TensorRecord]
    ) -> tuple[list[TensorRecord], list[object]]:
        """The records with arrays that nobody overwrites, and the owners of these arrays."""
        movable = [record for record in records if not watched.is_constant(record.key)]
        self._take_turns(watched, sum(record.size_bytes for record in movable))
        own = sum(staged.size_bytes for staged in self._old_inputs.values())
        self.staging.reserve(
            sum(staged_size(record.data) for record in movable if record.key not in self._old_inputs), own
        )
        safe: list[TensorRecord] = []
        held: list[object] = []
        for record, offset in zip(records, self._offsets_of(records), strict=True):
            if watched.is_constant(record.key):
                safe.append(record)
                continue
            name = (record.graph_id, record.iteration, record.key)
            staged = self._old_inputs.get(record.key) if record.key is not None else None
            if staged is None and self._can_hold(watched, record.key):
                staged = self.staging.hold(name, record.data)
            staged = staged or self.staging.stage(name, record.data, offset)
            held.append(staged)
            safe.append(replace(record, data=staged.array.reshape(record.shape)))
        return safe, held

    def _can_hold(self, watched: WatchedGraph, key: TensorKey | None) -> bool:
        """Whether a tensor can wait without a copy. Statistics are quicker than copies: a run that only asks for
        them waits at its end until what it has lent is measured."""
        return watched.is_held(key) or (not self._plan.saves_tensor and watched.is_borrowed(key))

    def _give_back(self, watched: WatchedGraph) -> None:
        """The run ends: wait for whoever still reads what was lent."""
        if self._measures_only(watched):
            self.pool.drain()

    def _measures_only(self, watched: WatchedGraph) -> bool:
        """Statistics of another library's tensors: it computes with all cores, so they are taken in turns with it."""
        return watched.lends and not self._plan.saves_tensor

    def _take_turns(self, watched: WatchedGraph, size_bytes: int) -> None:
        """Let the threads work while the step waits, before more than a turn's worth of tensors waits for them."""
        if self._measures_only(watched) and self.pool.waiting_bytes + size_bytes > self._turn_bytes:
            self.pool.drain()
            self.pool.rest()

    def _offsets_of(self, records: Sequence[TensorRecord]) -> Sequence[int]:
        if self._data_offsets is None or max(record.data.nbytes for record in records) < _ALIGNED_BYTES:
            return [0] * len(records)
        first = records[0]
        name = (first.graph_id, first.op_name, len(records))
        found = self._offsets.get(name)
        if found is None:
            found = self._offsets[name] = self._data_offsets(records)
        return found

    def _job(
        self,
        round_: _Round,
        records: list[TensorRecord],
        held: list[object],
        writers: Sequence[Writer] | None = None,
        record_count: int | None = None,
    ) -> Job:
        def write() -> None:
            for writer in self._writers if writers is None else writers:
                writer.write(records)
            round_.leave()

        round_.enter()
        size = sum(record.size_bytes for record in records)
        return Job(size, len(records) if record_count is None else record_count, write, held)

    def _submit_empty(self, round_: _Round, record: TensorRecord) -> None:
        """Source: MindSpore, an empty tensor has no file; its operator's output still has its row of statistics."""
        self._tally.skipped["empty tensor"] += 1
        writers = [writer for writer in self._writers if writer.takes_empty]
        if writers and record.io == OUTPUT and not record.is_parameter:
            self.pool.submit(self._job(round_, [record], [], writers, record_count=0))

    def _count_iteration(self, iteration: int) -> None:
        with self._counting:
            self._tally.count_dumped(iteration)

    def _end_round(self, graph_id: int, is_complete: bool = False) -> None:
        round_ = self._rounds.pop(graph_id, None)
        if round_ is not None:
            round_.is_complete = is_complete
            self.pool.submit(Job(0, 0, round_.leave))

    def _has_stopped(self) -> bool:
        error = self.pool.error
        if error is not None:
            self._stop(error)
        return bool(self._tally.error)

    def _stop(self, error: BaseException) -> None:
        if not self._tally.error:
            self._tally.error = str(error) or type(error).__name__
            log.error("Dump stopped, training goes on: %s", self._tally.error)

    def _count(self) -> None:
        state = self.pool.state()
        self._tally.lost = state.lost_records + self._lost
        self._tally.tensors_written = state.written_records

    @contextmanager
    def _stop_on_failure(self, lost: int = 0) -> Iterator[None]:
        """Turn a failure to dump into the end of the dump; training goes on without `lost` records."""
        try:
            yield
        except (DumpError, OSError, MemoryError) as error:
            self._lost += lost
            self._stop(error)

    @contextmanager
    def _timed(self) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            self._tally.seconds += time.perf_counter() - started


def _identity(operand: Operand) -> Hashable:
    """`identity` of the record that will be made of an operand."""
    info = operand.info
    return info.key, info.shape, info.dtype, info.format


def _shape_only(array: Array) -> Array:
    """An array that says shape, dtype and size, and holds nothing."""
    return np.ndarray(array.shape, array.dtype, _NO_DATA, 0, (0,) * array.ndim)


_NO_DATA = bytes(16)
# Below this it does not matter how a copy lies.
_ALIGNED_BYTES = 1 << 20


class _Round:
    """One dumped iteration of one graph: who has which tensor, and how many jobs still need the writers' memory of it.

    The dumper itself counts as one until it knows that no more records come. `first` is for the step's thread only.

    is_complete   whether the step ended, which the dumper says before its own job leaves
    on_complete   called with the iteration when all of a complete step is on the disk; a job that is lost never leaves
    """

    def __init__(
        self, writers: Sequence[Writer], graph_id: int, iteration: int, on_complete: Callable[[int], None]
    ) -> None:
        self.first: dict[Hashable, Job] = {}
        self.is_complete = False
        self._on_complete = on_complete
        self._writers = writers
        self._name = (graph_id, iteration)
        self._jobs = 1
        self._lock = threading.Lock()

    def enter(self) -> None:
        with self._lock:
            self._jobs += 1

    def leave(self) -> None:
        """One job less; the last one ends the iteration."""
        with self._lock:
            self._jobs -= 1
            is_last = not self._jobs
        if is_last:
            for writer in self._writers:
                writer.end_iteration(*self._name)
            if self.is_complete:
                self._on_complete(self._name[1])

"""AsyncDumper: hands the records of an operator to writers the moment the operator has ended."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from msdump.config.plan import DumpPlan
from msdump.dump.clock import Clock
from msdump.dump.snapshot import Operand, op_records, parameter_record
from msdump.dump.staging import Staged, Staging
from msdump.dump.tally import Tally
from msdump.dump.watched import WatchedGraph
from msdump.dump.writer_pool import Job, WriterPool
from msdump.events import AFTER, BEFORE, Array, FinishedStep, OpEvent
from msdump.formats.writer import Writer
from msdump.graph.graph import Graph
from msdump.records import INPUT, TensorKey, TensorRecord

log = logging.getLogger("msdump")


class AsyncDumper:
    """Observer of the asynchronous dump: memory stays reused, the step goes on while files are written.

    writers     get the records of one operator at a time, from several threads at once
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
        on_step: Callable[[Graph, int], None] | None = None,
    ) -> None:
        self._plan = plan
        self._writers = tuple(writers)
        self._tally = tally
        self._clock = clock or Clock()
        self._on_step = on_step
        self.staging = Staging(budget_bytes)
        self.pool = WriterPool(threads)
        self._watched: dict[int, WatchedGraph] = {}
        self._old_inputs: dict[TensorKey, Staged] = {}

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
        self._tally.iterations_run += 1
        if self._has_stopped() or iteration not in self._plan.iterations:
            return False
        if self._on_step is not None:
            self._on_step(graph, iteration)
        self._tally.iterations_dumped += 1
        return True

    def before_op(self, event: OpEvent) -> None:
        """Copy the inputs that the operator will overwrite."""
        if self._has_stopped():
            return
        with self._timed():
            op = event.op
            overwritten = {
                operand.info.key: operand
                for operand in self._watched[op.graph_id].operands[op.index]
                if operand.io == INPUT and operand.slot in op.mutates
            }
            # All room is asked for at once: waiting while holding a copy of our own could last for ever.
            self.staging.reserve(operand_bytes(event, self._watched[op.graph_id].operands[op.index]))
            for key, operand in overwritten.items():
                array = event.inputs[operand.slot]
                self._old_inputs[key] = self.staging.stage(op.graph_id, event.iteration, key, array)

    def after_op(self, event: OpEvent) -> None:
        if self._has_stopped():
            self._release_old_inputs()
            return
        with self._timed():
            op = event.op
            operands = self._watched[op.graph_id].operands[op.index]
            kept = {key: staged.array for key, staged in self._old_inputs.items()}
            records = list(op_records(event, operands, op.graph_id, self._clock, kept, op.task_id, op.stream_id))
            if not self._old_inputs:
                # Copies that we hold ourselves would never be freed by waiting.
                self.staging.reserve(operand_bytes(event, operands))
            self._submit(records)
            self._release_old_inputs()

    def on_iteration_end(self, step: FinishedStep) -> None:
        watched = self._watched[step.graph.graph_id]
        for value in watched.parameters:
            if self._has_stopped():
                return
            with self._timed():
                array = step.array(value)
                record = parameter_record(
                    value.name,
                    value.type.dtype,
                    array,
                    watched.final_keys[value.id],
                    step.iteration,
                    step.graph.graph_id,
                    self._clock.next_us(),
                )
                self.staging.reserve(array.nbytes)
                self._submit([record])

    def on_error(self, event: OpEvent, error: BaseException) -> None:
        self._release_old_inputs()

    def close(self) -> None:
        """Write what waits. Errors of writers are in `tally.error` afterwards."""
        self.pool.close()
        self._has_stopped()
        if not self._tally.error:
            for writer in self._writers:
                writer.close()
        self._tally.lost = self.pool.state().lost_records
        self._tally.tensors_written = self.pool.state().written_records

    # -- parts ------------------------------------------------------------------------------------

    def _submit(self, records: list[TensorRecord]) -> None:
        """Copy what the records show and queue them as one job."""
        held: list[Staged] = []
        safe: list[TensorRecord] = []
        for record in records:
            assert record.key is not None  # every operand of a graph has one
            staged = self.staging.stage(record.graph_id, record.iteration, record.key, record.data)
            held.append(staged)
            safe.append(replace(record, data=staged.array.reshape(record.shape)))

        def write() -> None:
            for writer in self._writers:
                writer.write(safe)

        def done() -> None:
            for staged in held:
                self.staging.release(staged)

        self.pool.submit(Job(sum(record.size_bytes for record in safe), len(safe), write, done))

    def _release_old_inputs(self) -> None:
        for staged in self._old_inputs.values():
            self.staging.release(staged)
        self._old_inputs.clear()

    def _has_stopped(self) -> bool:
        error = self.pool.error
        if error is not None and not self._tally.error:
            self._tally.error = str(error) or type(error).__name__
            log.error("Dump stopped, training goes on: %s", self._tally.error)
        return error is not None

    @contextmanager
    def _timed(self) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            self._tally.seconds += time.perf_counter() - started


def operand_bytes(event: OpEvent, operands: Sequence[Operand]) -> int:
    """Bytes that copies of these operands take at most."""
    total = 0
    for operand in operands:
        arrays: Sequence[Array] = event.inputs if operand.io == INPUT else event.outputs
        total += arrays[operand.slot].nbytes
    return total

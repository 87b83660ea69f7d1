"""ExceptionDumper: when a kernel raises, what it had read and written goes to disk (`op_debug_mode` 4)."""

from __future__ import annotations

import logging
from collections.abc import Hashable, Sequence

from msdump.config.plan import DumpPlan
from msdump.dump.clock import Clock
from msdump.dump.input_copies import InputCopies
from msdump.dump.snapshot import Operand, op_records
from msdump.dump.tally import Tally
from msdump.dump.watched import WatchedGraph
from msdump.errors import MsdumpError
from msdump.events import BEFORE, OpEvent
from msdump.formats.writer import Writer
from msdump.graph.graph import Graph
from msdump.graph.run import FinishedStep
from msdump.records import TensorRecord

log = logging.getLogger("msdump")


class ExceptionDumper:
    """Observer that writes the operator whose kernel raised, before the exception goes on.

    writers   get the records of that operator: inputs as it read them, outputs as far as it came
    All steps are watched, whatever `iteration` says: no one knows the step of a failure in advance. A failure to
    write is logged and kept in `tally.error`; the kernel's exception is what the caller sees.
    """

    needs_all_values = False
    saves_without_operands = False
    """Whether an operator without any tensor that has elements is written as well."""

    def __init__(self, plan: DumpPlan, writers: Sequence[Writer], tally: Tally, clock: Clock | None = None) -> None:
        self._plan = plan
        self._writers = tuple(writers)
        self._tally = tally
        self._clock = clock or Clock()
        self._watched: dict[int, WatchedGraph] = {}
        self._copies = InputCopies()
        self._model: Hashable = None
        # Shared where several models are watched.
        tally.overflows = tally.overflows or []

    def on_graph(self, graph: Graph) -> Sequence[int]:
        watched = WatchedGraph(graph, self._plan)
        self._watched[graph.graph_id] = watched
        self._tally.count_graph(graph, watched.masks)
        return [BEFORE if mask and op.mutates else 0 for op, mask in zip(watched.ops, watched.masks, strict=True)]

    def on_iteration_begin(self, graph: Graph, iteration: int) -> bool:
        self._tally.count_run(iteration, self._model)
        return not self._tally.error and self._plan.is_device_enabled

    def before_op(self, event: OpEvent) -> None:
        with self._tally.timed():
            try:
                self._copies.take(event, event.op.mutates)
            except MemoryError:
                self._tally.fail(MemoryError("no memory for copies of what operators overwrite"))
                log.error("Dump stopped, training goes on: %s", self._tally.error)

    def after_op(self, event: OpEvent) -> None:
        """Nothing: an operator that returns is not dumped."""

    def on_iteration_end(self, step: FinishedStep) -> None:
        """Nothing: only the operator that failed is dumped."""

    def on_error(self, event: OpEvent, error: BaseException) -> None:
        op = event.op
        watched = self._watched[op.graph_id]
        operands = watched.operands[op.index]
        if not self.saves_without_operands:
            operands = tuple(operand for operand in operands if 0 not in operand.info.shape)
        if self._tally.error or not (operands or self.saves_without_operands):
            return
        with self._tally.timed():
            self._dump(event, operands, error)

    def _dump(self, event: OpEvent, operands: Sequence[Operand], error: BaseException) -> None:
        op = event.op
        kept = self._copies.arrays if op.mutates else {}
        try:
            found = op_records(event, operands, op.graph_id, self._clock, kept, op.task_id, op.stream_id)
            # An output without elements that should have some was not made.
            made = zip(operands, found, strict=True)
            records = [record for operand, record in made if record.data.size or 0 in operand.info.shape]
            place = self._save(records, event, error)
            self._tally.count_written(len(records))
            self._tally.count_dumped(event.iteration, object())  # operators outside of models count each call
            self._tally.add_overflow(op.full_name)
            name, kind = op.full_name, type(error).__name__
            log.error("iteration %d: %s raised %s; it was dumped%s.", event.iteration, name, kind, place)
        except (MsdumpError, OSError, MemoryError) as failure:
            self._tally.count_lost(len(operands))
            self._tally.fail(failure)
            log.error("%s raised %s and could not be dumped: %s", op.full_name, type(error).__name__, failure)

    def _save(self, records: Sequence[TensorRecord], event: OpEvent, error: BaseException) -> str:
        """What the log says of the place, where nobody knows it.   Raises: MsdumpError, OSError, MemoryError."""
        for writer in self._writers:
            writer.write(records)
            writer.end_iteration(event.op.graph_id, event.iteration)
        return ""

    def close(self) -> None:
        try:
            for writer in self._writers:
                writer.close()
        except (MsdumpError, OSError) as failure:
            self._tally.fail(failure)
            log.error("Dump stopped: %s", failure)

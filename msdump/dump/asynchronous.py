"""AsyncDumper: hands the records of an operator to writers the moment the operator has ended."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace

import numpy as np

from msdump.arrays import Array
from msdump.config.plan import DumpPlan
from msdump.dump.capture import Clock, Operand, WatchedGraph, op_records, parameter_record
from msdump.dump.delivery import DataOffsets, Delivery, Round, Turns
from msdump.dump.staging import Staged, staged_size
from msdump.dump.tally import Tally
from msdump.events import AFTER, BEFORE, OpEvent
from msdump.formats.writer import Writer
from msdump.graph.graph import Graph
from msdump.graph.run import FinishedStep
from msdump.records import INPUT, OUTPUT, TensorKey, TensorRecord

# How much waits before statistics are taken in turns with the step.
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
        data_offsets: DataOffsets | None = None,
        on_step: Callable[[Graph, int], None] | None = None,
    ) -> None:
        self._plan = plan
        self._writers = tuple(writers)
        self._writes_once = all(writer.writes_once for writer in writers)
        self._tally = tally
        self._clock = clock or Clock()
        self._on_step = on_step
        self._delivery = Delivery(tally, budget_bytes, threads, data_offsets)
        self.staging, self.pool = self._delivery.staging, self._delivery.pool
        self._turns = Turns(self._delivery, min(_TURN_BYTES, budget_bytes // 4))
        self._watched: dict[int, WatchedGraph] = {}
        self._rounds: dict[int, Round] = {}
        self._old_inputs: dict[TensorKey, Staged] = {}
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
        self._turns.lose()
        self._end_round(graph.graph_id)
        self._old_inputs.clear()
        if self._is_closed or self._delivery.has_stopped() or iteration not in self._plan.iterations:
            return False
        with self._delivery.timed(), self._delivery.stop_on_failure():
            if self._on_step is not None:
                self._on_step(graph, iteration)
            self._rounds[graph.graph_id] = self._delivery.begin(self._writers, graph.graph_id, iteration)
        return not self._delivery.has_stopped()

    def before_op(self, event: OpEvent) -> None:
        """Copy the inputs that the operator will overwrite."""
        self._old_inputs.clear()
        if self._delivery.has_stopped():
            return
        with self._delivery.timed(), self._delivery.stop_on_failure():
            op = event.op
            round_, watched = self._rounds[op.graph_id], self._watched[op.graph_id]
            overwritten = {
                operand.info.key: event.inputs[operand.slot]
                for operand in watched.operands[op.index]
                if operand.io == INPUT and operand.slot in op.mutates and _identity(operand) not in round_.first
            }
            if overwritten and self._measures_only(watched):
                # What waits for its turn keeps its share of the budget, and this thread alone ends the turn.
                self._turns.make_room(round_, sum(array.nbytes for array in overwritten.values()))
            self.staging.reserve(sum(staged_size(array) for array in overwritten.values()))
            for key, array in overwritten.items():
                self._old_inputs[key] = self._delivery.stage(round_, key, array)

    def after_op(self, event: OpEvent) -> None:
        op = event.op
        watched = self._watched[op.graph_id]
        if self._delivery.has_stopped():
            self._delivery.lose(watched.op_size(op.index))
            self._old_inputs.clear()
            return
        with self._delivery.timed(), self._delivery.stop_on_failure(watched.op_size(op.index)):
            kept = {key: staged.array for key, staged in self._old_inputs.items()}
            operands = watched.operands[op.index]
            records = list(op_records(event, operands, op.graph_id, self._clock, kept, op.task_id, op.stream_id))
            self._submit(self._rounds[op.graph_id], watched, records)
        self._old_inputs.clear()

    def on_iteration_end(self, step: FinishedStep) -> None:
        graph_id = step.graph.graph_id
        watched = self._watched[graph_id]
        for value in watched.parameters:
            size = int(0 not in value.type.shape)
            if self._delivery.has_stopped():
                self._delivery.lose(size)
                continue
            with self._delivery.timed(), self._delivery.stop_on_failure(size):
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
        self._end_round(graph_id, is_complete=not self._delivery.has_stopped())
        self._delivery.count()

    def on_error(self, event: OpEvent, error: BaseException) -> None:
        self._old_inputs.clear()
        self._give_back(self._watched[event.op.graph_id])
        self._end_round(event.op.graph_id)

    def close(self) -> None:
        """Write what waits; runs that come later are not dumped. Errors of writers are in `tally.error` afterwards."""
        self._is_closed = True
        self._turns.end()
        for graph_id in list(self._rounds):
            self._end_round(graph_id)
        self._delivery.close(self._writers)

    # -- parts ------------------------------------------------------------------------------------

    def _submit(self, round_: Round, watched: WatchedGraph, records: Sequence[TensorRecord]) -> None:
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
        takes_turns = self._measures_only(watched)
        if fresh:
            first = list(fresh.values())
            if takes_turns:
                counted = self._old_inputs.keys()
                moved = (each for each in first if not watched.is_constant(each.key) and each.key not in counted)
                self._turns.make_room(round_, sum(record.size_bytes for record in moved))
            # Statistics are quicker than copies: what is lent is measured before the run ends.
            is_lent = not self._plan.saves_tensor
            safe, held = self._delivery.staged(round_, watched, first, self._old_inputs, is_lent)
            job = None
            if takes_turns:
                self._turns.add(safe, held)
            else:
                job = self._delivery.job(round_, safe, held)
                self.pool.submit(job)
            round_.first.update(dict.fromkeys(fresh, job) if self._writes_once else {})
        for record in repeats:
            shadow = replace(record, data=_shape_only(record.data), is_repeat=True)
            if takes_turns:
                self._turns.add_repeat(shadow)
            else:
                self.pool.submit(self._delivery.job(round_, [shadow], []), round_.first[record.identity])

    def _give_back(self, watched: WatchedGraph) -> None:
        """The run ends: nobody may read any longer what was lent."""
        if self._measures_only(watched):
            self._turns.end()

    def _measures_only(self, watched: WatchedGraph) -> bool:
        """Statistics of another library's tensors: it computes with all cores, so they are taken in turns with it."""
        return watched.lends and not self._plan.saves_tensor

    def _submit_empty(self, round_: Round, record: TensorRecord) -> None:
        """Source: MindSpore, an empty tensor has no file; its operator's output still has its row of statistics."""
        self._tally.count_skipped("empty tensor")
        writers = [writer for writer in self._writers if writer.takes_empty]
        if writers and record.io == OUTPUT and not record.is_parameter:
            self.pool.submit(self._delivery.job(round_, [record], [], writers, record_count=0))

    def _end_round(self, graph_id: int, is_complete: bool = False) -> None:
        self._delivery.end(self._rounds.pop(graph_id, None), is_complete)


def _identity(operand: Operand) -> Hashable:
    """`identity` of the record that will be made of an operand."""
    info = operand.info
    return info.key, info.shape, info.dtype, info.format


def _shape_only(array: Array) -> Array:
    """An array that says shape, dtype and size, and holds nothing."""
    return np.ndarray(array.shape, array.dtype, _NO_DATA, 0, (0,) * array.ndim)


_NO_DATA = bytes(16)

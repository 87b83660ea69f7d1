"""ImmediateDumper: writes inputs of an operator just before it runs, and outputs directly afterwards."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from msdump.config.plan import DUMP_INPUT, DUMP_OUTPUT
from msdump.dumpers.capture import Clock, SelectedOperand, op_records, selected_operands
from msdump.dumpers.dumper import Dumper
from msdump.dumpers.tally import Tally
from msdump.formats.writer import Writer
from msdump.graph.graph import Graph
from msdump.graph.run import FinishedStep
from msdump.tensors.records import AFTER, BEFORE, OpEvent


class ImmediateDumper(Dumper):
    """Observer of graphs of which every operator is dumped, in every iteration. Nothing is copied, and nothing waits.

    writers  get one record at a time
    Runs of several threads may be under way. All records of one run of an operator have the same time stamp.
    """

    def __init__(self, writers: Sequence[Writer], tally: Tally, clock: Clock | None = None) -> None:
        super().__init__(tally, clock, self)
        self._writers = tuple(writers)
        # By graph and operator: what it reads, what it makes.
        self._operands: dict[int, list[tuple[tuple[SelectedOperand, ...], tuple[SelectedOperand, ...]]]] = {}
        # By graph and iteration: the stamp of the operator that runs now.
        self._stamps: dict[tuple[int, int], int] = {}

    def on_graph(self, graph: Graph) -> Sequence[int]:
        self._operands[graph.graph_id] = [
            (selected_operands(op, DUMP_INPUT), selected_operands(op, DUMP_OUTPUT)) for op in graph.op_infos()
        ]
        masks = [BEFORE | AFTER] * len(self._operands[graph.graph_id])
        self._tally.count_graph(graph, masks)
        return masks

    def before_op(self, event: OpEvent) -> None:
        self._stamps[event.op.graph_id, event.iteration] = self._clock.next_us()
        self._write(event, self._operands[event.op.graph_id][event.op.index][0])

    def after_op(self, event: OpEvent) -> None:
        self._write(event, self._operands[event.op.graph_id][event.op.index][1])

    def on_iteration_end(self, step: FinishedStep) -> None:
        self.end_iteration(step.graph.graph_id, step.iteration)

    def on_error(self, event: OpEvent, error: BaseException) -> None:
        self.end_iteration(event.op.graph_id, event.iteration)

    def end_iteration(self, graph_id: int, iteration: int) -> None:
        """The run is over. A front end calls it after Ctrl-C as well. Idempotent."""
        if self._stamps.pop((graph_id, iteration), None) is None:
            return
        with self._dumping():
            for writer in self._writers:
                writer.end_iteration(graph_id, iteration)
        self._tally.count_dumped(iteration, graph_id)

    # -- parts ------------------------------------------------------------------------------------

    def _is_dumped(self, graph: Graph, iteration: int) -> bool:
        return True

    def _close(self) -> None:
        for writer in self._writers:
            with self._tally.stop_on_failure():
                writer.close()

    def _write(self, event: OpEvent, operands: Sequence[SelectedOperand]) -> None:
        if self._is_over():
            self._tally.count_lost(len(operands))
            return
        with self._dumping(len(operands)) as attempt:
            op = event.op
            stamps = itertools.repeat(self._stamps[op.graph_id, event.iteration])
            for record in op_records(event, operands, op.graph_id, stamps, {}, op.task_id, op.stream_id):
                for writer in self._writers:
                    writer.write([record])
                attempt.count_written(1)

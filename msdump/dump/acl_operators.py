"""AclOperatorDumper: the operators that an acl.json asks for, in files of their own, while a model runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from msdump.arrays import Array
from msdump.dump.capture import DATA, AclWatchedGraph, Clock, DataOperator, Operand, op_records
from msdump.dump.delivery import Delivery, Round
from msdump.dump.tally import Tally
from msdump.events import OpEvent, OpInfo
from msdump.formats.writer import Writer
from msdump.graph.graph import Graph
from msdump.graph.run import FinishedStep
from msdump.records import TensorRecord


@dataclass(eq=False, slots=True)
class _Running:
    watched: AclWatchedGraph
    round: Round


class AclOperatorDumper:
    """Observer of one model, or of operators that are called one by one.

    watch          what is written of a graph
    begins         whether an iteration is dumped; called once, before anything of it is written
    writers        get the records of one file at a time, from several threads at once
    delivery       shared by all models of a dump
    Inputs that the operator may overwrite are written before it runs, in a file of their own; other operators have
    one file with inputs and outputs. A failure to write ends the dump of all models, not their runs.
    """

    needs_all_values = False

    def __init__(
        self,
        watch: Callable[[Graph], AclWatchedGraph],
        begins: Callable[[int], bool],
        writers: Sequence[Writer],
        delivery: Delivery,
        tally: Tally,
        clock: Clock,
    ) -> None:
        self._watch = watch
        self._begins = begins
        self._writers = tuple(writers)
        self._delivery = delivery
        self._tally = tally
        self._clock = clock
        # Graphs come and go with their models; nobody says goodbye.
        self._watched: WeakKeyDictionary[Graph, AclWatchedGraph] = WeakKeyDictionary()
        self._running: dict[int, _Running] = {}
        self._is_closed = False

    def on_graph(self, graph: Graph) -> Sequence[int]:
        watched = self._watched[graph] = self._watch(graph)
        self._tally.count_graph(graph, watched.operator_masks)
        return watched.masks

    def on_iteration_begin(self, graph: Graph, iteration: int) -> bool:
        self._tally.count_run(iteration, self)
        # What an earlier run left that ended by Ctrl-C, which nobody tells observers about.
        self._end(graph.graph_id)
        watched = self._watched[graph]
        if self._is_closed or not watched.is_watched or self._delivery.has_stopped():
            return False
        with self._delivery.timed(), self._delivery.stop_on_failure():
            if not self._begins(iteration):
                return False
            round_ = self._delivery.begin(self._writers, graph.graph_id, iteration, self)
            self._running[graph.graph_id] = _Running(watched, round_)
        return graph.graph_id in self._running

    def before_op(self, event: OpEvent) -> None:
        op = event.op
        running = self._running.get(op.graph_id)
        if running is None:
            return  # another thread has ended the dump while the model runs
        for slot, data in running.watched.data.get(op.index, ()):
            self._write_data(running, data, event.inputs[slot], op.graph_id, event.iteration)
        self._write(running, event, running.watched.before[op.index])

    def after_op(self, event: OpEvent) -> None:
        running = self._running.get(event.op.graph_id)
        if running is not None:
            self._write(running, event, running.watched.after[event.op.index])

    def on_iteration_end(self, step: FinishedStep) -> None:
        graph_id = step.graph.graph_id
        running = self._running.get(graph_id)
        if running is not None:
            for data in running.watched.late_data:
                self._write_data(running, data, step.array(data.value), graph_id, step.iteration)
        self._end(graph_id, is_complete=not self._delivery.has_stopped())
        self._delivery.count()

    def on_error(self, event: OpEvent, error: BaseException) -> None:
        self._end(event.op.graph_id)

    def close(self) -> None:
        """The model is gone: runs that come later are not dumped. What waits is written by whoever owns `delivery`."""
        self._is_closed = True
        for graph_id in list(self._running):
            self._end(graph_id)

    # -- parts ------------------------------------------------------------------------------------

    def _write(self, running: _Running, event: OpEvent, operands: Sequence[Operand]) -> None:
        """Queue one file."""
        if not operands:
            return
        if self._delivery.has_stopped():
            self._delivery.lose(len(operands))
            return
        with self._delivery.timed(), self._delivery.stop_on_failure(len(operands)):
            op = event.op
            records = list(op_records(event, operands, op.graph_id, self._clock, {}, op.task_id, op.stream_id))
            self._submit(running, records)

    def _write_data(self, running: _Running, data: DataOperator, array: Array, graph_id: int, iteration: int) -> None:
        op = OpInfo(graph_id, -1, DATA, data.value.name, 0, 0, (data.info,), (data.info,))
        self._write(running, OpEvent(op, iteration, (array,), (array,)), data.operands)

    def _submit(self, running: _Running, records: Sequence[TensorRecord]) -> None:
        safe, held = self._delivery.staged(running.round, running.watched, records)
        self._delivery.pool.submit(self._delivery.job(running.round, safe, held))

    def _end(self, graph_id: int, is_complete: bool = False) -> None:
        running = self._running.pop(graph_id, None)
        if running is not None:
            self._delivery.end(running.round, is_complete)

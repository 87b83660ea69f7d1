"""Watcher: detects writes into memory that belongs to another tensor.

Outputs of watched operators are written when they are made, as in any dump, and again, read from the same memory, after
each trigger has run. Two files that differ name the operator that wrote where it should not have.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from weakref import WeakKeyDictionary

from msdump.config.selection import ModelOperator, Which
from msdump.dumpers.capture import AclWatchedGraph, Clock, SelectedOperand, op_records
from msdump.dumpers.delivery import Delivery, Round
from msdump.dumpers.staging import staged_size
from msdump.dumpers.streaming import AclOperatorDumper
from msdump.dumpers.tally import Tally
from msdump.formats.paths.acl import watcher_op_name
from msdump.formats.writer import Writer
from msdump.graph.graph import Graph
from msdump.tensors.arrays import Array
from msdump.tensors.records import AFTER, KEEP, OpEvent, OpInfo

log = logging.getLogger("msdump")


@dataclass(frozen=True, slots=True)
class _Output:
    """What a watched operator has made in this run: the executor's own memory, not a copy."""

    op: OpInfo
    operands: Sequence[SelectedOperand]
    arrays: Sequence[Array]


@dataclass(frozen=True, slots=True)
class _Run:
    """A run that is under way.   `triggers`: indices of operators."""

    triggers: frozenset[int]
    made: list[_Output] = field(default_factory=list)


class Watcher(AclOperatorDumper):
    """Observer of one model.

    which      says who is watched, and who triggers
    originals  name of an operator -> its names before it was renamed or fused

    The executor is asked to keep what watched operators read and make until the run ends (KEEP): where a device uses
    the memory of a dead tensor again, the second file would differ without an operator at fault. A trigger that runs
    before a watched operator finds nothing of it to save. Operators with a shape that only the
    data decide have no fixed address: they neither trigger nor are they saved again.
    Source: ACL, `dump_scene` watcher.
    """

    def __init__(
        self,
        which: Which,
        originals: Mapping[str, tuple[str, ...]],
        watch: Callable[[Graph], AclWatchedGraph],
        begins: Callable[[int], bool],
        writers: Sequence[Writer],
        delivery: Delivery,
        tally: Tally,
        clock: Clock,
        measures: bool = False,
    ) -> None:
        super().__init__(watch, begins, writers, delivery, tally, clock, measures)
        self._which = which
        self._originals = originals
        self._triggers: WeakKeyDictionary[Graph, frozenset[int]] = WeakKeyDictionary()
        # By graph id. `close` takes them out from another thread, so a caller reads it once.
        self._run_by_graph: dict[int, _Run] = {}

    def on_graph(self, graph: Graph) -> Sequence[int]:
        masks = list(super().on_graph(graph))
        watched = self._watched[graph]
        triggers = frozenset(op.index for op in watched.ops if self._is_trigger(op) and not _is_open(op))
        self._triggers[graph] = triggers
        for op in watched.ops:
            is_saved = bool(watched.after[op.index])
            if _is_open(op) and (is_saved or self._is_trigger(op)):
                self._tell(op, is_saved)
            elif is_saved:
                masks[op.index] |= KEEP
            elif op.index in triggers:
                masks[op.index] |= AFTER
        self._tell_early(watched, triggers)
        return masks

    def after_op(self, event: OpEvent) -> None:
        op = event.op
        super().after_op(event)
        running, run = self._running.get(op.graph_id), self._run_by_graph.get(op.graph_id)
        if running is None or run is None:
            return
        operands = running.watched.after[op.index]
        if operands:
            if not _is_open(op):
                run.made.append(_Output(op, operands, event.outputs))
        elif op.index in run.triggers:
            for made in run.made:
                self._save_again(running.round, made, event)

    # -- parts ------------------------------------------------------------------------------------

    def _begin(self, graph: Graph, iteration: int) -> bool:
        begins = super()._begin(graph, iteration)
        if begins:
            self._run_by_graph[graph.graph_id] = _Run(self._triggers[graph])
        return begins

    def _end(self, graph_id: int, is_complete: bool = False) -> None:
        self._run_by_graph.pop(graph_id, None)
        super()._end(graph_id, is_complete)

    def _is_trigger(self, op: OpInfo) -> bool:
        return self._which.triggers(ModelOperator(op.op_type, op.full_name, self._originals.get(op.full_name, ())))

    def _is_named(self, op: OpInfo) -> bool:
        """Without `layer` every operator triggers; those that cannot were not asked for by name."""
        names = (op.full_name, *self._originals.get(op.full_name, ()))
        return any(name in operator_list.full_names for operator_list in self._which.lists for name in names)

    def _tell_early(self, watched: AclWatchedGraph, triggers: frozenset[int]) -> None:
        """A watcher that can find nothing says so."""
        first = next((op for op in watched.ops if watched.after[op.index]), None)
        for op in watched.ops:
            if first is not None and op.index in triggers and op.index < first.index and self._is_named(op):
                log.warning(
                    "%s: it runs before %s, the first operator that is watched, so nothing is saved after it.",
                    op.full_name,
                    first.full_name,
                )

    def _tell(self, op: OpInfo, is_saved: bool) -> None:
        if is_saved:
            log.warning("%s: only the data decide its shape, so it is not saved again after others.", op.full_name)
        elif self._is_named(op):
            log.warning("%s: only the data decide its shape, so nothing is saved after it.", op.full_name)

    def _save_again(self, round_: Round, made: _Output, trigger: OpEvent) -> None:
        """Queue the file `{A}_To_{C}` with what is in the memory of C's outputs now.

        It gets a copy of its own: as the program goes these are the bytes of C's ordinary file, which may still wait.
        """
        delivery = self._delivery
        if self._is_over():
            self._tally.count_lost(len(made.operands))
            return
        op = replace(
            made.op,
            full_name=watcher_op_name(trigger.op.full_name, made.op.full_name),
            task_id=trigger.op.task_id,
            stream_id=trigger.op.stream_id,
        )
        with self._dumping(len(made.operands)):
            event = OpEvent(op, trigger.iteration, (), made.arrays)
            stamps = self._clock.stamps(len(made.operands))
            records = op_records(event, made.operands, op.graph_id, stamps, {}, op.task_id, op.stream_id)
            delivery.reserve(sum(staged_size(record.data) for record in records))
            held = [
                delivery.staging.stage((round_, trigger.op.index, made.op.index, record.slot), record.data)
                for record in records
            ]
            safe = [replace(record, data=copy.array, key=None) for record, copy in zip(records, held, strict=True)]
            delivery.pool.submit(delivery.job(round_, safe, list(held)))


def _is_open(op: OpInfo) -> bool:
    return any(-1 in info.shape for info in (*op.inputs, *op.outputs))

"""OverflowDumper: dumps only the operators that turn finite inputs into Inf or NaN (`op_debug_mode` 1, 2, 3)."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from msdump.config.plan import Plan
from msdump.dumpers.capture import Clock, InputCopies, WatchedGraph, op_records
from msdump.dumpers.dumper import Dumper
from msdump.dumpers.tally import Tally
from msdump.formats.opdebug import Opdebug, TaskStatus, opdebug_record
from msdump.formats.writer import Writer
from msdump.graph.graph import Graph
from msdump.graph.run import FinishedStep
from msdump.graph.saturation import is_saturated
from msdump.operators.traits import is_unset, places_constant, unset_keys
from msdump.statistics.stats import has_nan, has_non_finite
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array
from msdump.tensors.records import AFTER, BEFORE, OpEvent, OpInfo, TensorInfo, TensorKey

log = logging.getLogger("msdump")

AI_CORE_MODE, ATOMIC_MODE, BOTH_MODE = 1, 2, 3

# Operators that add up in memory, which mode 2 watches; mode 1 watches all others.
ATOMIC_OP_TYPES = frozenset(
    {
        "AccumulateNV2",
        "AddN",
        "BiasAddGrad",
        "Conv2DBackpropFilter",
        "Conv3DBackpropFilter",
        "DepthwiseConv2dNativeBackpropFilter",
        "GatherDGradV2",
        "ReduceMean",
        "ReduceSum",
        "ScatterAdd",
        "ScatterNd",
        "ScatterNdAdd",
        "ScatterNdSub",
        "ScatterSub",
        "SegmentSum",
        "TensorScatterAdd",
        "TensorScatterSub",
        "UnsortedSegmentSum",
    }
)

# State of a tensor. PLACED: all that is not finite in it is an Inf that the script wrote down, such as a mask.
_FINITE, _PLACED, _BROKEN = 0, 1, 2

# The bits have no public meaning; any of them means that there was an overflow.
_STATUS = 1


@dataclass(frozen=True, slots=True)
class Overflow:
    """An operator that overflowed; `slots` are the outputs that show it."""

    graph_id: int
    iteration: int
    full_name: str
    slots: tuple[int, ...]


class OverflowFinder(Dumper):
    """Observer that looks at every float output once, and finds the operators that overflow.

    Uninitialised memory never counts as an overflow.
    """

    def __init__(self, plan: Plan, tally: Tally, clock: Clock | None = None, model: Hashable = None) -> None:
        super().__init__(tally, clock, model)
        self._plan = plan
        self._watched: dict[int, WatchedGraph] = {}
        self._floats: dict[int, list[tuple[tuple[int, ...], tuple[int, ...]]]] = {}
        self._copies = InputCopies()
        self._unset: dict[int, frozenset[TensorKey]] = {}
        self._states: dict[TensorKey, int] = {}
        self._graph: Graph | None = None  # of the iteration that runs

    def on_graph(self, graph: Graph) -> Sequence[int]:
        watched = WatchedGraph(graph, self._plan)
        self._watched[graph.graph_id] = watched
        self._floats[graph.graph_id] = floats = [
            (_float_slots(op.inputs), _float_slots(op.outputs)) for op in watched.ops
        ]
        self._unset[graph.graph_id] = unset_keys(
            (op.op_type, [info.key for info in op.inputs], [info.key for info in op.outputs]) for op in watched.ops
        )
        # What an operator gives that runs others, those have made.
        owners = graph.owners
        handing_on = {node.full_name for node in graph.nodes if node.id in owners}
        is_watched = [
            op.full_name not in handing_on and self._is_watched(op, mask, outputs)
            for op, mask, (_, outputs) in zip(watched.ops, watched.masks, floats, strict=True)
        ]
        self._tally.count_graph(graph, is_watched)
        return [
            (AFTER | (BEFORE if op.mutates else 0)) if is_wanted else 0
            for op, is_wanted in zip(watched.ops, is_watched, strict=True)
        ]

    def on_operator(self, graph: Graph, op: OpInfo) -> int:
        mask = self._watched[graph.graph_id].add(op)
        floats = _float_slots(op.inputs), _float_slots(op.outputs)
        self._floats[graph.graph_id].append(floats)
        unset = self._unset[graph.graph_id]
        if is_unset(op.op_type, (info.key in unset for info in op.inputs)):
            keys = frozenset(info.key for info in op.outputs)
            self._unset[graph.graph_id] = unset | keys
            self._states |= dict.fromkeys(keys, _FINITE)
        is_watched = self._is_watched(op, mask, floats[1])
        self._tally.count_operator(op.full_name, is_watched)
        return (AFTER | (BEFORE if op.mutates else 0)) if is_watched else 0

    def before_op(self, event: OpEvent) -> None:
        """Keep what the operator will overwrite: only afterwards it is known whether it is dumped."""
        if self._is_over():
            return
        with self._dumping():
            self._copies.take(event, event.op.mutates)

    def after_op(self, event: OpEvent) -> None:
        if self._is_over():
            return
        with self._tally.timed():
            op = event.op
            _, outputs = self._floats[op.graph_id][op.index]
            slots = tuple([slot for slot in outputs if self._state(op.outputs[slot], event.outputs[slot]) != _FINITE])
            if slots:
                slots = self._overflowing(event, slots)
            if slots:
                self._found(event, slots)

    # -- for finders ------------------------------------------------------------------------------

    @abstractmethod
    def _found(self, event: OpEvent, slots: tuple[int, ...]) -> None:
        """An operator has overflowed; `slots` are the outputs that show it."""

    def _passed_on(self, event: OpEvent, slots: tuple[int, ...]) -> None:
        """An operator has read Inf or NaN that is an overflow's, and its outputs hold some."""

    # -- parts ------------------------------------------------------------------------------------

    def _is_watched(self, op: OpInfo, mask: int, outputs: Sequence[int]) -> bool:
        return mask != 0 and outputs != () and is_watched_type(op.op_type, self._plan.trigger.overflow)

    def _is_dumped(self, graph: Graph, iteration: int) -> bool:
        return self._plan.when.dumps(iteration)

    def _forget(self, graph: Graph) -> None:
        # A graph that was not shown before is not checked.
        self._states = dict.fromkeys(self._unset.get(graph.graph_id, ()), _FINITE)
        self._graph = graph

    def _state(self, info: TensorInfo, array: Array) -> int:
        """Whether a tensor holds what an overflow leaves; each distinct tensor is read once per step."""
        state = self._states.get(info.key)
        if state is None:
            is_broken = has_non_finite(array, info.dtype) or is_saturated(array)
            state = _FINITE if not is_broken else _PLACED if self._is_constant(info.key) else _BROKEN
            self._states[info.key] = state
        return state

    def _is_constant(self, key: TensorKey) -> bool:
        """Whether the script wrote a tensor down, such as the -Inf that fills a mask."""
        return self._graph is not None and any(value.id == key.value_id for value in self._graph.constants)

    def _overflowing(self, event: OpEvent, slots: tuple[int, ...]) -> tuple[int, ...]:
        """Those of the outputs with Inf or NaN that tell of an overflow: none where an input was broken already.

        An Inf that the script wrote down is none, nor where operators pass it on; a NaN that becomes of it is one.
        """
        op = event.op
        inputs, _ = self._floats[op.graph_id][op.index]
        read = [self._state(op.inputs[slot], self._as_read(event, slot)) for slot in inputs]
        if _BROKEN in read:
            self._passed_on(event, slots)
            return ()
        if _PLACED not in read and not places_constant(op.op_type):
            return slots
        placed = [slot for slot in slots if not has_nan(event.outputs[slot], op.outputs[slot].dtype)]
        self._states |= {op.outputs[slot].key: _PLACED for slot in placed}
        return tuple([slot for slot in slots if slot not in placed])

    def _as_read(self, event: OpEvent, slot: int) -> Array:
        """An input as it was before the operator ran; memory that it overwrote may be named by several slots."""
        kept = self._copies.arrays.get(event.op.inputs[slot].key) if event.op.mutates else None
        return event.inputs[slot] if kept is None else kept


class OverflowDumper(OverflowFinder):
    """Observer that writes operators that overflow, immediately.

    writers   get the records of an operator that overflowed
    opdebug   gets the record of its overflow file
    on_step   called before a watched iteration begins
    model_id  in overflow files; None: a graph is a model of its own
    `found` lists the overflows; after `overflow_number` of them no step is watched any more.
    """

    def __init__(
        self,
        plan: Plan,
        writers: Sequence[Writer],
        opdebug: Writer,
        tally: Tally,
        clock: Clock | None = None,
        on_step: Callable[[Graph, int], None] | None = None,
        model_id: int | None = None,
    ) -> None:
        super().__init__(plan, tally, clock, model_id)
        self._writers = tuple(writers)
        self._opdebug = opdebug
        self._on_step = on_step
        self._model_id = model_id
        self._has_dumped = False
        self.found: list[Overflow] = []
        # Shared where several models are watched.
        tally.overflows = tally.overflows or []

    def on_iteration_end(self, step: FinishedStep) -> None:
        self._end_iteration(step.graph.graph_id, step.iteration)

    def on_error(self, event: OpEvent, error: BaseException) -> None:
        """A kernel that raises is what mode 4 is for; what overflowed before is on disk."""
        self._end_iteration(event.op.graph_id, event.iteration)

    # -- parts ------------------------------------------------------------------------------------

    def _is_over(self) -> bool:
        return super()._is_over() or 0 < self._plan.trigger.overflow_number <= len(self.found)

    def _forget(self, graph: Graph) -> None:
        super()._forget(graph)
        self._has_dumped = False

    def _begin(self, graph: Graph, iteration: int) -> bool:
        if self._on_step is not None:
            self._on_step(graph, iteration)
        return True

    def _end_iteration(self, graph_id: int, iteration: int) -> None:
        for writer in (*self._writers, self._opdebug) if self._has_dumped else ():
            with self._tally.stop_on_failure():
                writer.end_iteration(graph_id, iteration)

    def _close(self) -> None:
        for writer in (*self._writers, self._opdebug):
            with self._tally.stop_on_failure():
                writer.close()

    def _found(self, event: OpEvent, slots: tuple[int, ...]) -> None:
        op = event.op
        watched = self._watched[op.graph_id]
        operands = [operand for operand in watched.operands[op.index] if 0 not in operand.info.shape]
        kept = self._copies.arrays if op.mutates else {}
        self.found.append(Overflow(op.graph_id, event.iteration, op.full_name, slots))
        self._tally.add_overflow(op.full_name)
        outputs = ", ".join(map(str, slots))
        log.warning(
            "iteration %d: %s overflows: output %s holds Inf or NaN, no input does.",
            event.iteration,
            op.full_name,
            outputs,
        )
        if not self._has_dumped:
            self._has_dumped = True
            self._tally.count_dumped(event.iteration, self._model_id)
        with self._tally.stop_on_failure(len(operands)) as attempt:
            stamps = self._clock.stamps(len(operands))
            records = op_records(event, operands, op.graph_id, stamps, kept, op.task_id, op.stream_id)
            for writer in self._writers:
                writer.write(records)
            attempt.count_written(len(records))
            # The debug task comes after all launches, on a stream of its own: its ids are not those of the operator.
            task_id, stream_id = len(watched.ops), 1 + max(op.stream_id for op in watched.ops)
            content = _opdebug_of(op, op.graph_id if self._model_id is None else self._model_id)
            stamp = self._clock.next_us()
            self._opdebug.write([opdebug_record(content, task_id, stream_id, stamp, event.iteration, op.graph_id)])


def is_watched_type(op_type: str, op_debug_mode: int) -> bool:
    """Whether a mode looks at operators of this type.   Source: MindSpore dump guide, `op_debug_mode`."""
    is_atomic = op_type in ATOMIC_OP_TYPES
    return op_debug_mode == BOTH_MODE or op_debug_mode == (ATOMIC_MODE if is_atomic else AI_CORE_MODE)


def _float_slots(infos: Sequence[TensorInfo]) -> tuple[int, ...]:
    return tuple(slot for slot, info in enumerate(infos) if dtypes.dtype(info.dtype).may_be_non_finite)


def _opdebug_of(op: OpInfo, model_id: int) -> Opdebug:
    """The unit that computes, or the one that adds in memory; a host has no program counter and no cores to name."""
    task = TaskStatus(model_id=model_id, stream_id=op.stream_id, task_id=op.task_id, status=_STATUS)
    return Opdebug(dha=task) if op.op_type in ATOMIC_OP_TYPES else Opdebug(ai_core=task)

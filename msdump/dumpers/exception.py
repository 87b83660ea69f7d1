"""Exception dumps: when an operator raises, write its inputs and outputs.

ExceptionDumper: through writers of records (`op_debug_mode` 4). AclExceptionDumper: one file with all that is known of
the operator, in one of three forms (`dump_scene`). Files are whole before the exception goes on: they stay when the
process dies of it.
"""

from __future__ import annotations

import logging
import sys
import traceback
from abc import abstractmethod
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from types import FrameType

from msdump.config.environment import BRIEF, DETAIL, NORM
from msdump.config.plan import Plan
from msdump.dumpers.capture import Clock, InputCopies, WatchedGraph, op_records
from msdump.dumpers.dumper import Dumper
from msdump.dumpers.tally import Tally
from msdump.errors import WriteError
from msdump.formats.direct import Buffer
from msdump.formats.exception import (
    FailedOperand,
    OperatorFailure,
    brief_chunks,
    brief_file_name,
    core_chunks,
    core_file_name,
    exception_dir,
    format_stamp,
    norm_chunks,
    norm_file_name,
)
from msdump.formats.writer import Counter, DumpFolder, WriteCounts, Writer
from msdump.graph.graph import Graph
from msdump.tensors.arrays import Array
from msdump.tensors.device_layouts import host_format
from msdump.tensors.records import BEFORE, DEFAULT_FORMAT, INPUT, OUTPUT, OpEvent, OpInfo, TensorInfo, TensorRecord

log = logging.getLogger("msdump")


class _RaisedDumper(Dumper):
    """Observer that writes the operator that raised, before the exception goes on.

    All steps are watched, independent of `iteration`: the step of a failure is not known in advance. What the caller
    sees is the operator's exception, also where the dump fails.
    saves_without_operands  whether an operator without any tensor that has elements is written as well
    """

    saves_without_operands = False

    def __init__(self, plan: Plan, tally: Tally, clock: Clock | None, model: Hashable = None) -> None:
        super().__init__(tally, clock, model)
        self._plan = plan
        self._watched: dict[int, WatchedGraph] = {}
        self._copies = InputCopies()
        # Shared where several models are watched.
        tally.overflows = tally.overflows or []

    def on_graph(self, graph: Graph) -> Sequence[int]:
        watched = WatchedGraph(graph, self._plan)
        self._watched[graph.graph_id] = watched
        self._tally.count_graph(graph, watched.masks)
        return [BEFORE if mask and op.mutates else 0 for op, mask in zip(watched.ops, watched.masks, strict=True)]

    def on_operator(self, graph: Graph, op: OpInfo) -> int:
        mask = self._watched[graph.graph_id].add(op)
        self._tally.count_operator(op.full_name, mask)
        return BEFORE if mask and op.mutates else 0

    def before_op(self, event: OpEvent) -> None:
        with self._dumping():
            try:
                self._copies.take(event, event.op.mutates)
            except MemoryError:
                raise MemoryError("no memory for copies of what operators overwrite") from None

    def on_error(self, event: OpEvent, error: BaseException) -> None:
        op = event.op
        watched = self._watched[op.graph_id]
        operands = watched.operands[op.index]
        if not self.saves_without_operands:
            operands = tuple(operand for operand in operands if 0 not in operand.info.shape)
        if self._is_over() or not (operands or self.saves_without_operands):
            return
        kept = self._copies.arrays if op.mutates else {}
        stamps = self._clock.stamps(len(operands))
        every = op_records(event, operands, op.graph_id, stamps, kept, op.task_id, op.stream_id)
        # An output without elements that should have some was not made.
        records = [
            record
            for operand, record in zip(operands, every, strict=True)
            if record.data.size or 0 in operand.info.shape
        ]
        name, kind = op.full_name, type(error).__name__
        failed = f"{name} raised {kind} and could not be dumped".replace("%", "%%") + ": %s"
        with self._dumping(len(records), failed) as attempt:
            path_note = self._save(records, event, error)
            attempt.count_written(len(records))
            self._tally.count_dumped(event.iteration, object())  # operators outside of models count each call
            self._tally.add_overflow(name)
            log.error("iteration %d: %s raised %s; it was dumped%s.", event.iteration, name, kind, path_note)

    # -- parts ------------------------------------------------------------------------------------

    def _is_dumped(self, graph: Graph, iteration: int) -> bool:
        return self._plan.watches(iteration)

    @abstractmethod
    def _save(self, records: Sequence[TensorRecord], event: OpEvent, error: BaseException) -> str:
        """What the log says of the place, where it is not known.   Raises: MsdumpError, OSError, MemoryError."""


class ExceptionDumper(_RaisedDumper):
    """writers   get the records of an operator that raised: inputs as it read them, outputs as far as it came"""

    def __init__(self, plan: Plan, writers: Sequence[Writer], tally: Tally, clock: Clock | None = None) -> None:
        super().__init__(plan, tally, clock)
        self._writers = tuple(writers)

    def _save(self, records: Sequence[TensorRecord], event: OpEvent, error: BaseException) -> str:
        for writer in self._writers:
            writer.write(records)
            writer.end_iteration(event.op.graph_id, event.iteration)
        return ""

    def _close(self) -> None:
        for writer in self._writers:
            with self._tally.stop_on_failure():
                writer.close()


# Finished evidence is read-only.   Source: CANN, mode of the brief file.
_FILE_MODE, _DIR_MODE = 0o400, 0o700
_MILLISECOND = 1000
_PACKAGE = __name__.rpartition(".")[0] + "."

_Form = tuple[Callable[[OperatorFailure, str], str], Callable[[OperatorFailure], list[Buffer]]]
_FORMS: dict[str, _Form] = {
    BRIEF: (brief_file_name, brief_chunks),
    NORM: (norm_file_name, norm_chunks),
    DETAIL: (core_file_name, core_chunks),
}


class AclExceptionDumper(_RaisedDumper):
    """Observer that writes the operator that raised, of any model and of single operators.

    base  folder that gets `extra-info`; made when it is missing
    """

    saves_without_operands = True

    def __init__(self, plan: Plan, base: Path, device_id: int, tally: Tally, clock: Clock | None = None) -> None:
        # It counts its runs apart from those of other models.
        super().__init__(plan, tally, clock, self)
        self._name_of, self._chunks_of = _FORMS[plan.trigger.exception]
        self._dir = exception_dir(base, device_id)
        self._device_id = device_id
        self._attributes: dict[int, list[tuple[tuple[str, str], ...]]] = {}
        self._counter = Counter()

    @property
    def counts(self) -> WriteCounts:
        return self._counter.total

    def on_graph(self, graph: Graph) -> Sequence[int]:
        self._attributes[graph.graph_id] = [
            tuple((name, str(value)) for name, value in node.primitive.attrs.items()) for node in graph.kernels
        ]
        return super().on_graph(graph)

    def _save(self, records: Sequence[TensorRecord], event: OpEvent, error: BaseException) -> str:
        """Raises: WriteError, DtypeError, LayoutError."""
        op = event.op
        made = {(record.io, record.slot): record for record in records}
        operands = [
            _operand(INPUT, slot, info, array, made.get((INPUT, slot)))
            for slot, (info, array) in enumerate(zip(op.inputs, event.inputs, strict=True))
        ] + [
            _operand(OUTPUT, slot, info, array, made.get((OUTPUT, slot)))
            for slot, (info, array) in enumerate(zip(op.outputs, event.outputs, strict=True))
        ]
        failure = OperatorFailure(
            op.op_type,
            op.full_name,
            op.task_id,
            op.stream_id,
            self._device_id,
            event.iteration,
            self._clock.next_us(),
            tuple(operands),
            self._attributes[op.graph_id][op.index],
            type(error).__name__,
            str(error),
            tuple(_lines(traceback.format_stack(_caller()))),
            # What the kernel itself raised, of which `error` may be but the explanation.
            tuple(_lines(traceback.format_exception(sys.exc_info()[1] or error))),
        )
        return f" to {self._dir / self._write(failure)}"

    def _write(self, failure: OperatorFailure) -> str:
        """Under the first stamp that is free: another failure may have had this millisecond, of another process too.

        Returns: the name of the file.
        """
        chunks = self._chunks_of(failure)
        stamp_us = failure.timestamp_us
        folder = DumpFolder(self._dir, _FILE_MODE, _DIR_MODE)
        with folder:
            while True:
                name = folder.fitting_name(self._name_of(failure, format_stamp(stamp_us)), "")
                try:
                    size = folder.write(name, chunks, _FILE_MODE)
                except WriteError:
                    if not folder.has(name):
                        raise
                    stamp_us += _MILLISECOND
                else:
                    self._counter.file(size)
                    return name


def _operand(io: str, slot: int, info: TensorInfo, array: Array, record: TensorRecord | None) -> FailedOperand:
    if record is None:
        return FailedOperand(io, slot, info.dtype, info.shape, _format(info.format, info.shape))
    shown_format = _format(record.format, record.shape)
    return FailedOperand(io, slot, info.dtype, record.shape, shown_format, array.ctypes.data, record)


def _format(name: str, shape: tuple[int, ...]) -> str:
    return host_format(shape) if name == DEFAULT_FORMAT else name


def _caller() -> FrameType | None:
    """The frame that reported the failure: the caller that ran the operator."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith(_PACKAGE):
        frame = frame.f_back
    return frame


def _lines(texts: Sequence[str]) -> list[str]:
    return [line for text in texts for line in text.rstrip("\n").split("\n")]

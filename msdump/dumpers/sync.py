"""SyncDumper: writes all selected tensors when the step has ended."""

from __future__ import annotations

import logging
from collections.abc import Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace

import numpy as np

from msdump.config.plan import DUMP_INPUT, Plan
from msdump.dumpers.capture import Clock, WatchedGraph, op_records, parameter_record
from msdump.dumpers.delivery import batches
from msdump.dumpers.dumper import Dumper
from msdump.dumpers.limits import LimitedWriter, row_bytes
from msdump.dumpers.recorders import GraphRecorder, IterationRecorder
from msdump.dumpers.tally import Attempt, Tally
from msdump.formats.paths.sync import SyncPaths
from msdump.formats.sidecars import append_history
from msdump.formats.statistic_csv import MeasuredRows, row_frame
from msdump.formats.writer import Writer, takers_of
from msdump.graph.graph import Graph, Value
from msdump.graph.run import FinishedStep, MeasuredCalls, MeasuredEvents
from msdump.process.termination import in_thread
from msdump.statistics.measured import RowFrames
from msdump.tensors.c_order import c_copy, copy_elements
from msdump.tensors.records import (
    BEFORE,
    DEFAULT_FORMAT,
    INPUT,
    KEEP,
    OUTPUT,
    AlreadyWritten,
    OpEvent,
    OpInfo,
    TensorRecord,
)

log = logging.getLogger("msdump")

# Two keep both a disk and the page cache busy; more gain nothing on the machines measured.
_THREADS = 2


class SyncDumper(Dumper):
    """Observer of the synchronous dump. Memory must not be reused: the values are read when the step has ended.

    writers      get the records of every operator of a dumped iteration
    whole        those of them that get all records of a step in one piece, because measuring many tensors at once takes
                 less time; they bring threads of their own
    constants    gets the constants of each graph, once
    earlier      the dumper that this one replaces, which knows which graphs are written and reported
    """

    needs_all_values = True

    def __init__(
        self,
        plan: Plan,
        paths: SyncPaths,
        writers: Sequence[Writer],
        constants: Writer,
        tally: Tally,
        clock: Clock | None = None,
        earlier: SyncDumper | None = None,
        whole: Sequence[Writer] = (),
    ) -> None:
        super().__init__(tally, clock)
        self._described: set[int] = set() if earlier is None else earlier._described
        self._with_constants: set[int] = set() if earlier is None else earlier._with_constants
        self._told_of: set[tuple[int, str]] = set() if earlier is None else earlier._told_of
        self._plan = plan
        self._paths = paths
        self._writers = tuple(writers)
        self._whole = tuple(writer for writer in writers if writer in whole)
        self._shared = tuple(writer for writer in writers if writer not in whole)
        self._constants = constants
        self._recorder = GraphRecorder(paths)
        self._iterations: IterationRecorder = IterationRecorder(paths) if earlier is None else earlier._iterations
        self._watched: dict[int, WatchedGraph] = {}
        # Open graphs that have operators which the file of the graph lacks.
        self._grown: set[int] = set()
        self._threads = ThreadPoolExecutor(_THREADS, "msdump-sync")
        # By graph, and state of the step.
        self._measured: dict[tuple[int, Hashable], _MeasuredStep] = {}
        # By identities of the operators of each part.
        self._frames: dict[tuple[int, ...], _OperatorRows] = {}

    def on_graph(self, graph: Graph) -> Sequence[int]:
        watched = WatchedGraph(graph, self._plan, any(writer.takes_empty for writer in self._writers))
        self._watched[graph.graph_id] = watched
        watched.has_constants_on_disk = graph.graph_id in self._with_constants
        self._tally.count_graph(graph, watched.masks)
        if not self._is_over() and not graph.is_open and graph.graph_id not in self._described:
            self._described.add(graph.graph_id)
            with self._dumping():
                self._recorder.record(graph)
        self._report_strings(watched, graph)
        return [
            (KEEP if mask else 0) | (BEFORE if op.index in watched.keep else 0)
            for op, mask in zip(watched.ops, watched.masks, strict=True)
        ]

    def on_operator(self, graph: Graph, op: OpInfo) -> int:
        mask = self._watched[graph.graph_id].add(op)
        self._tally.count_operator(op.full_name, mask)
        self._grown.add(graph.graph_id)
        return KEEP if mask else 0

    def on_parameter(self, graph: Graph, value: Value) -> None:
        self._watched[graph.graph_id].add_parameter(value)

    def before_op(self, event: OpEvent) -> None:
        """Copy what the operator will overwrite, into buffers with the lifetime of the graph."""
        if self._is_over():
            return
        watched = self._watched[event.op.graph_id]
        with self._dumping(_records_of(watched)):
            for slot in watched.keep[event.op.index]:
                key = event.op.inputs[slot].key
                if key in watched.kept:
                    copy_elements(watched.kept[key], event.inputs[slot])
                else:
                    watched.kept[key] = c_copy(event.inputs[slot])

    def on_iteration_end(self, step: FinishedStep) -> None:
        if self._is_over():
            return
        graph_id, iteration = step.graph.graph_id, step.iteration
        watched = self._watched[graph_id]
        rows_writer = self._measured_writer(step)
        measured = None if rows_writer is None else self._measured_step(step, watched)
        parameters: Sequence[Value]
        if measured is not None:
            parameters = measured.others
            size = len(measured.frames) + len(parameters)
        else:
            parameters = watched.parameters_of(step)
            size = _size_of(step, watched, len(parameters)) if step.graph.is_open else _records_of(watched)
        with self._dumping(size) as attempt:
            if step.graph.is_open:
                self._record_open(step)
            self._write_constants(watched, graph_id, iteration, attempt)
            records: list[TensorRecord] = []
            if rows_writer is None or measured is None:
                records = self._step_records(step, watched)
            else:
                self._write_measured(rows_writer, measured, step, attempt)
            self._write([*records, *self._parameter_records(watched, parameters, step)], attempt)
            for writer in (*self._writers, self._constants):
                writer.end_iteration(graph_id, iteration)
            if step.graph.is_entry:
                append_history(self._paths.history_file(graph_id), iteration)
            self._tally.count_dumped(iteration, is_empty=attempt.missing >= size)

    # -- parts ------------------------------------------------------------------------------------

    def _record_open(self, step: FinishedStep) -> None:
        """The files of an open graph, once more where it has grown, and what this iteration executed."""
        if step.graph.graph_id in self._grown:
            self._grown.discard(step.graph.graph_id)
            self._recorder.record(step.graph)
        self._iterations.record(step)

    def _is_dumped(self, graph: Graph, iteration: int) -> bool:
        return self._plan.when.dumps(iteration)

    def _close(self) -> None:
        self._threads.shutdown()
        with self._tally.stop_on_failure():
            self._iterations.close()
        for writer in (*self._writers, self._constants):
            with self._tally.stop_on_failure():
                writer.close()

    def _step_records(self, step: FinishedStep, watched: WatchedGraph) -> list[TensorRecord]:
        """Of all operators.   Source: MindSpore, `trans_flag` true: every tensor as on the host."""
        operands = [watched.operands[event.op.index] for event in step.events]
        stamps = self._clock.stamps(sum(map(len, operands)))
        records: list[TensorRecord] = []
        for event, some in zip(step.events, operands, strict=True):
            if some:
                records += op_records(event, some, step.graph.graph_id, stamps, watched.kept)
        if self._plan.saved.is_host_layout:
            for record_index, record in enumerate(records):
                if record.format != DEFAULT_FORMAT:
                    records[record_index] = replace(record, format=DEFAULT_FORMAT, sub_format=0)
        return records

    def _measured_writer(self, step: FinishedStep) -> LimitedWriter | None:
        """Who writes rows of a step of known statistics; None where a step has others, or files."""
        writer = self._writers[0] if len(self._writers) == 1 else None
        if not isinstance(step.events, MeasuredEvents) or not isinstance(writer, LimitedWriter) or not step.events.ops:
            return None
        return writer if writer.measured_writer is not None else None

    def _measured_step(self, step: FinishedStep, watched: WatchedGraph) -> _MeasuredStep | None:
        """The rows of a step of known statistics; None where some of its tensors have none."""
        shown = watched.shown_in(step.iteration)
        # What this iteration has shown already depends on more than what it has run.
        name = None if step.state is None or shown else (step.graph.graph_id, step.state)
        known = None if name is None else self._measured.get(name)
        if known is not None:
            shown.update(known.keys)
            return known
        assert isinstance(step.events, MeasuredEvents)
        parts = step.events.parts
        if any(-1 in part.places or part.numbers is not parts[0].numbers for part in parts):
            return None
        ids = tuple([id(part.ops) for part in parts])
        rows = self._frames.get(ids)
        if rows is None:
            if len(self._frames) >= _MAX_MEASURED:
                self._frames.clear()
            rows = self._frames[ids] = _OperatorRows(parts, watched)
        found = _MeasuredStep(rows, watched, step)
        if name is not None and not found.others:
            if len(self._measured) >= _MAX_MEASURED:
                self._measured.clear()
            self._measured[name] = found
        return found

    def _write_measured(
        self, writer: LimitedWriter, measured: _MeasuredStep, step: FinishedStep, attempt: Attempt
    ) -> None:
        if measured.empty_count:
            self._tally.count_skipped("empty tensor", measured.empty_count)
        frames, graph_id = measured.frames, step.graph.graph_id
        if len(frames):
            sample = parameter_record("Parameter", "float32", _NO_VALUES, None, step.iteration, graph_id, 0)
            stamp = self._clock.first_of(len(frames))
            assert isinstance(step.events, MeasuredEvents)
            writer.write_measured(MeasuredRows(sample, frames, stamp, step.events.parts[0].numbers))
            attempt.count_written(len(frames))

    def _write(self, records: Sequence[TensorRecord], attempt: Attempt) -> None:
        """All records of a step: those without elements, every distinct tensor once, over all threads, then those
        that repeat one.
        """
        written: AlreadyWritten[None] = AlreadyWritten()
        # Writers of whole steps know by themselves what repeats.
        has_shared = bool(self._shared)
        first: list[TensorRecord] = []
        repeats: list[TensorRecord] = []
        for record in records:
            if record.data.size:
                (repeats if has_shared and not written.is_new(record) else first).append(record)
                continue
            takers = takers_of(record, self._writers)
            for writer in takers:
                writer.write([record])
            if takers:
                attempt.count_written(1)
            else:
                self._tally.count_skipped("empty tensor")
        # A writer that cannot write must not stop a dump that has nothing for it.
        for writer in self._whole if first or repeats else ():
            writer.write([*first, *repeats])
        if not self._shared:
            attempt.count_written(len(first) + len(repeats))
            return
        jobs = [in_thread(self._threads, self._write_batch, batch, attempt) for batch in batches(first)]
        try:
            for job in jobs:
                job.result()
        finally:
            # After a failure no further job starts, and no job reads the arrays once this has returned.
            for job in jobs:
                job.cancel()
            wait(jobs)
        self._write_batch(repeats, attempt)

    def _write_batch(self, records: Sequence[TensorRecord], attempt: Attempt) -> None:
        if not records:
            return  # a writer that cannot write must not stop a dump that has nothing more for it
        for writer in self._shared:
            writer.write(records)
        attempt.count_written(len(records))

    def _parameter_records(
        self, watched: WatchedGraph, parameters: Sequence[Value], step: FinishedStep
    ) -> Iterator[TensorRecord]:
        for value in parameters:
            yield parameter_record(
                value.name,
                value.type.dtype,
                step.array(value),
                watched.final_key(value, step),
                step.iteration,
                step.graph.graph_id,
                self._clock.next_us(),
            )

    def _write_constants(self, watched: WatchedGraph, graph_id: int, iteration: int, attempt: Attempt) -> None:
        if watched.has_constants_on_disk:
            return
        watched.has_constants_on_disk = True
        if watched.constants:
            self._with_constants.add(graph_id)
        records = [
            parameter_record(
                f"data-{number}", value.type.dtype, value.constant, None, iteration, graph_id, self._clock.next_us()
            )
            for number, value in watched.constants
            if value.constant is not None
        ]
        self._constants.write(records)
        attempt.count_written(len(records))

    def _report_strings(self, watched: WatchedGraph, graph: Graph) -> None:
        """A string cannot be saved: an error is logged, other data is not affected.   Source: MindSpore dump guide."""
        kernels = () if graph.is_open else graph.kernels
        for node, mask in zip(kernels, watched.masks, strict=True):
            has_strings = node.primitive.attrs.get("strings") and mask & DUMP_INPUT
            if has_strings and (graph.graph_id, node.full_name) not in self._told_of:
                self._told_of.add((graph.graph_id, node.full_name))
                self._tally.count_skipped("string operand")
                log.error("%s: a string cannot be dumped; its tensors are.", node.full_name)


_NO_VALUES = np.empty((0,), np.float32)
# As many as programs may do by turns.
_MAX_MEASURED = 64


class _OperatorRows:
    """Rows of operators that run in each iteration.   empty_count: of inputs without elements, which have none"""

    def __init__(self, parts: Sequence[MeasuredCalls], watched: WatchedGraph) -> None:
        self.frames = RowFrames()
        self.empty_count = 0
        # As long as these are there, no others have their identities.
        self._ops = [part.ops for part in parts]
        for part in parts:
            start = 0
            for op in part.ops:
                for operand in watched.operands[op.index]:
                    if 0 in operand.info.shape and operand.io == INPUT:
                        self.empty_count += 1
                        continue
                    place = start + operand.slot + (0 if operand.io == INPUT else len(op.inputs))
                    frame = row_frame(
                        op.op_type, op.full_name, operand.io, operand.slot, operand.info.dtype, operand.info.shape
                    )
                    self.frames.add(frame, part.places[place], row_bytes(op.full_name))
                start += len(op.inputs) + len(op.outputs)


class _MeasuredStep:
    """Rows of a step of an open graph whose tensors were measured as they ran.

    frames       of operators, then of parameters
    others       parameters that were not measured
    keys         with which parameters were shown, by number
    """

    def __init__(self, rows: _OperatorRows, watched: WatchedGraph, step: FinishedStep) -> None:
        self.frames = rows.frames.copy()
        self.empty_count = rows.empty_count
        self.others: list[Value] = []
        for value in watched.parameters_of(step):
            place = step.measured(value)
            if place is None or 0 in value.type.shape:
                self.others.append(value)
                continue
            type = value.type
            frame = row_frame("Parameter", value.name, OUTPUT, 0, type.dtype, type.shape, is_parameter=True)
            self.frames.add(frame, place, row_bytes(value.name))
        self.keys = dict(watched.shown_in(step.iteration))


def _size_of(step: FinishedStep, watched: WatchedGraph, parameters: int) -> int:
    """How many records a step of an open graph has."""
    return sum(watched.op_size(op.index) for op in step.ops) + parameters


def _records_of(watched: WatchedGraph) -> int:
    """How many records a step has, with those of the constants where they are not written yet."""
    return watched.size + (0 if watched.has_constants_on_disk else len(watched.constants))

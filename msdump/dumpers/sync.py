"""SyncDumper: writes all selected tensors when the step has ended."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace

import numpy as np

from msdump.config.plan import DUMP_INPUT, Plan
from msdump.dumpers.capture import Clock, SelectedOperand, WatchedGraph, op_records, parameter_record
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
        # By the identity of their operators.
        self._frames: dict[int, RowFrames] = {}
        # By graph, and number of a parameter.
        self._parameter_frames: dict[tuple[int, int], tuple[str, str]] = {}

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
        parameters = watched.parameters_of(step)
        measured = self._measured_writer(step)
        if measured is not None:
            size = sum(len(self._frames_of(part, watched).heads) for part in measured[1].parts) + len(parameters)
        else:
            size = _size_of(step, watched, len(parameters)) if step.graph.is_open else _records_of(watched)
        with self._dumping(size) as attempt:
            if step.graph.is_open:
                self._record_open(step)
            self._write_constants(watched, graph_id, iteration, attempt)
            records: list[TensorRecord] = []
            if measured is None:
                records = self._step_records(step, watched)
            else:
                self._write_measured(*measured, watched, attempt)
                parameters = self._write_measured_parameters(*measured, parameters, step, attempt)
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

    def _measured_writer(self, step: FinishedStep) -> tuple[LimitedWriter, MeasuredEvents] | None:
        """Who writes rows of a step of known statistics, and these; None where a step has others, or files."""
        events = step.events
        writer = self._writers[0] if len(self._writers) == 1 else None
        if not isinstance(events, MeasuredEvents) or not isinstance(writer, LimitedWriter) or not len(events):
            return None
        is_known = all(-1 not in part.places for part in events.parts)
        return (writer, events) if is_known and writer.measured_writer is not None else None

    def _frames_of(self, part: MeasuredCalls, watched: WatchedGraph) -> RowFrames:
        known = self._frames.get(id(part.ops))
        if known is None or known.ops is not part.ops:
            if len(self._frames) >= _MAX_FRAMES:
                self._frames.clear()
            known = self._frames[id(part.ops)] = RowFrames(part.ops, watched.operands)
        return known

    def _write_measured(
        self, writer: LimitedWriter, events: MeasuredEvents, watched: WatchedGraph, attempt: Attempt
    ) -> None:
        for part in events.parts:
            known = self._frames_of(part, watched)
            if known.empty_count:
                self._tally.count_skipped("empty tensor", known.empty_count)
            if not known.heads:
                continue
            first = next(op for op in part.ops if watched.operands[op.index])
            sample = parameter_record(first.full_name, "float32", _NO_VALUES, None, events.iteration, first.graph_id, 0)
            stamp = self._clock.first_of(len(known.heads))
            places = part.places
            chosen = [places[place] for place in known.places]
            writer.write_measured(
                MeasuredRows(sample, known.heads, known.tails, stamp, chosen, part.numbers, known.size_bytes)
            )
            attempt.count_written(len(known.heads))

    def _write_measured_parameters(
        self,
        writer: LimitedWriter,
        events: MeasuredEvents,
        parameters: Sequence[Value],
        step: FinishedStep,
        attempt: Attempt,
    ) -> Sequence[Value]:
        """Returns: those that were not measured."""
        heads, tails, places = [], [], []
        others = []
        size, graph_id = 0, step.graph.graph_id
        for value in parameters:
            place = step.measured(value)
            if place is None or 0 in value.type.shape:
                others.append(value)
                continue
            frame = self._parameter_frames.get((graph_id, value.id))
            if frame is None:
                type = value.type
                frame = self._parameter_frames[graph_id, value.id] = row_frame(
                    "Parameter", value.name, OUTPUT, 0, type.dtype, type.shape, is_parameter=True
                )
            heads.append(frame[0])
            tails.append(frame[1])
            places.append(place)
            size += row_bytes(value.name)
        if heads:
            sample = parameter_record("Parameter", "float32", _NO_VALUES, None, step.iteration, graph_id, 0)
            stamp = self._clock.first_of(len(heads))
            writer.write_measured(MeasuredRows(sample, heads, tails, stamp, places, events.parts[0].numbers, size))
            attempt.count_written(len(heads))
        return others

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
_MAX_FRAMES = 64


class RowFrames:
    """Texts of the rows of operators that run in each iteration, and the place of each operand among all of them."""

    def __init__(self, ops: Sequence[OpInfo], operands: Sequence[Sequence[SelectedOperand]]) -> None:
        self.ops = ops
        self.heads: list[str] = []
        self.tails: list[str] = []
        self.places: list[int] = []
        self.size_bytes = 0
        self.empty_count = 0
        start = 0
        for op in ops:
            for operand in operands[op.index]:
                if 0 in operand.info.shape and operand.io == INPUT:
                    self.empty_count += 1  # of tensors without elements, outputs alone have rows
                    continue
                head, tail = row_frame(
                    op.op_type, op.full_name, operand.io, operand.slot, operand.info.dtype, operand.info.shape
                )
                self.heads.append(head)
                self.tails.append(tail)
                self.places.append(start + operand.slot + (0 if operand.io == INPUT else len(op.inputs)))
                self.size_bytes += row_bytes(op.full_name)
            start += len(op.inputs) + len(op.outputs)


def _size_of(step: FinishedStep, watched: WatchedGraph, parameters: int) -> int:
    """How many records a step of an open graph has."""
    return sum(watched.op_size(op.index) for op in step.ops) + parameters


def _records_of(watched: WatchedGraph) -> int:
    """How many records a step has, with those of the constants where they are not written yet."""
    return watched.size + (0 if watched.has_constants_on_disk else len(watched.constants))

"""The dump of graphs of MindSpore and PyTorch: from a plan to its observers and writers."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from msdump.config.environment import CONTAINER, DUMP_CONFIG, UPLOAD, DiskLimits, disk_limits, say_ignored
from msdump.config.plan import ASYNC, SYNC, Plan, RecorderPlan, When
from msdump.dumpers.capture import Clock
from msdump.dumpers.exception import ExceptionDumper
from msdump.dumpers.limits import (
    BIN_FOOTPRINT,
    DEVICE_NPY_FOOTPRINT,
    NPY_FOOTPRINT,
    STATISTIC_FOOTPRINT,
    DiskGuard,
    Footprint,
    LimitedWriter,
    check_folder,
)
from msdump.dumpers.overflow import Overflow, OverflowDumper
from msdump.dumpers.packs import LimitedPacks, is_packed, packed
from msdump.dumpers.recorders import GraphFilesDumper
from msdump.dumpers.staging import staging_budget
from msdump.dumpers.step_folders import RunFolders, StepFolders
from msdump.dumpers.streaming import AsyncDumper
from msdump.dumpers.sync import SyncDumper
from msdump.dumpers.tally import Tally
from msdump.dumpers.uploads import begin_upload, end_upload, sender
from msdump.dumpers.writer_pool import WriterPool
from msdump.engine.recording.opening import RingParts, open_ring
from msdump.engine.recording.recorder import Recorder
from msdump.engine.reloading import Reloader
from msdump.errors import DumpError, WriteError
from msdump.formats import bin, npy
from msdump.formats.folders import FolderHold, FolderHolds
from msdump.formats.gradients_csv import GradientRow, append_gradients
from msdump.formats.learning_json import Learning, write_learning
from msdump.formats.opdebug import OpdebugJsonWriter
from msdump.formats.paths.acl import npy_file_name
from msdump.formats.paths.sync import SyncPaths
from msdump.formats.sharding_json import RankSharding, write_sharding
from msdump.formats.sidecars import Lost, write_command, write_lost, write_metadata
from msdump.formats.statistic_csv import StatisticWriter
from msdump.formats.steps_json import TrainingSteps, write_steps
from msdump.formats.writer import WriteCounts, Writer
from msdump.graph.run import Gate, Observer
from msdump.process import dry_run
from msdump.process.command import OUTSIDE, SCRIPT, Command, current
from msdump.process.report import GRAPHS, Report, StepTimes
from msdump.process.sessions import Session, lock, remarks
from msdump.storage.uploading import Uploader
from msdump.tensors.records import TensorRecord

log = logging.getLogger("msdump")

# The MindSpore version that the metadata claims: the one whose output was compared with.
MS_VERSION = "2.0.0"
_ASYNC_MODE = 0o600
_OTHER_RANKS = "Give each process a RANK_ID of its own, or a `path` of its own."

Directory = Callable[[TensorRecord], Path]


@dataclass(frozen=True)
class Wired:
    """Observers and writers of a plan.   pool: as of `GraphSession`"""

    observer: Observer
    writers: tuple[Writer, ...]
    pool: WriterPool | None = None


Wire = Callable[[Plan], Wired]


class GraphSession(Session):
    """The dump of all graphs of MindSpore or PyTorch in this process.

    pool   threads that write while the script goes on; None when there are none
    hold   keeps other processes and commands out of the folders until `close`
    wire   carries out another plan, in the same folders, where the configuration changes; None: it does not
    recorder  keeps steps of the dump, whose folder is a ring; None for an ordinary dump
    metadata_dir  folder of this rank for what describes its dump; None without one
    uploader  sends the files of the dump to a store; None: they stay here alone
    """

    fork_advice = "fork it before the first graph is compiled, with a RANK_ID of its own"

    def __init__(
        self,
        plan: Plan,
        observers: tuple[Observer, ...],
        writers: tuple[Writer, ...],
        tally: Tally,
        pool: WriterPool | None = None,
        hold: FolderHold | FolderHolds | None = None,
        wire: Wire | None = None,
        recorder: Recorder | None = None,
        metadata_dir: Path | None = None,
        uploader: Uploader | None = None,
    ) -> None:
        super().__init__()
        self._uploader = uploader
        self.plan = plan
        self._metadata_dir = metadata_dir
        self.recorder = recorder
        self.observers = observers
        self.pool = pool
        self.has_threads = pool is not None
        self._writers = writers
        self.tally = tally
        self._hold = hold
        self._wire = wire
        self._reloader: Reloader | None = None
        self._pending: Plan | None = None
        self._at_change: list[Callable[[], AbstractContextManager[bool]]] = []
        # Of writers that were replaced by those of another plan.
        self._written = WriteCounts()
        self._next_iteration = plan.when.initial_iteration
        self._next_graph_id = 0
        self._started = time.perf_counter()
        self._final: Report | None = None
        self._before_end: list[Callable[[], None]] = []
        self._step_ends: list[Callable[[], None]] = []
        self._remarks: list[Callable[[], tuple[str, ...]]] = []
        self._notes: list[Callable[[], tuple[str, ...]]] = []
        if plan.when.sampler is not None:
            self.add_notes(plan.when.sampler.notes)
        self._training: list[Callable[[], TrainingSteps]] = []
        self._learning: list[Callable[[], Learning | None]] = []
        self._times: list[Callable[[], StepTimes | None]] = []
        self._has_steps = self._has_gradients = False
        if recorder is not None:
            recorder.flush = self._drain

    def call_when_step_ends(self, function: Callable[[], None]) -> None:
        """Call it when the script says that a step has ended."""
        self._step_ends.append(function)

    def end_step(self) -> None:
        """The script says that a step has ended."""
        for function in self._step_ends:
            function()

    def call_before_end(self, function: Callable[[], None]) -> None:
        """Call it before the observers are closed: it has more to show them."""
        self._before_end.append(function)

    def add_remarks(self, function: Callable[[], tuple[str, ...]]) -> None:
        """Report code of the script that this session could not see, a line for each call site, also after its end."""
        self._remarks.append(function)

    def add_notes(self, function: Callable[[], tuple[str, ...]]) -> None:
        """Have the report say how the dump was made, also after its end."""
        self._notes.append(function)

    def count_training(self, function: Callable[[], TrainingSteps]) -> None:
        """Ask it how iterations and steps of optimizers go together, for the report and the dump."""
        self._training.append(function)

    def record_learning(self, function: Callable[[], Learning | None]) -> None:
        """Ask it which parameters get gradients and steps, for the dump."""
        self._learning.append(function)

    def time_steps(self, function: Callable[[], StepTimes | None]) -> None:
        """Ask it what steps took, for the report."""
        self._times.append(function)

    def save_training(self) -> None:
        """What is known of both; of the first where an iteration is no step, or was none. A failure ends the dump."""
        if self._metadata_dir is None or self.error or self.is_foreign:
            return
        steps = self._training_steps()
        if steps is not None and (not steps.is_even or self._has_steps):
            self._has_steps = True
            with self.tally.stop_on_failure():
                write_steps(self._metadata_dir, steps)
        learning = next((found for function in self._learning if (found := function()) is not None), None)
        if learning is not None:
            with self.tally.stop_on_failure():
                write_learning(self._metadata_dir, learning)

    def keep_gradients(self, rows: Sequence[GradientRow]) -> None:
        """Keep what gradients were in iterations that are not dumped. A failure ends the dump."""
        if self._metadata_dir is not None and not self.error and not self.is_foreign:
            is_first, self._has_gradients = not self._has_gradients, True
            with self.tally.stop_on_failure():
                append_gradients(self._metadata_dir, rows, begins_run=is_first)

    def _training_steps(self) -> TrainingSteps | None:
        """Of the first program that trains."""
        return next((steps for function in self._training if (steps := function()).optimizers), None)

    def reload_with(self, reloader: Reloader) -> None:
        """Ask it before each iteration for another plan."""
        self._reloader = reloader

    def call_at_change(self, function: Callable[[], AbstractContextManager[bool]]) -> None:
        """The plan changes inside of what it gives, where that is true; else before a later iteration: something runs
        that the plan before is to see the end of."""
        self._at_change.append(function)

    @property
    def folder(self) -> str:
        return str(self.plan.where.path if self.recorder is None else self.recorder.path)

    @property
    def pools(self) -> Sequence[WriterPool]:
        return () if self.pool is None else (self.pool,)

    @property
    def error(self) -> str:
        """Why the dump is not complete; "" where it is."""
        return self.tally.error or ""

    def count_skipped(self, reason: str, count: int = 1, name: str = "") -> None:
        """Count tensors that a frontend cannot show to observers, for the report; as `Tally.count_skipped`."""
        self.tally.count_skipped(reason, count, name)

    def count_lost(self, count: int) -> None:
        """Count tensors that were to be dumped and that a frontend has no values of."""
        self.tally.count_lost(count)

    def fail(self, error: Exception) -> None:
        """The dump is over, for this reason: a frontend cannot go on."""
        self.tally.fail(error)

    def keep_sharding(self, placement: RankSharding) -> None:
        """Set the placement of this rank's tensors over its job, replacing earlier calls. A failure ends the dump."""
        if self._metadata_dir is not None and not self.error and not self.is_foreign:
            with self.tally.stop_on_failure():
                write_sharding(self._metadata_dir, placement)

    def next_iteration(self) -> int:
        """Number of the run that starts now; one counter for all root graphs.   Source: MindSpore, several graphs."""
        self.may_dump()  # to warn: a graph of a forked process runs as it is
        with lock:
            dry_run.note_run("session", self)
            self._next_iteration += 1
            if self._reloader is not None and not self.is_foreign and not self.has_ended:
                self._pending = self._reloader.poll(self._pending or self.plan) or self._pending
                self.catch_up()
            return self._next_iteration - 1

    def take_graph_id(self, least: int = 0) -> int:
        """Number of one more graph, which no front end of this process has had in this dump; `least` or above."""
        with lock:
            number = max(self._next_graph_id, least)
            self._next_graph_id = number + 1
            return number

    def continue_at(self, iteration: int) -> None:
        """The next run has this number, unless the runs have come further already."""
        with lock:
            self._next_iteration = max(self._next_iteration, iteration)

    def catch_up(self) -> None:
        """Put a plan in force that waits for the end of an iteration."""
        plan = self._pending
        if plan is None or self._wire is None or self.error:
            return
        with lock, ExitStack() as stack:
            if not all(stack.enter_context(function()) for function in self._at_change):
                return
            gate = self.observers[0]
            assert isinstance(gate, Gate)
            gate.observer.close()
            self._written = sum((writer.counts for writer in self._writers), self._written)
            wired = self._wire(plan)
            self._pending, self.plan, self._writers, self.pool = None, plan, wired.writers, wired.pool
            gate.replace(wired.observer)
            log.warning("%s: read again, in force from iteration %d.", plan.source.given, self._next_iteration - 1)

    def counts(self) -> dry_run.Counts:
        """As `report`, for a dry run."""
        report = self.report()
        return dry_run.Counts(report.files, report.links, report.bytes_written, report.dump_seconds)

    def let_go(self) -> None:
        if self._hold is not None:
            self._hold.release()

    def leave_to_parent(self) -> None:
        if self._hold is not None:
            self._hold.leave_to_parent()
        if self.recorder is not None:
            self.recorder.leave_to_parent()
        self.tally.error = "The session belongs to the process that this one was forked from."

    def _finish(self) -> None:
        try:
            for function in self._before_end:
                function()
            self.save_training()
            for observer in self.observers:
                observer.close()
            if self._reloader is not None:
                self._reloader.close()
            self._save_lost()
            end_upload(self._uploader, self.tally)
        finally:
            if self.recorder is not None:
                self.recorder.close()
                self.tally.error = self.tally.error or self.recorder.error
            self._final = self.report()
            # The session stays on the list; what its dumpers hold of graphs and tensors does not.
            self.observers, self._writers, self.pool = (), (), None
            self._before_end.clear()
            self._at_change.clear()
            self._step_ends.clear()
            self._training.clear()
            self._learning.clear()
            self._times.clear()
            self._wire = self._reloader = self._pending = None
            self.tally = Tally(error=self.tally.error)
        if self._final.error:
            raise DumpError(
                f"{self.plan.where.path}: the dump is not complete, {self._final.lost} tensors of the step "
                f"that failed are missing and later steps were not dumped. {self._final.error}"
            )

    def _save_lost(self) -> None:
        """Keep what is missing, so that no answer passes over it. The disk may be why.

        Edges: a folder that was removed is not made again.
        """
        failure = self.report().failure
        folder = self._metadata_dir
        if folder is not None and failure is not None and not self.is_foreign and Path(folder).parent.is_dir():
            with contextlib.suppress(WriteError):
                write_lost(folder, Lost(self.tally.lost, failure))

    def report(self) -> Report:
        if self._final is not None:
            return replace(self._final, outside=self._outside(), notes=self._noted())
        written = sum((writer.counts for writer in self._writers), self._written)
        unmatched = self.plan.which.unmatched(self.tally.names_seen)
        steps = self._training_steps()
        return replace(
            self.tally.report(self.folder, GRAPHS, written, str(self.plan.when.iterations)),
            unmatched=tuple(f"{text}. {advice}".rstrip(". ") for text, advice in unmatched.items()),
            advice=self.tally.why_nothing(self.plan),
            run_seconds=time.perf_counter() - self._started,
            training="" if steps is None else steps.text,
            outside=self._outside(),
            notes=self._noted(),
            steps=next((times for function in self._times if (times := function()) is not None), None),
        )

    def _noted(self) -> tuple[str, ...]:
        return tuple(line for function in self._notes for line in function())

    def _outside(self) -> tuple[str, ...]:
        own = (line for function in self._remarks for line in function())
        return (*(() if self.recorder is None else self.recorder.lines), *own, *remarks())

    def _drain(self, timeout: float | None) -> None:
        for pool in self.pools:
            pool.drain(timeout)


def start(plan: Plan) -> GraphSession:
    """Make the folders and wire writers and dumpers.

    Raises: ConfigError for a wrong limit or budget, or when another process dumps the same rank into the same folder
            now; FolderError when no dump can begin in the folder; WriteError.
    """
    check_folder(plan.where.path)
    if dry_run.folder is not None:
        plan = replace(plan, where=replace(plan.where, path=dry_run.folder), when=When(), recorder=None)
    if plan.recorder is not None:
        return _start_recorder(plan, plan.recorder)
    limits = disk_limits(budget_bytes=plan.where.budget_bytes)
    guard = DiskGuard(plan.where.path, limits, is_shared=True)
    return _start_async(plan, guard) if plan.how.engine == ASYNC else _start_sync(plan, guard)


def _start_recorder(plan: Plan, wish: RecorderPlan) -> GraphSession:
    """Raises: as `start`; ConfigError for a ring without room."""
    say_ignored("the ring of a flight recorder", CONTAINER, UPLOAD)
    ring = open_ring(plan.where.path, plan.where.rank_id, wish)
    is_async = plan.how.engine == ASYNC
    inner = replace(plan, where=replace(plan.where, path=ring.rank_ring.tree if is_async else ring.rank_ring.home))
    try:
        budget_name = "the budget of the recorder's ring"
        limits = DiskLimits(ring.budget_bytes, disk_limits().floor_bytes, None, budget_name)
        parts = RingParts.make(inner, ring.recorder, wish, ring.rank_ring.spares)
        guard = DiskGuard(inner.where.path, limits, make_room=parts.make_room)
        session = (_start_async if is_async else _start_sync)(inner, guard, parts)
    except BaseException:
        ring.rank_ring.leave(is_empty=True)
        raise
    ring.recorder.begin()
    return session


def _start_sync(plan: Plan, guard: DiskGuard, ring: RingParts | None = None) -> GraphSession:
    paths = SyncPaths(plan.where.path, plan.where.rank_id, plan.where.net_name)
    hold = FolderHold.make(paths.metadata_dir.parent, _OTHER_RANKS)
    is_new = write_metadata(paths.metadata_dir, plan.source.text, plan.how.device_target, MS_VERSION, plan.how.kernels)
    home = paths.metadata_dir.parent
    if not is_new and any(path != paths.metadata_dir for path in home.iterdir()):
        log.warning("%s: holds an earlier dump; it will hold files of both runs.", home)

    guard.expect_folder(paths.metadata_dir.parent)

    def directory(record: TensorRecord) -> Path:
        return paths.data_dir(record.graph_id, record.iteration)

    tally, clock = Tally() if ring is None else ring.tally, Clock()
    uploader = None if ring is not None else begin_upload(plan.where.path, [paths.metadata_dir.parent])
    dumper: SyncDumper | None = None

    def wire(plan: Plan) -> Wired:
        nonlocal dumper
        writers: list[Writer] = []
        whole: list[Writer] = []
        packs = _packs(plan, guard, directory, 0o400, uploader)
        opener = None if packs is None else packs.open
        if plan.saved.tensors:
            is_device_format, spares = not plan.saved.is_host_layout, None if ring is None else ring.spares
            arrays = npy.NpyWriter(
                directory, is_direct=True, is_device_format=is_device_format, spares=spares, open_folder=opener
            )
            writers.append(_limited(arrays, guard, DEVICE_NPY_FOOTPRINT, directory, ring, packs))
        if plan.saved.statistics:
            statistics = StatisticWriter(directory, plan.saved.columns, open_folder=opener)
            whole.append(_limited(statistics, guard, STATISTIC_FOOTPRINT, directory, ring, packs))
            writers += whole
        # Behind those that fill them.
        writers += [] if packs is None else [packs]
        if plan.trigger.exception:
            failing = ExceptionDumper(plan, writers, tally, clock)
            failing.needs_all_values = True  # the dumper that takes its place after a reload may need them
            return Wired(failing, tuple(writers))
        arrays = npy.NpyWriter(lambda record: paths.constants_dir(record.graph_id))
        constants = LimitedWriter(arrays, guard, NPY_FOOTPRINT)
        marked = writers if ring is None else [*writers, ring.marker]
        dumper = SyncDumper(plan, paths, marked, constants, tally, clock, dumper, whole)
        return Wired(dumper, (*writers, constants))

    graphs = (GraphFilesDumper(paths, tally),) if plan.trigger.exception else ()
    return _session(plan, wire, tally, graphs, hold, ring, paths.metadata_dir, uploader)


def _session(
    plan: Plan,
    wire: Wire,
    tally: Tally,
    others: tuple[Observer, ...],
    hold: FolderHold | FolderHolds,
    ring: RingParts | None,
    metadata_dir: Path,
    uploader: Uploader | None,
) -> GraphSession:
    if plan.how.engine == SYNC or plan.how.has_graph_files:
        # Beside an asynchronous dump of MindSpore there is no folder of the rank.
        write_command(metadata_dir, _command_of(plan))
    wired = wire(plan)
    recorder = None if ring is None else ring.recorder
    observers = (Gate(wired.observer),) if ring is None else (ring.observer, wired.observer)
    reload = wire if ring is None else None
    return GraphSession(
        plan, (*observers, *others), wired.writers, tally, wired.pool, hold, reload, recorder, metadata_dir, uploader
    )


def _command_of(plan: Plan) -> Command:
    """How this process was started, where the configuration came from, and whether all of the program is dumped."""
    given, configured = plan.source.given, os.environ.get(DUMP_CONFIG)
    is_outside = bool(configured) and given == Path(os.path.abspath(configured or ""))
    return replace(
        current(), configuration=OUTSIDE if is_outside else SCRIPT, is_compiled_only=plan.how.is_compiled_only
    )


def _start_async(plan: Plan, guard: DiskGuard, ring: RingParts | None = None) -> GraphSession:
    budget = staging_budget()
    folders = StepFolders(plan) if plan.how.is_acl_dump else RunFolders(plan)
    guard.expect_folder(folders.home)
    tally, clock = Tally() if ring is None else ring.tally, Clock()
    overflows: list[Overflow] = []
    graphs: tuple[Observer, ...] = ()
    paths = SyncPaths(folders.graphs_home, plan.where.rank_id, plan.where.net_name)
    if plan.how.has_graph_files:
        graphs = (GraphFilesDumper(paths, tally),)

    uploader = None
    if ring is None:
        uploader = begin_upload(plan.where.path, [folders.home, paths.metadata_dir.parent])

    def wire(plan: Plan) -> Wired:
        folders.plan = plan
        writers, offsets = _async_writers(plan, guard, folders.directory, ring, uploader)
        if plan.trigger.exception:
            return Wired(ExceptionDumper(plan, writers, tally, clock), writers)
        if plan.trigger.overflow:
            opdebug = _opdebug_writer(plan, guard, folders.directory)
            overflow = OverflowDumper(plan, writers, opdebug, tally, clock, folders.begin_step)
            overflow.found = overflows
            return Wired(overflow, (*writers, opdebug))
        marked = writers if ring is None else (*writers, ring.marker)
        dumper = AsyncDumper(plan, marked, tally, budget, 2, clock, offsets, folders.begin_step)
        return Wired(dumper, writers, dumper.pool)

    return _session(plan, wire, tally, graphs, folders.holds, ring, paths.metadata_dir, uploader)


def _async_writers(
    plan: Plan, guard: DiskGuard, directory: Directory, ring: RingParts | None, uploader: Uploader | None
) -> tuple[tuple[Writer, ...], Callable[[Sequence[TensorRecord]], Sequence[int]]]:
    """Writers that the plan asks for, and where data begins in their files.

    Files get the modes of the engine that MindSpore hands such dumps to, and go past the page cache.
    """

    packs = _packs(plan, guard, directory, _ASYNC_MODE, uploader)
    opener = None if packs is None else packs.open
    # Behind those that fill them.
    last: tuple[Writer, ...] = () if packs is None else (packs,)
    if plan.saved.file_format == "bin":
        is_host = plan.saved.is_host_layout
        binary = bin.BinWriter(directory, _ASYNC_MODE, is_host_format=is_host, is_direct=True, open_folder=opener)
        offsets = functools.partial(bin.data_offsets, is_host_format=is_host)
        return (_limited(binary, guard, BIN_FOOTPRINT, directory, ring, packs), *last), offsets
    writers: list[Writer] = []
    if plan.saved.tensors:
        spares = None if ring is None else ring.spares
        arrays = npy.NpyWriter(
            directory, _ASYNC_MODE, file_name=npy_file_name, is_direct=True, spares=spares, open_folder=opener
        )
        writers.append(_limited(arrays, guard, NPY_FOOTPRINT, directory, ring, packs))
    if plan.saved.statistics:
        # Digests are computed by the threads that write, which there are several of.
        rows = StatisticWriter(directory, plan.saved.columns, _ASYNC_MODE, thread_count=1, open_folder=opener)
        writers.append(_limited(rows, guard, STATISTIC_FOOTPRINT, directory, ring, packs))
    return (*writers, *last), npy.data_offsets


def _packs(
    plan: Plan, guard: DiskGuard, directory: Directory, mode: int, uploader: Uploader | None
) -> LimitedPacks | None:
    """Where the files of an iteration go when they go into one archive; None: into a folder."""
    if not is_packed(plan):
        return None
    return LimitedPacks(directory, guard, mode, rotation=guard.rotation, on_finished=sender(uploader))


def _limited(
    writer: Writer,
    guard: DiskGuard,
    footprint: Footprint,
    directory: Directory,
    ring: RingParts | None,
    packs: LimitedPacks | None = None,
) -> Writer:
    if packs is not None:
        # Files of a pack come and go with it.
        return LimitedWriter(writer, guard, packed(footprint))
    rotation = None if ring is None else ring.statistics if footprint is STATISTIC_FOOTPRINT else ring.tensors
    return LimitedWriter(writer, guard, footprint, directory, rotation)


def _opdebug_writer(plan: Plan, guard: DiskGuard, directory: Directory) -> Writer:
    if plan.saved.file_format == "bin":
        return LimitedWriter(bin.BinWriter(directory, _ASYNC_MODE), guard, BIN_FOOTPRINT, directory)
    return LimitedWriter(OpdebugJsonWriter(directory, _ASYNC_MODE), guard, NPY_FOOTPRINT, directory)

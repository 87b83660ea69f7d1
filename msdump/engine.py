"""The dump of graphs of MindSpore and PyTorch: from a plan to the observers and writers that carry it out."""

from __future__ import annotations

import datetime
import functools
import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from msdump import measuring
from msdump.config.environment import disk_limits
from msdump.config.plan import ASYNC, DUMP_INPUT, DUMP_OUTPUT, Plan
from msdump.config.selectors import FullNameSelector, OpTypeSelector
from msdump.dumpers.exception import ExceptionDumper
from msdump.dumpers.limits import (
    BIN_FOOTPRINT,
    DEVICE_NPY_FOOTPRINT,
    NPY_FOOTPRINT,
    STATISTIC_FOOTPRINT,
    DiskGuard,
    Footprint,
    LimitedWriter,
)
from msdump.dumpers.overflow import OverflowDumper
from msdump.dumpers.recorders import GraphFilesDumper
from msdump.dumpers.staging import staging_budget
from msdump.dumpers.streaming import AsyncDumper
from msdump.dumpers.sync import SyncDumper
from msdump.dumpers.tally import Tally
from msdump.dumpers.writer_pool import WriterPool
from msdump.errors import DumpError
from msdump.formats import bin, npy
from msdump.formats.atomic import claim_dir
from msdump.formats.folders import FolderHold
from msdump.formats.opdebug import OpdebugJsonWriter
from msdump.formats.paths.acl import AclLayout, AclOperatorLayout, PlainLayout, format_time, npy_file_name
from msdump.formats.paths.sync import SyncLayout
from msdump.formats.sidecars import acl_json_path, initial_acl_json, step_acl_json, write_acl_json, write_metadata
from msdump.formats.statistic_csv import StatisticWriter
from msdump.formats.writer import WriteCounts, Writer
from msdump.graph.graph import Graph
from msdump.graph.run import Observer
from msdump.records import TensorRecord
from msdump.report import GRAPHS, Report
from msdump.sessions import Session, lock, remarks

log = logging.getLogger("msdump")

# The MindSpore version that the metadata claims: the one whose output was compared with.
MS_VERSION = "2.0.0"
_ASYNC_MODE = 0o600
_OTHER_RANKS = "Give each process a RANK_ID of its own, or a `path` of its own."

Directory = Callable[[TensorRecord], Path]


class GraphSession(Session):
    """The dump of all graphs of MindSpore or PyTorch in this process.

    pool   threads that write while the script goes on; None when there are none
    hold   keeps other processes out of the folder until `close`; None where each process has folders of its own
    """

    fork_advice = "fork it before the first graph is compiled, with a RANK_ID of its own"

    def __init__(
        self,
        plan: Plan,
        observers: tuple[Observer, ...],
        writers: tuple[Writer, ...],
        tally: Tally,
        pool: WriterPool | None = None,
        hold: FolderHold | None = None,
    ) -> None:
        super().__init__()
        self.plan = plan
        self.observers = observers
        self.pool = pool
        self.has_threads = pool is not None
        self._writers = writers
        self._tally = tally
        self._hold = hold
        self._next_iteration = plan.when.initial_iteration
        self._started = time.perf_counter()
        self._final: Report | None = None
        self._before_end: list[Callable[[], None]] = []

    def call_before_end(self, function: Callable[[], None]) -> None:
        """Call it before the observers are closed: it has more to show them."""
        self._before_end.append(function)

    @property
    def folder(self) -> str:
        return str(self.plan.where.path)

    @property
    def pools(self) -> Sequence[WriterPool]:
        return () if self.pool is None else (self.pool,)

    @property
    def error(self) -> str:
        """Why the dump is not complete; "" where it is."""
        return self._tally.error or ""

    def count_skipped(self, reason: str, count: int = 1) -> None:
        """Tensors that a frontend cannot show to anybody, for the report."""
        self._tally.count_skipped(reason, count)

    def next_iteration(self) -> int:
        """Number of the run that starts now; one counter for all root graphs.   Source: MindSpore, several graphs."""
        self.may_dump()  # to warn: a graph of a forked process runs as it is
        with lock:
            measuring.note_run("session", self)
            self._next_iteration += 1
            return self._next_iteration - 1

    def counts(self) -> measuring.Counts:
        """As `report`, for a dry run."""
        report = self.report()
        return measuring.Counts(report.files, report.links, report.bytes_written, report.dump_seconds)

    def let_go(self) -> None:
        if self._hold is not None:
            self._hold.release()

    def leave_to_parent(self) -> None:
        if self._hold is not None:
            self._hold.leave_to_parent()
        self._tally.error = "The session belongs to the process that this one was forked from."

    def _finish(self) -> None:
        try:
            for function in self._before_end:
                function()
            for observer in self.observers:
                observer.close()
        finally:
            self._final = self.report()
            # The session stays on the list; what its dumpers hold of graphs and tensors does not.
            self.observers, self._writers, self.pool = (), (), None
            self._before_end.clear()
            self._tally = Tally(error=self._tally.error)
        if self._final.error:
            raise DumpError(
                f"{self.plan.where.path}: the dump is not complete, {self._final.lost} tensors of the step "
                f"that failed are missing and later steps were not dumped. {self._final.error}"
            )

    def report(self) -> Report:
        if self._final is not None:
            return replace(self._final, outside=remarks())
        written = sum((writer.counts for writer in self._writers), WriteCounts())
        unmatched = self.plan.which.unmatched(self._tally.names_seen)
        return replace(
            self._tally.report(self.folder, GRAPHS, written, str(self.plan.when.iterations)),
            unmatched=tuple(f"{text}. {advice}".rstrip(". ") for text, advice in unmatched.items()),
            advice=self._advice(),
            run_seconds=time.perf_counter() - self._started,
            outside=remarks(),
        )

    def _advice(self) -> tuple[str, ...]:
        """Why no operator of any step was chosen."""
        if not self._tally.iterations_dumped:
            asked, count = self.plan.when.iterations, self._tally.iterations_run
            if not count:
                return ("No iteration ran: the script called no cell, no gradient and no function under jit.",)
            if any(number in asked for number in range(count)):
                return (f"{count} iterations began, and none of those in '{asked}' came to its end.",)
            return (f"No iteration that ran is in '{asked}': {count} ran, and the first one is 0.",)
        if self._tally.operators_selected:
            return ()
        if self.plan.which.takes_marked:
            advice = "`dump_mode` is 2 and no operator is marked: call mindspore.set_dump(cell) before its first run."
        else:
            advice = "No operator matched `kernels`. `msdump plan CONFIG` shows what each entry means."
        return (advice,)


def start(plan: Plan) -> GraphSession:
    """Make the folders and wire writers and dumpers.

    Raises: ConfigError for a wrong limit or budget, or when another process dumps the same rank into the same folder
            now; WriteError when a folder cannot be made.
    """
    guard = DiskGuard(plan.where.path, disk_limits())
    return _start_async(plan, guard) if plan.how.engine == ASYNC else _start_sync(plan, guard)


def _start_sync(plan: Plan, guard: DiskGuard) -> GraphSession:
    layout = SyncLayout(plan.where.path, plan.where.rank_id, plan.where.net_name)
    hold = FolderHold.make(layout.metadata_dir.parent, _OTHER_RANKS)
    if not write_metadata(layout.metadata_dir, plan.source.text, plan.how.device_target, MS_VERSION, plan.how.kernels):
        log.warning("%s: holds an earlier dump; files of both runs will lie side by side.", layout.metadata_dir.parent)

    guard.expect_folder(layout.metadata_dir.parent)

    def directory(record: TensorRecord) -> Path:
        return layout.data_dir(record.graph_id, record.iteration)

    writers: list[Writer] = []
    if plan.saved.tensors:
        arrays = npy.NpyWriter(directory, is_direct=True, is_device_format=not plan.saved.is_host_layout)
        writers.append(LimitedWriter(arrays, guard, DEVICE_NPY_FOOTPRINT, directory))
    if plan.saved.statistics:
        statistics = StatisticWriter(directory, plan.saved.columns)
        writers.append(LimitedWriter(statistics, guard, STATISTIC_FOOTPRINT, directory))
    constants = LimitedWriter(npy.NpyWriter(lambda record: layout.constants_dir(record.graph_id)), guard, NPY_FOOTPRINT)
    tally = Tally()
    dumper = SyncDumper(plan, layout, writers, constants, tally)
    return GraphSession(plan, (dumper,), (*writers, constants), tally, hold=hold)


def _start_async(plan: Plan, guard: DiskGuard) -> GraphSession:
    budget = staging_budget()
    folders = _AclFolders(plan) if plan.how.is_acl_dump else _PlainFolders(plan)
    guard.expect_folder(folders.home)
    writers, data_offsets = _async_writers(plan, guard, folders.directory)
    tally = Tally()
    graphs: tuple[Observer, ...] = ()
    if plan.how.has_graph_files:
        graphs = (GraphFilesDumper(SyncLayout(folders.graphs_home, plan.where.rank_id, plan.where.net_name), tally),)
    if plan.trigger.exception:
        return GraphSession(plan, (ExceptionDumper(plan, writers, tally), *graphs), writers, tally)
    if plan.trigger.overflow:
        opdebug = _opdebug_writer(plan, guard, folders.directory)
        overflow = OverflowDumper(plan, writers, opdebug, tally, on_step=folders.begin_step)
        return GraphSession(plan, (overflow, *graphs), (*writers, opdebug), tally)
    dumper = AsyncDumper(plan, writers, tally, budget, data_offsets=data_offsets, on_step=folders.begin_step)
    return GraphSession(plan, (dumper, *graphs), writers, tally, dumper.pool)


def _async_writers(
    plan: Plan, guard: DiskGuard, directory: Directory
) -> tuple[tuple[Writer, ...], Callable[[Sequence[TensorRecord]], Sequence[int]]]:
    """Writers that the plan asks for, and where data begins in their files.

    Files get the modes of the engine that MindSpore hands such dumps to, and go past the page cache.
    """

    def limited(writer: Writer, footprint: Footprint) -> Writer:
        return LimitedWriter(writer, guard, footprint, directory)

    if plan.saved.file_format == "bin":
        binary = bin.BinWriter(directory, _ASYNC_MODE, is_host_format=plan.saved.is_host_layout, is_direct=True)
        offsets = functools.partial(bin.data_offsets, is_host_format=plan.saved.is_host_layout)
        return (limited(binary, BIN_FOOTPRINT),), offsets
    writers: list[Writer] = []
    if plan.saved.tensors:
        arrays = npy.NpyWriter(directory, _ASYNC_MODE, file_name=npy_file_name, is_direct=True)
        writers.append(limited(arrays, NPY_FOOTPRINT))
    if plan.saved.statistics:
        # Digests are computed by the threads that write, which there are several of.
        rows = StatisticWriter(directory, plan.saved.columns, _ASYNC_MODE, md5_threads=0)
        writers.append(limited(rows, STATISTIC_FOOTPRINT))
    return tuple(writers), npy.data_offsets


def _opdebug_writer(plan: Plan, guard: DiskGuard, directory: Directory) -> Writer:
    if plan.saved.file_format == "bin":
        return LimitedWriter(bin.BinWriter(directory, _ASYNC_MODE), guard, BIN_FOOTPRINT, directory)
    return LimitedWriter(OpdebugJsonWriter(directory, _ASYNC_MODE), guard, NPY_FOOTPRINT, directory)


def claim_time(root: Path, device_id: int) -> str:
    """Name of a time folder in which nobody else has this device, whose folder is made.

    Another process, or a run before in the same second, would give its files the same names.
    Raises: WriteError.
    """
    moment = datetime.datetime.now()
    while not claim_dir(root / format_time(moment) / str(device_id)):
        moment += datetime.timedelta(seconds=1)
    return format_time(moment)


def _model_name(graph_id: int) -> str:
    """The name that a graph has in its own files."""
    return f"kernel_graph_{graph_id}"


class _PlainFolders:
    """One time folder for the whole run.   Source: MindSpore, asynchronous dump in graph mode."""

    def __init__(self, plan: Plan) -> None:
        path, device_id = plan.where.path, plan.where.device_id
        self._layout = PlainLayout(path, claim_time(path, device_id), device_id)
        self.home = self._layout.device_dir
        # Another run has another time, and graphs of its own.
        self.graphs_home = self.home.parent

    def directory(self, record: TensorRecord) -> Path:
        return self._layout.data_dir(_model_name(record.graph_id), record.graph_id, record.iteration)

    def begin_step(self, graph: Graph, iteration: int) -> None:
        """Nothing: the folder of an iteration is made with its first file."""


class _AclFolders:
    """A folder and a time for each step, and the JSON file that tells ACL about it.

    Source: MindSpore, dump through ACL; without model folders when operators are launched one by one (O0).
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._models = AclLayout(plan.where.path, plan.where.device_id)
        self._operators = AclOperatorLayout(plan.where.path, plan.where.device_id)
        self._json = acl_json_path(plan.where.path, plan.where.device_id)
        self._dynamic: dict[tuple[int, int], bool] = {}
        self._times: dict[int, str] = {}
        self._lock = threading.Lock()
        self.home = self.graphs_home = plan.where.path
        write_acl_json(self._json, initial_acl_json(plan.where.path))

    def directory(self, record: TensorRecord) -> Path:
        graph_id, step_id = record.graph_id, record.iteration
        time = self._time_of(step_id)
        if self._plan.how.jit_level == "O0":
            # An exception is dumped in a step that nobody announced.
            is_dynamic = self._dynamic.get((graph_id, step_id), False)
            return self._operators.data_dir(step_id, time, step_id if is_dynamic else None)
        return self._models.data_dir(step_id, time, _model_name(graph_id), graph_id, step_id)

    def _time_of(self, step_id: int) -> str:
        """Made with the first file: a step without any, such as one that does not overflow, leaves no folder."""
        time = self._times.get(step_id)
        if time is None:
            with self._lock:
                time = self._times.get(step_id)
                if time is None:
                    root = self._plan.where.path / str(step_id)
                    time = self._times[step_id] = claim_time(root, self._plan.where.device_id)
        return time

    def begin_step(self, graph: Graph, iteration: int) -> None:
        """Raises: WriteError."""
        plan = self._plan
        self._dynamic[graph.graph_id, iteration] = graph.is_dynamic
        dump_mode = {DUMP_INPUT: "input", DUMP_OUTPUT: "output"}.get(plan.operands.mask, "all")
        selectors = plan.which.selectors or ()
        layers = [rule.text for rule in selectors if isinstance(rule, FullNameSelector | OpTypeSelector)]
        folder = plan.where.path / str(iteration)
        write_acl_json(self._json, step_acl_json(folder, dump_mode, layers, plan.trigger.op_debug_mode))

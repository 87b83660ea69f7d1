"""MindSpore's dump: from a DumpPlan to the observers and writers that carry it out."""

from __future__ import annotations

import datetime
import functools
import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from msdump.config.environment import disk_limits
from msdump.config.plan import DumpPlan
from msdump.config.selectors import FullNameSelector, OpTypeSelector
from msdump.dump.asynchronous import AsyncDumper
from msdump.dump.exception import ExceptionDumper
from msdump.dump.limits import (
    BIN_FOOTPRINT,
    DEVICE_NPY_FOOTPRINT,
    NPY_FOOTPRINT,
    STATISTIC_FOOTPRINT,
    DiskGuard,
    Footprint,
    LimitedWriter,
)
from msdump.dump.overflow import OverflowDumper
from msdump.dump.recorders import GraphFilesDumper
from msdump.dump.staging import staging_budget
from msdump.dump.sync import SyncDumper
from msdump.dump.tally import Tally
from msdump.dump.writer_pool import WriterPool
from msdump.errors import ConfigError
from msdump.formats import bin, npy
from msdump.formats.atomic import claim_dir, make_dirs
from msdump.formats.folders import FolderHold
from msdump.formats.opdebug import OpdebugJsonWriter
from msdump.formats.paths.acl import AclLayout, AclOperatorLayout, PlainLayout, format_time, npy_file_name
from msdump.formats.paths.sync import SyncLayout
from msdump.formats.sidecars import acl_json_path, initial_acl_json, step_acl_json, write_acl_json, write_metadata
from msdump.formats.statistic_csv import StatisticWriter
from msdump.formats.writer import Writer
from msdump.graph.graph import Graph
from msdump.graph.run import Observer
from msdump.records import TensorRecord

log = logging.getLogger("msdump")

# The MindSpore version that the metadata claims: the one whose output was compared with.
MS_VERSION = "2.0.0"
_ASYNC_MODE = 0o600
_EXCEPTION = 4

Directory = Callable[[TensorRecord], Path]


@dataclass(frozen=True, slots=True)
class Engine:
    """What carries a plan out.

    writers  whoever counts files
    pool     threads that may still be writing when the script has ended; None when nothing waits
    hold     keeps other processes out of the folder; None where each process has folders of its own
    """

    observers: tuple[Observer, ...]
    writers: tuple[Writer, ...]
    tally: Tally
    pool: WriterPool | None = None
    hold: FolderHold | None = None


def start_engine(plan: DumpPlan) -> Engine:
    """Make the folders and wire writers and dumpers.

    Raises: ConfigError for a wrong limit or budget, or when another process dumps the same rank into the same folder
            now; WriteError when a folder cannot be made.
    """
    guard = DiskGuard(plan.path, disk_limits())
    return _start_async(plan, guard) if plan.engine == "async" else _start_sync(plan, guard)


def _start_sync(plan: DumpPlan, guard: DiskGuard) -> Engine:
    layout = SyncLayout(plan.path, plan.rank_id, plan.net_name)
    hold = _hold(layout.metadata_dir.parent)
    if not write_metadata(layout.metadata_dir, plan.config_text, plan.device_target, MS_VERSION):
        log.warning("%s: holds an earlier dump; files of both runs will lie side by side.", layout.metadata_dir.parent)

    guard.expect_folder(layout.metadata_dir.parent)

    def directory(record: TensorRecord) -> Path:
        return layout.data_dir(record.graph_id, record.iteration)

    writers: list[Writer] = []
    if plan.saves_tensor:
        arrays = npy.NpyWriter(directory, is_direct=True, is_device_format=not plan.trans_flag)
        writers.append(LimitedWriter(arrays, guard, DEVICE_NPY_FOOTPRINT, directory))
    if plan.saves_statistic:
        statistics = StatisticWriter(directory, plan.statistic_categories)
        writers.append(LimitedWriter(statistics, guard, STATISTIC_FOOTPRINT, directory))
    constants = LimitedWriter(npy.NpyWriter(lambda record: layout.constants_dir(record.graph_id)), guard, NPY_FOOTPRINT)
    tally = Tally()
    dumper = SyncDumper(plan, layout, writers, constants, tally)
    return Engine((dumper,), (*writers, constants), tally, hold=hold)


def _hold(folder: Path) -> FolderHold:
    make_dirs(folder)
    hold = FolderHold.take(folder)
    if hold is None:
        raise ConfigError(
            f"{folder}: expected one process for each rank, got another process that dumps into this folder now. Give "
            "each process a RANK_ID of its own, or a `path` of its own."
        )
    return hold


def _start_async(plan: DumpPlan, guard: DiskGuard) -> Engine:
    budget = staging_budget()
    folders = _AclFolders(plan) if plan.is_acl_dump else _PlainFolders(plan)
    guard.expect_folder(folders.home)
    writers, data_offsets = _async_writers(plan, guard, folders.directory)
    tally = Tally()
    graphs: tuple[Observer, ...] = ()
    if plan.has_graph_files:
        graphs = (GraphFilesDumper(SyncLayout(folders.graphs_home, plan.rank_id, plan.net_name), tally),)
    if plan.op_debug_mode == _EXCEPTION:
        return Engine((ExceptionDumper(plan, writers, tally), *graphs), writers, tally)
    if plan.op_debug_mode:
        opdebug = _opdebug_writer(plan, guard, folders.directory)
        overflow = OverflowDumper(plan, writers, opdebug, tally, on_step=folders.begin_step)
        return Engine((overflow, *graphs), (*writers, opdebug), tally)
    dumper = AsyncDumper(plan, writers, tally, budget, data_offsets=data_offsets, on_step=folders.begin_step)
    return Engine((dumper, *graphs), writers, tally, dumper.pool)


def _async_writers(
    plan: DumpPlan, guard: DiskGuard, directory: Directory
) -> tuple[tuple[Writer, ...], Callable[[Sequence[TensorRecord]], Sequence[int]]]:
    """Writers that the plan asks for, and where data begins in their files.

    Files get the modes of the engine that MindSpore hands such dumps to, and go past the page cache.
    """

    def limited(writer: Writer, footprint: Footprint) -> Writer:
        return LimitedWriter(writer, guard, footprint, directory)

    if plan.file_format == "bin":
        binary = bin.BinWriter(directory, _ASYNC_MODE, is_host_format=plan.trans_flag, is_direct=True)
        offsets = functools.partial(bin.data_offsets, is_host_format=plan.trans_flag)
        return (limited(binary, BIN_FOOTPRINT),), offsets
    writers: list[Writer] = []
    if plan.saves_tensor:
        arrays = npy.NpyWriter(directory, _ASYNC_MODE, file_name=npy_file_name, is_direct=True)
        writers.append(limited(arrays, NPY_FOOTPRINT))
    if plan.saves_statistic:
        # Digests are computed by the threads that write, which there are several of.
        rows = StatisticWriter(directory, plan.statistic_categories, _ASYNC_MODE, md5_threads=0)
        writers.append(limited(rows, STATISTIC_FOOTPRINT))
    return tuple(writers), npy.data_offsets


def _opdebug_writer(plan: DumpPlan, guard: DiskGuard, directory: Directory) -> Writer:
    if plan.file_format == "bin":
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

    def __init__(self, plan: DumpPlan) -> None:
        self._layout = PlainLayout(plan.path, claim_time(plan.path, plan.device_id), plan.device_id)
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

    def __init__(self, plan: DumpPlan) -> None:
        self._plan = plan
        self._models = AclLayout(plan.path, plan.device_id)
        self._operators = AclOperatorLayout(plan.path, plan.device_id)
        self._json = acl_json_path(plan.path, plan.device_id)
        self._dynamic: dict[tuple[int, int], bool] = {}
        self._times: dict[int, str] = {}
        self._lock = threading.Lock()
        self.home = self.graphs_home = plan.path
        write_acl_json(self._json, initial_acl_json(plan.path))

    def directory(self, record: TensorRecord) -> Path:
        graph_id, step_id = record.graph_id, record.iteration
        time = self._time_of(step_id)
        if self._plan.jit_level == "O0":
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
                    root = self._plan.path / str(step_id)
                    time = self._times[step_id] = claim_time(root, self._plan.device_id)
        return time

    def begin_step(self, graph: Graph, iteration: int) -> None:
        """Raises: WriteError."""
        plan = self._plan
        self._dynamic[graph.graph_id, iteration] = graph.is_dynamic
        dump_mode = {(True, True): "all", (True, False): "input"}.get((plan.dumps_input, plan.dumps_output), "output")
        layers = [rule.text for rule in plan.selectors or () if isinstance(rule, FullNameSelector | OpTypeSelector)]
        folder = plan.path / str(iteration)
        write_acl_json(self._json, step_acl_json(folder, dump_mode, layers, plan.op_debug_mode))

"""AclDump: the dump of one acl.json, for any number of models until it is closed."""

from __future__ import annotations

import datetime
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msdump.config.environment import disk_limits
from msdump.config.plan import Plan
from msdump.config.selection import Choice, ModelOperator
from msdump.dumpers.capture import AclWatchedGraph, Clock, graph_operators
from msdump.dumpers.delivery import Delivery
from msdump.dumpers.dumper import NoDumper
from msdump.dumpers.exception import AclExceptionDumper
from msdump.dumpers.limits import ACL_STATS_FOOTPRINT, BIN_FOOTPRINT, DiskGuard, LimitedWriter
from msdump.dumpers.memory_watcher import Watcher
from msdump.dumpers.overflow import OverflowDumper
from msdump.dumpers.packs import LimitedPacks, PackedWriter, is_packed, packed
from msdump.dumpers.rotation import Rotation
from msdump.dumpers.staging import staging_budget
from msdump.dumpers.step_folders import claim_time
from msdump.dumpers.streaming import AclOperatorDumper
from msdump.dumpers.tally import Tally
from msdump.dumpers.uploads import begin_upload, end_upload, sender
from msdump.dumpers.writer_pool import WriterPool
from msdump.errors import DumpError
from msdump.formats import bin
from msdump.formats.acl_chunks import ChunkFolder, ChunkSink, DumpChunk
from msdump.formats.acl_stats_csv import AclStatsWriter
from msdump.formats.folders import FolderHolds
from msdump.formats.paths.acl import AclDumpPaths, format_time
from msdump.formats.paths.sync import METADATA_FOLDER
from msdump.formats.sidecars import write_command
from msdump.formats.writer import OpenFolder, WriteCounts, Writer
from msdump.graph.graph import Graph
from msdump.graph.run import Observer
from msdump.process import dry_run
from msdump.process.command import ACL_RUN, current
from msdump.process.report import MODELS, Report
from msdump.process.sessions import ProcessOwned
from msdump.tensors.records import TensorRecord

log = logging.getLogger("msdump")

_FILE_MODE = 0o600
# To measure a tensor costs less than the fresh memory that the model takes while many of them wait.
_LARGEST_BUDGET_OF_STATISTICS = 16 << 20
_NO_ORIGINALS: Mapping[str, tuple[str, ...]] = {}


class AclDump(ProcessOwned):
    """The dump of one acl.json, from when it is set to `close`. Any number of models, in any threads.

    root       folder that the dump goes to; the folder of its time is made with its first file. Of an exception
               dump: the one that gets `extra-info`, see `environment.exception_folder`
    device_id  in the names of folders
    callback   gets all files in pieces, from other threads but one at a time; None: they go to the disk, as those of
               exceptions do in any case

    A failure to write is logged once; models go on, `close` raises.
    Raises: ConfigError for a wrong limit of the disk or of memory.
    """

    def __init__(
        self,
        plan: Plan,
        root: Path,
        device_id: int = 0,
        callback: Callable[[DumpChunk], object] | None = None,
    ) -> None:
        super().__init__()
        self.plan = plan
        self.root = Path(root)
        self.device_id = device_id
        self._tally = Tally(on_stop="Dump stopped, the model continues: %s")
        self._clock = Clock()
        self._guard = DiskGuard(self.root, disk_limits())
        self._sink = None if callback is None else ChunkSink(callback)
        self._folders = AclFolders(self.root if callback is None else None, device_id, self._begin_folder)
        # Where data begin matters to files on the disk alone.
        offsets = bin.data_offsets if callback is None and not plan.saved.statistics else None
        # What is left of statistics is text and small files: a second thread would wait for Python, or for the first.
        threads = 1 if plan.saved.statistics else 2
        self._delivery = Delivery(self._tally, _budget(plan), threads, offsets)
        # The folder of the device is made later; no other dump writes below it.
        self._uploader = None if self._sink is not None else begin_upload(self.root, [self.root])
        self._observers: list[Observer] = []
        self._writers: list[Writer] = []
        self._exceptions: list[AclExceptionDumper] = []
        self._lock = threading.Lock()
        self._noting_seconds = 0.0
        self._makers: dict[Observer, Callable[[], Observer]] = {}

    def observe_model(
        self,
        model_id: int,
        model_names: Sequence[str],
        originals: Mapping[str, tuple[str, ...]] = _NO_ORIGINALS,
    ) -> tuple[Observer, ...]:
        """Who watches a model that is loaded now; () when nothing of it is dumped.

        model_names  stem of its file's name, then the name inside of it; the first one names its folder
        originals    original name of an operator -> its names in the model
        """
        plan = self.plan
        model_names = [name for name in model_names if name]
        if self.has_ended:
            return ()
        if plan.trigger.exception:
            return self._keep(self._exception)
        if not plan.trigger.overflow and not plan.which.matching(model_names):
            for text in plan.which.advice((), model_names):
                log.warning("%s", text)
            return ()
        folder = IterationFolders(self._folders, model_names[0] if model_names else "model", model_id, plan)
        rotation = self._guard.new_rotation()

        def make() -> Observer:
            folder.follow(self.plan)
            if self.plan.trigger.overflow:
                return self._overflow(folder, model_id, rotation)
            if self.plan.which.matching(model_names):
                return self._ordinary(folder, model_names, originals, rotation)
            return NoDumper(self._tally)

        return self._keep(make)

    def successor(self, observer: Observer) -> Observer:
        """Who watches the same model, or operator, as the plan says now. The one before has written what it had."""
        with self._lock:
            make = self._makers.pop(observer)
            self._observers.remove(observer)
        observer.close()
        self.flush()
        for writer in observer.writers if isinstance(observer, AclOperatorDumper) else ():
            with self._tally.stop_on_failure():
                writer.close()
        (following,) = self._keep(make)
        return following

    def observe_operators(self) -> tuple[Observer, ...]:
        """Who watches operators that are called one by one; () when `dump_op_switch` is off and none is to raise."""
        if not self.has_ended and self.plan.trigger.exception:
            return self._keep(self._exception)
        if self.has_ended or not self.plan.which.takes_single_operators:
            return ()
        folder = OperatorFolder(self._folders)

        def watch(graph: Graph) -> AclWatchedGraph:
            operators = [ModelOperator(node.op_type, node.full_name) for node in graph.kernels]
            return AclWatchedGraph(graph, self.plan, [Choice()] * len(operators))

        def begins(_: int) -> bool:
            self._note_run("operators")
            return self.may_dump()

        def make() -> Observer:
            if not self.plan.which.takes_single_operators:
                return NoDumper(self._tally)
            # A call is no iteration: all of them stay.
            writers = [self._writer(folder)]
            parts = watch, begins, writers, self._delivery, self._tally, self._clock
            return AclOperatorDumper(*parts, self.plan.saved.statistics)

        return self._keep(make)

    def count_skipped(self, count_by_reason: Mapping[str, int]) -> None:
        """Count values that a frontend cannot show to observers, for the report: once per model, not per run."""
        for reason, count in count_by_reason.items():
            self._tally.count_skipped(reason, count)

    def count_unseen(self, count_by_type: Mapping[str, int]) -> None:
        """Count operators of a model that observers are not shown, as `Tally.count_unseen`: once per model."""
        self._tally.count_unseen(count_by_type)

    def wants_arena(self) -> bool:
        """True when models should keep all their values in one piece of memory, so that an
        out-of-bounds write reaches another tensor."""
        return self.plan.trigger.is_watcher

    def report(self) -> Report:
        """Counts up to now."""
        with self._lock:
            counted = [writer.counts for writer in self._writers] + [dumper.counts for dumper in self._exceptions]
        home = str(self._folders.home or self.root)
        return self._tally.report(home, MODELS, sum(counted, WriteCounts()), str(self.plan.when.iterations))

    @property
    def error(self) -> str:
        """Why the dump is not complete; "" where it is."""
        return self._tally.error or ""

    def counts(self) -> dry_run.Counts:
        """As `report`, for a dry run."""
        report = self.report()
        return dry_run.Counts(
            report.files, report.links, report.bytes_written, report.dump_seconds - self._noting_seconds
        )

    @property
    def pool(self) -> WriterPool:
        """The threads that write."""
        return self._delivery.pool

    def flush(self) -> None:
        """Wait until everything that was dumped so far is on disk."""
        self.pool.drain()

    def _finish(self) -> None:
        try:
            for observer in self._observers:
                observer.close()
            self._delivery.close(self._writers)
            end_upload(self._uploader, self._tally)
        finally:
            self._folders.let_go()
        if self._tally.error:
            raise DumpError(
                f"{self.root}: the dump is not complete, {self._tally.lost} tensors are missing and what came later "
                f"was not dumped. {self._tally.error}"
            )

    # -- scenes -----------------------------------------------------------------------------------

    def _ordinary(
        self,
        folder: IterationFolders,
        model_names: Sequence[str],
        originals: Mapping[str, tuple[str, ...]],
        rotation: Rotation | None,
    ) -> Observer:
        names_before: dict[str, tuple[str, ...]] = {}
        for original, names in originals.items():
            for name in names:
                names_before[name] = (*names_before.get(name, ()), original)
        has_advised = False

        def watch(graph: Graph) -> AclWatchedGraph:
            nonlocal has_advised
            operators = graph_operators(graph, names_before)
            if not has_advised:
                has_advised = True
                for text in self.plan.which.advice(operators, model_names):
                    log.warning("%s: %s", folder.model_name, text)
            return AclWatchedGraph(graph, self.plan, self.plan.which.choose(operators, model_names))

        def begins(iteration: int) -> bool:
            self._note_run(folder.model_name)
            return self.may_dump() and folder.begins(iteration)

        writers = [self._writer(folder, rotation)]
        parts = watch, begins, writers, self._delivery, self._tally, self._clock, self.plan.saved.statistics
        if self.plan.trigger.is_watcher:
            return Watcher(self.plan.which, names_before, *parts)
        return AclOperatorDumper(*parts)

    def _overflow(self, folder: IterationFolders, model_id: int, rotation: Rotation | None) -> Observer:
        writer, debug = self._writer(folder, rotation), self._writer(folder, rotation)

        def count(graph: Graph, iteration: int) -> None:
            folder.count(iteration)

        return OverflowDumper(self.plan, [writer], debug, self._tally, self._clock, count, model_id)

    def _exception(self) -> Observer:
        """Who dumps the operator that raises; its files have a folder of their own."""
        dumper = AclExceptionDumper(self.plan, self.root, self.device_id, self._tally, self._clock)
        with self._lock:
            self._exceptions.append(dumper)
        return dumper

    # -- parts ------------------------------------------------------------------------------------

    def _begin_folder(self, folder: Path) -> None:
        self._guard.expect_folder(folder)
        # A script of ACL, which configures itself, finds the folders that CANN makes, and no others.
        if current().entry == ACL_RUN:
            write_command(folder.parent / METADATA_FOLDER, current())

    def _note_run(self, name: str) -> None:
        """For a dry run, whose own work the tally takes for that of the dump."""
        began = time.perf_counter()
        dry_run.note_run(name, self)
        self._noting_seconds += time.perf_counter() - began

    def _keep(self, make: Callable[[], Observer]) -> tuple[Observer, ...]:
        observer = make()
        with self._lock:
            self._observers.append(observer)
            self._makers[observer] = make
        return (observer,)

    def _writer(self, folder: IterationFolders | OperatorFolder, rotation: Rotation | None = None) -> Writer:
        """Of tensors or, when the plan asks for them, of statistics.

        rotation   counts the folder's iterations; None: they all stay
        """
        sink = self._sink
        open_folder: OpenFolder | None = None if sink is None else lambda path: ChunkFolder(path, sink)
        packs: LimitedPacks | None = None
        if sink is None and is_packed(self.plan):
            packs = LimitedPacks(
                folder.directory, self._guard, _FILE_MODE, rotation=rotation, on_finished=sender(self._uploader)
            )
            open_folder = packs.open
        writer: Writer
        if self.plan.saved.statistics:
            columns = self.plan.saved.columns or ()
            writer = AclStatsWriter(folder.directory, columns, _FILE_MODE, open_folder=open_folder)
        else:
            writer = bin.BinWriter(folder.directory, _FILE_MODE, is_direct=True, open_folder=open_folder)
        if sink is None:
            footprint = ACL_STATS_FOOTPRINT if self.plan.saved.statistics else BIN_FOOTPRINT
            directory = None if rotation is None else folder.directory
            if packs is not None:
                writer = PackedWriter(LimitedWriter(writer, self._guard, packed(footprint)), packs)
            else:
                writer = LimitedWriter(writer, self._guard, footprint, directory, rotation)
        with self._lock:
            self._writers.append(writer)
        return writer


def _budget(plan: Plan) -> int:
    """Bytes that tensors may take while they wait.   Raises: ConfigError."""
    budget = staging_budget()
    return min(budget, _LARGEST_BUDGET_OF_STATISTICS) if plan.saved.statistics else budget


# -- folders -----------------------------------------------------------------------------------------


class AclFolders:
    """The time folder of a dump, made on first use. Any thread may call it.

    root      None: nothing is made, and folders are below the current one
    on_made   called with the folder of the device once it exists
    """

    def __init__(self, root: Path | None, device_id: int, on_made: Callable[[Path], None]) -> None:
        self._root = root
        self._device_id = device_id
        self._on_made = on_made
        self._holds = FolderHolds()
        self._paths: AclDumpPaths | None = None
        self._lock = threading.Lock()

    @property
    def home(self) -> Path | None:
        """Folder of the device; None before there is one."""
        return None if self._paths is None else self._paths.operator_dir

    def let_go(self) -> None:
        """Let commands change the folder."""
        self._holds.release()

    def paths(self) -> AclDumpPaths:
        """Raises: WriteError when the folder cannot be made."""
        with self._lock:
            if self._paths is None:
                self._paths = self._begin()
            return self._paths

    def _begin(self) -> AclDumpPaths:
        if self._root is None:
            return AclDumpPaths("", format_time(datetime.datetime.now()), self._device_id)
        paths = AclDumpPaths(self._root, claim_time(self._root, self._device_id, self._holds), self._device_id)
        self._on_made(paths.operator_dir)
        return paths


class IterationFolders:
    """Folders of one model, one for each iteration that is dumped.

    The number in a folder's name is the iteration's where the plan chooses iterations, else it counts from 0.
    Source: CANN, `data_index`.
    """

    def __init__(self, folders: AclFolders, model_name: str, model_id: int, plan: Plan) -> None:
        self.model_name = model_name
        self.model_id = model_id
        self._folders = folders
        self._plan = plan
        self._counts = plan.when.is_every
        self._index_by_iteration: dict[int, int] = {}

    def follow(self, plan: Plan) -> None:
        """Take another plan, under which each iteration has its own number: folders of two plans are not to be one."""
        if plan is not self._plan:
            self._plan = plan
            self._counts = False

    def begins(self, iteration: int) -> bool:
        """Whether an iteration is dumped; if so it has a folder from now on."""
        if not self._plan.when.dumps(iteration):
            return False
        self.count(iteration)
        return True

    def count(self, iteration: int) -> None:
        """Graphs of one iteration share its number."""
        if self._counts:
            self._index_by_iteration.setdefault(iteration, len(self._index_by_iteration))

    def directory(self, record: TensorRecord) -> Path:
        """Folder of a record; any thread may ask.   Raises: WriteError."""
        index = self._index_by_iteration.get(record.iteration, record.iteration)
        return self._folders.paths().model_dir(self.model_name, self.model_id, index)


class OperatorFolder:
    """The folder of operators that are called one by one."""

    def __init__(self, folders: AclFolders) -> None:
        self._folders = folders

    def directory(self, record: TensorRecord) -> Path:
        """Folder of a record; any thread may ask.   Raises: WriteError."""
        return self._folders.paths().operator_dir

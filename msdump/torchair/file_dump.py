"""The dumps that a script's CompilerConfig asks for as files of TorchAir: one for each folder, counted by kind."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from msdump.config.environment import CONTAINER, UPLOAD, disk_limits, say_ignored
from msdump.dumpers.limits import DiskGuard, Footprint
from msdump.dumpers.run_files import RunFiles
from msdump.dumpers.tally import Tally
from msdump.errors import DumpError, WriteError
from msdump.formats.writer import LinkFolder, WriteCounts, Writer
from msdump.process import dry_run, sessions
from msdump.process.report import CAPTURED, EAGER, Kind, Report, merged
from msdump.tensors.records import TensorRecord
from msdump.torchair.ranks import rank_folders

_SKIPPED = "without a file"
OpenLinkFolder = Callable[[Path], LinkFolder]
MakeWriter = Callable[[Callable[[TensorRecord], Path], int, int, Callable[[], None], OpenLinkFolder | None], Writer]


def umask() -> int:
    """The process's umask; reading it from /proc does not change it for other threads, as asking the system does."""
    with suppress(OSError, ValueError), open("/proc/self/status", encoding="ascii", errors="replace") as status:
        for line in status:
            if line.startswith("Umask:"):
                return int(line.split()[1], 8)
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


class FolderDump:
    """The dump into one folder. Any thread may use it.

    lock         for writers of iterations that others end
    root         the folder; backends of a process may share it
    make_writer  of (directory of a record, mode of files, mode of folders, what to call for a value without a file,
                 what opens a folder, None for those of the disk)
    clash        what becomes of files of an earlier run, for a warning
    can_be_packed  as of RunFiles

    A write error stops the dump into this folder, is logged once, and does not stop the model.
    Files and folders get the modes that the umask gives any file of this process.   Source: TorchAir, numpy.save.
    Raises: ConfigError for what the environment asks of dumps and cannot be read.
    """

    def __init__(
        self,
        root: str,
        kind: FileDumps,
        make_writer: MakeWriter,
        footprint: Footprint,
        clash: str,
        can_be_packed: bool = False,
    ) -> None:
        mask, skip = umask(), self._count_skipped
        self.root = root
        self.kind = kind
        self.lock = threading.Lock()
        self.tally = Tally(on_stop="The dump is not complete, the model continues without it. %s")
        self._clash = clash
        mode, self._dir_mode = 0o666 & ~mask, 0o777 & ~mask
        say_ignored(f"the dump into {root}", *(() if can_be_packed else (CONTAINER,)), UPLOAD)
        self.runs = RunFiles(
            Path(root),
            lambda directory, open_folder: make_writer(directory, mode, self._dir_mode, skip, open_folder),
            footprint,
            DiskGuard(Path(os.path.realpath(root)), disk_limits()),
            mode,
            self._dir_mode,
            can_be_packed,
        )
        self.writer = self.runs.writer
        # What a process that this one was forked from has counted.
        self._before = WriteCounts()
        kind.add(self)

    def enter(self, rank: str, values: int = 0) -> bool:
        """Files are about to come; False when they are not written: the dump has ended, or it is that of a process that
        this one was forked from.

        rank    folder of the process, below which no other writes
        values  that are lost when the folder cannot be made
        Raises: ConfigError when another process dumps into it now.
        """
        if self.tally.error:
            return False
        try:
            if not rank_folders.enter(rank, self._dir_mode, self._clash):
                return False
        except WriteError as error:
            self.tally.count_lost(values)
            self.tally.fail(error)
        self.kind.begin(self)
        return not self.tally.error

    def report(self) -> Report:
        """Counts of this process up to now. Values that have no file are skipped, not written."""
        written = self.writer.counts - self._before
        report = self.tally.report(self.root, self.kind.kind, written)
        return replace(report, tensors_written=written.files + written.links)

    def forget(self) -> None:
        """Count from here on."""
        self._before = self.writer.counts
        self.tally.leave_to_parent()

    def _count_skipped(self) -> None:
        self.tally.count_skipped(_SKIPPED)


class FileDumps:
    """The dumps of one kind in this process, which have one report. Any thread may ask."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self._made: list[FolderDump] = []
        self._begun: dict[str, FolderDump] = {}
        self._session: _FilesSession | None = None
        self._lock = threading.RLock()

    def add(self, dump: FolderDump) -> None:
        """A dump of this kind was made."""
        self._made.append(dump)

    def begin(self, dump: FolderDump) -> None:
        """A graph is compiled, or runs, with this dump."""
        if dump.root in self._begun:
            return
        with self._lock:
            self._begun[dump.root] = dump
            if self._session is None:
                self._session = sessions.begin(_FilesSession(self, dump.root))

    @property
    def is_configured(self) -> bool:
        """Whether a graph was compiled with such a dump."""
        return bool(self._begun)

    @property
    def error(self) -> str:
        return self.report().error or ""

    def report(self, folder: str = "") -> Report:
        """Counts up to now; `folder` stands there while there are no files."""
        reports = [dump.report() for dump in list(self._begun.values())]
        return merged(
            ", ".join(sorted(report.path for report in reports if report.files)) or folder, self.kind, reports
        )

    def counts(self) -> dry_run.Counts:
        """What was written up to now."""
        report = self.report()
        return dry_run.Counts(report.files, report.links, report.bytes_written, report.dump_seconds)

    def flush(self) -> None:
        """Nothing waits: each file is written when its operator runs."""

    def forget(self) -> None:
        """In a process that was forked: what its parent did is not its own."""
        self._lock = threading.RLock()
        for dump in self._made:
            dump.forget()
        self._begun = {}
        self._session = None


class _FilesSession(sessions.Session):
    """All dumps of a kind, from the first graph on."""

    def __init__(self, dumps: FileDumps, folder: str) -> None:
        super().__init__()
        self._dumps = dumps
        self._folder = folder

    @property
    def folder(self) -> str:
        return self._folder

    def report(self) -> Report:
        return self._dumps.report(self._folder)

    def _finish(self) -> None:
        report = self.report()
        if report.error:
            text = f"the dump is not complete, {report.lost} values are missing. {report.error}"
            raise DumpError(f"{self._folder}: {text}")


# One for each kind: backends of a process may share folders.
eager = FileDumps(EAGER)
captured = FileDumps(CAPTURED)
for _dumps in (eager, captured):
    sessions.call_at_reset(_dumps.forget)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_dumps.forget)

"""The files of an eager data dump: one folder per run of a graph, one .npy file per value."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import torch

from msdump import measuring
from msdump.config.environment import disk_limits
from msdump.dump.capture import Clock
from msdump.dump.limits import LimitedFiles
from msdump.errors import DtypeError, FormatError, WriteError
from msdump.formats import sidecars
from msdump.formats.atomic import Buffer, Folder, make_dirs
from msdump.formats.npy import numpy_chunks
from msdump.formats.paths.sync import NAME_MAX_BYTES
from msdump.formats.paths.torchair import (
    INPUT,
    OUTPUT,
    SKIPPED_FILE,
    TorchairFileName,
    format_torchair_name,
    rank_dir,
    step_dir,
)
from msdump.frontends.torchair.dump_tally import DumpTally
from msdump.frontends.torchair.host_value import NoArrayError, array_from_value, original_dtype
from msdump.frontends.torchair.node_plan import NodePlan
from msdump.frontends.torchair.ranks import rank_folders

log = logging.getLogger("msdump")


def umask() -> int:
    """The process's umask; reading it from /proc does not change it for other threads, as asking the system does."""
    with suppress(OSError, ValueError), open("/proc/self/status", encoding="ascii", errors="replace") as status:
        for line in status:
            if line.startswith("Umask:"):
                return int(line.split()[1], 8)
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


# By folder of a dump: backends of a process may share one.
_limited_files: dict[str, LimitedFiles] = {}


def limited_files(root: str) -> LimitedFiles:
    """What keeps this process's files below a folder within the limits of the disk.

    Raises: ConfigError for a limit of the environment that cannot be read.
    """
    path = os.path.realpath(root)
    if path not in _limited_files:
        _limited_files.setdefault(path, LimitedFiles(Path(path), disk_limits()))
    return _limited_files[path]


# Names of files hold the time.
_CLASH = " and differ in their time stamps only"


class DumpFolder:
    """Folder of one backend's dumps. Owns nothing but counters; any thread may call it.

    A file that cannot be written ends the dump into this folder, is said once, and leaves the model alone.
    Files and folders get the modes that the umask gives any file of this process.   Source: TorchAir, numpy.save.
    """

    def __init__(self, root: str, tally: DumpTally, clock: Clock) -> None:
        self.root = root
        self.tally = tally
        self.clock = clock
        self.is_broken = False
        mask = umask()
        self.file_mode, self.dir_mode = 0o666 & ~mask, 0o777 & ~mask
        self.limited = limited_files(root)

    def open_step(self, world_size: int, global_rank: int, graph_id: int, step: int) -> StepFiles | None:
        """Files of one run of one graph; None in a forked process whose parent dumps into the folder of the rank.

        Raises: ConfigError when another process dumps into the folder of the rank now.
        """
        measuring.note_run(graph_id, self.tally)
        try:
            path = rank_dir(self.root, world_size, global_rank)
            if not rank_folders.enter(os.fspath(path), self.dir_mode, _CLASH):
                return None
        except WriteError as error:
            self.fail(error)
        return StepFiles(self, step_dir(path, graph_id, step), graph_id, step)

    def fail(self, error: WriteError) -> None:
        """End the dump into this folder."""
        if not self.is_broken:
            self.is_broken = True
            log.error("The dump is not complete, the model goes on without it. %s", error)
        self.tally.fail(error)


class StepFiles:
    """Files of one run of one graph; belongs to the thread that runs it. The folder is made with its first file."""

    def __init__(self, owner: DumpFolder, path: Path, graph_id: int, step: int) -> None:
        self._owner = owner
        self._path = path
        self._real_path = Path(os.path.realpath(path))
        self._graph_id, self._step = graph_id, step
        self._folder: Folder | None = None
        self._skipped: list[str] = []
        self._files = self._bytes = self._lost = 0
        self._seconds = 0.0

    def save_inputs(
        self, plan: NodePlan, timestamp_us: int, args: Iterable[object], kwargs: Mapping[str, object]
    ) -> None:
        """One file per argument, and per element of a list that holds tensors."""
        began = time.perf_counter()
        for slot, value in enumerate(args):
            self._save_argument(plan, timestamp_us, slot, value)
        for name, value in kwargs.items():
            self._save_argument(plan, timestamp_us, name, value)
        self._seconds += time.perf_counter() - began

    def save_outputs(self, plan: NodePlan, timestamp_us: int, result: object) -> None:
        """One file per result."""
        began = time.perf_counter()
        results = result if isinstance(result, (list, tuple)) else (result,)
        for slot, value in enumerate(results):
            if isinstance(value, (list, tuple)):
                self._save_argument(plan, timestamp_us, slot, value, OUTPUT)
            else:
                self._save(TorchairFileName(plan.name, plan.target, OUTPUT, slot, None, timestamp_us), value)
        self._seconds += time.perf_counter() - began

    def close(self) -> None:
        """Write down what was left out."""
        try:
            if self._skipped and not self._owner.is_broken:
                text = "".join(line + "\n" for line in self._skipped).encode(errors="backslashreplace")
                self._write(SKIPPED_FILE, [text], replace=True)
            if self._folder is not None:
                self._folder.close()
                self._owner.limited.end_iteration(self._graph_id, self._step)
        except WriteError as error:
            self._owner.fail(error)
        finally:
            self._owner.tally.add(
                self._owner.root,
                self._files,
                self._bytes,
                steps=1,
                skipped=len(self._skipped),
                lost=self._lost,
                seconds=self._seconds,
            )

    def _save_argument(
        self, plan: NodePlan, timestamp_us: int, slot: int | str, value: object, io: str = INPUT
    ) -> None:
        if isinstance(value, (list, tuple)) and any(isinstance(element, torch.Tensor) for element in value):
            for number, element in enumerate(value):
                self._save(TorchairFileName(plan.name, plan.target, io, slot, number, timestamp_us), element)
        else:
            self._save(TorchairFileName(plan.name, plan.target, io, slot, None, timestamp_us), value)

    def _save(self, name: TorchairFileName, value: object) -> None:
        if self._owner.is_broken:
            self._lost += 1
            return
        try:
            text = format_torchair_name(name)
        except FormatError as error:
            self._skipped.append(f"{name.node}-{name.target}.{name.io}.{name.slot}: {error}")
            return
        try:
            chunks = numpy_chunks(array_from_value(value), original_dtype(value))
        except (NoArrayError, DtypeError, MemoryError) as error:
            self._skipped.append(f"{text}: {error or 'there is not enough memory for a copy'}")
            return
        try:
            self._bytes += self._write(text, chunks)
            self._files += 1
        except WriteError as error:
            self._lost += 1
            self._owner.fail(error)

    def _short_name(self, folder: Folder, text: str) -> str:
        short = sidecars.mapped_name(text, ".npy", folder.has)
        sidecars.append_mapping(folder, short, text, self._owner.file_mode)
        return short

    def _write(self, name: str, chunks: Sequence[Buffer], replace: bool = False) -> int:
        folder, size = self._open(), sum(memoryview(chunk).nbytes for chunk in chunks)

        def publish() -> int:
            is_short = len(os.fsencode(name)) <= NAME_MAX_BYTES
            file_name = name if is_short else self._short_name(folder, name)
            return folder.write(file_name, chunks, self._owner.file_mode, replace)

        return self._owner.limited.write(self._real_path, name, size, self._graph_id, self._step, publish)

    def _open(self) -> Folder:
        if self._folder is None:
            make_dirs(self._path, self._owner.dir_mode)
            self._folder = Folder(self._path)
        return self._folder

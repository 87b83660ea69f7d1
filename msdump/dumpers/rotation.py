"""Rotation: keeps the last iterations of a dump on the disk and removes older ones whole, own files only."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msdump.errors import FormatError, WriteError
from msdump.formats.paths.acl import bin_file_name, npy_file_name, overflow_json_name, stats_file_name
from msdump.formats.paths.sync import MAPPING_FILE, STATISTIC_FILE, data_file_name
from msdump.formats.sidecars import read_mapping
from msdump.formats.spare_files import SpareFiles
from msdump.tensors.records import TensorRecord

log = logging.getLogger("msdump")

_Name = tuple[int, int]
# Files that a folder has once, shared by all its writers.
_COMMON_FILES = (STATISTIC_FILE, MAPPING_FILE)
_NOT_EMPTY = (errno.ENOTEMPTY, errno.EEXIST)


class _IterationNames:
    """What an iteration may have left: folder -> names that its records have in any layout."""

    def __init__(self) -> None:
        self.names: dict[Path, set[str]] = {}
        self.finished_by: set[object] = set()
        self.is_complete = False


class Rotation:
    """The iterations of one dump, oldest first. Any thread may call it.

    root   folder of the dump; nothing above it is touched
    keep   how many complete iterations stay; one that is being written comes on top
    common_files  names of files that a folder has once and that go with its iteration
    is_shared     the graphs of a step have one number, and are one iteration, which counts as complete with the first
                  of them; else each graph counts its own
    spares        takes files in the place of their removal, for writers that write over them

    A file is removed when its name is that of a record that this process wrote into this folder in that iteration.
    statistic.csv and mapping.csv go when the folder did not have them before. Folders go when they are empty and
    belong to no other iteration.
    """

    def __init__(
        self,
        root: Path,
        keep: int,
        common_files: Sequence[str] = _COMMON_FILES,
        is_shared: bool = False,
        spares: SpareFiles | None = None,
    ) -> None:
        self._spares = spares
        self._root = root
        self._keep = keep
        self._common_files = common_files
        self._is_shared = is_shared
        self._writers: set[object] = set()
        self._iterations: dict[_Name, _IterationNames] = {}
        self._owner: dict[Path, _Name | None] = {}
        """Folder -> the only iteration that used it; None when several did."""
        self._lock = threading.Lock()

    def join(self, writer: object) -> None:
        """An iteration is complete when each writer that joined has ended it."""
        self._writers.add(writer)

    def leave(self, writer: object) -> None:
        """The writer is closed: what is complete now stays so, and later iterations do not wait for it."""
        with self._lock:
            for iteration in self._iterations.values():
                iteration.is_complete |= iteration.finished_by >= self._writers
            self._writers.discard(writer)

    def expect(self, folder: Path, file_names: Iterable[str], graph_id: int, number: int) -> None:
        """Files of these names are about to appear in a folder, in iteration `number` of a graph."""
        name = (graph_id, number)
        with self._lock:
            iteration = self._iterations.setdefault(name, _IterationNames())
            names = iteration.names.get(folder)
            if names is None:
                names = iteration.names[folder] = {
                    common for common in self._common_files if not os.path.lexists(folder / common)
                }
                for subfolder in self._below_root(folder):
                    self._owner[subfolder] = name if self._owner.setdefault(subfolder, name) == name else None
            names.update(file_names)

    def end(self, writer: object, graph_id: int, iteration: int) -> int:
        """A writer has ended an iteration; returns the bytes that the removal of older ones freed.

        Raises: WriteError when something cannot be removed.
        """
        freed = 0
        with self._lock:
            ended = self._iterations.get((graph_id, iteration))
            if ended is not None:
                ended.finished_by.add(writer)
            for name in self._oldest(self._keep):
                freed += self._remove(name, self._iterations.pop(name))
        return freed

    def drop_oldest(self) -> int:
        """Remove the oldest of the complete iterations; returns the bytes that this freed, 0 where one alone is left.

        Raises: WriteError when something cannot be removed.
        """
        with self._lock:
            names = self._oldest(1)
            oldest = [name for name in names if name[1] == names[0][1]] if self._is_shared else names[:1]
            return sum(self._remove(name, self._iterations.pop(name)) for name in oldest)

    def _oldest(self, keep: int) -> list[_Name]:
        """The complete iterations but the last `keep` of them."""
        complete = [
            name for name, state in self._iterations.items() if state.is_complete or state.finished_by >= self._writers
        ]
        if not self._is_shared:
            return _in_order(complete)[:-keep]
        kept = sorted({number for _, number in complete})[-keep:]
        return [name for name in complete if name[1] < kept[0]] if kept else []

    def _below_root(self, folder: Path) -> Iterator[Path]:
        """The folder and those above it, deepest first."""
        while folder not in (self._root, folder.parent):
            yield folder
            folder = folder.parent

    def _remove(self, name: _Name, iteration: _IterationNames) -> int:
        freed = 0
        for folder, names in iteration.names.items():
            try:
                freed += _remove_files(folder, names, self._spares)
                for subfolder in self._below_root(folder):
                    if self._owner.get(subfolder) != name:
                        break
                    with contextlib.suppress(FileNotFoundError):
                        os.rmdir(subfolder)
                    del self._owner[subfolder]
            except OSError as error:
                if error.errno in _NOT_EMPTY:
                    continue
                raise WriteError(
                    f"{folder}: expected to remove iteration {name[1]}, got {error.strerror}. "
                    "Do not change the folders while the dump runs."
                ) from error
        log.info("%s: removed iteration %d of graph %d, %d bytes.", self._root, name[1], name[0], freed)
        return freed


def _in_order(names: Sequence[_Name]) -> list[_Name]:
    """Iterations of each graph in the order of their numbers: two threads may begin to write them in another one."""
    numbers: dict[int, list[int]] = {}
    for graph_id, number in names:
        numbers.setdefault(graph_id, []).append(number)
    ordered = {graph_id: iter(sorted(iterations)) for graph_id, iterations in numbers.items()}
    return [(graph_id, next(ordered[graph_id])) for graph_id, _ in names]


def names_of(record: TensorRecord) -> tuple[str, ...]:
    """Names that the file of a record has in one layout or another."""
    numbers = (record.task_id, record.stream_id, record.timestamp_us)
    in_bin = bin_file_name(record), stats_file_name(record)
    return data_file_name(record), npy_file_name(record), *in_bin, overflow_json_name(*numbers)


def _remove_files(folder: Path, names: set[str], spares: SpareFiles | None) -> int:
    """Remove the files of these names, and those that stand for them because a name was too long; bytes freed."""
    try:
        # By a handle: a link that takes the folder's place meanwhile would have files elsewhere removed.
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return 0
    try:
        present = os.listdir(handle)
        originals: dict[str, str] = {}
        if MAPPING_FILE in present:
            with contextlib.suppress(FormatError):
                originals = read_mapping(folder / MAPPING_FILE)
        freed = 0
        for name in present:
            if name in names or originals.get(name) in names:
                status = os.stat(name, dir_fd=handle, follow_symlinks=False)
                if spares is None or not spares.adopt(handle, name, status):
                    os.unlink(name, dir_fd=handle)
                # Writers do not count mapping.csv, so its bytes are not credited.
                freed += status.st_size if status.st_nlink == 1 and name != MAPPING_FILE else 0
        return freed
    finally:
        os.close(handle)

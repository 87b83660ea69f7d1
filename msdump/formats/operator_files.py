"""OperatorFileWriter: one file per operator, whatever is in it."""

from __future__ import annotations

import functools
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msdump.formats.direct import Buffer
from msdump.formats.dump_folder import DumpFolder, FileFolder, OpenFolders
from msdump.formats.writer import Counter, WriteCounts, finish_all
from msdump.records import TensorRecord

Chunks = Sequence[Buffer]
# Opens the folder of that path, which may have to be made.
OpenFolder = Callable[[Path], FileFolder]


class OperatorFileWriter(ABC):
    """Writer of one file per operator; subclasses say how it is called and what is in it.

    directory    folder that a record belongs to; made when its first record comes
    mode         of files; `dir_mode` of the folders it makes
    is_direct    write big files past the page cache, see `Folder`
    open_folder  another place for files than folders on the disk, which then decides on modes

    Records that follow one another and name the same operator share a file, until an input or output comes again.
    Arrays are not kept. Any thread may call it: files are written outside all locks.
    """

    writes_once = False
    takes_empty = False

    def __init__(
        self,
        directory: Callable[[TensorRecord], Path],
        mode: int = 0o400,
        dir_mode: int = 0o700,
        is_direct: bool = False,
        open_folder: OpenFolder | None = None,
    ) -> None:
        self._directory = directory
        self._mode = mode
        self._open_folder = open_folder or (lambda path: DumpFolder(path, mode, dir_mode, is_direct))
        self._iterations: dict[tuple[int, int], OpenFolders[FileFolder]] = {}
        self._lock = threading.Lock()
        self._counter = Counter()

    @abstractmethod
    def file_name(self, record: TensorRecord) -> str:
        """Name of the file of a record's operator; the first record of a file gives it."""

    @abstractmethod
    def content(self, records: Sequence[TensorRecord]) -> Chunks:
        """Bytes of the file of these records."""

    @property
    def counts(self) -> WriteCounts:
        return self._counter.total

    def write(self, records: Sequence[TensorRecord]) -> None:
        """Raises: WriteError, DtypeError, LayoutError; operators before the one that failed are on disk."""
        for operator in _operators(records):
            first = operator[0]
            chunks = self.content(operator)
            folder = self._folders_of(first).of(first)
            # Digits that stand for a name have no suffix.   Source: CANN, mapping.csv.
            name = folder.fitting_name(self.file_name(first), "")
            self._counter.file(folder.write(name, chunks, self._mode))

    def end_iteration(self, graph_id: int, iteration: int) -> None:
        with self._lock:
            folders = self._iterations.pop((graph_id, iteration), None)
        if folders is not None:
            folders.close()

    def close(self) -> None:
        finish_all([functools.partial(self.end_iteration, *place) for place in list(self._iterations)])

    def _folders_of(self, record: TensorRecord) -> OpenFolders[FileFolder]:
        with self._lock:
            name = (record.graph_id, record.iteration)
            found = self._iterations.get(name)
            if found is None:
                folders = OpenFolders(self._directory, self._open_folder)
                found = self._iterations[name] = folders
            return found


def _operators(records: Sequence[TensorRecord]) -> Iterator[list[TensorRecord]]:
    """Records in the groups that share a file."""
    group: list[TensorRecord] = []
    taken: set[tuple[str, int]] = set()
    for record in records:
        if group and (_operator(record) != _operator(group[0]) or (record.io, record.slot) in taken):
            yield group
            group, taken = [], set()
        group.append(record)
        taken.add((record.io, record.slot))
    if group:
        yield group


def _operator(record: TensorRecord) -> tuple[object, ...]:
    identity = (record.op_type, record.op_name, record.task_id, record.stream_id)
    return (*identity, record.graph_id, record.iteration, record.is_parameter)

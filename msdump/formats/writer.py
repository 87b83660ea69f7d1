"""Writers turn the records of one operator into files: their interface, and what they share.

OpenFolders keeps the folders of an iteration open, DumpFolder shortens names that are too long, and OperatorFileWriter
is the base of those that write one file per operator.
"""

from __future__ import annotations

import functools
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from msdump.errors import WriteError
from msdump.formats.atomic import Folder, make_dirs
from msdump.formats.direct import Buffer
from msdump.formats.paths.sync import NAME_MAX_BYTES
from msdump.formats.sidecars import append_mapping, mapped_name
from msdump.formats.spare_files import SpareFiles
from msdump.tensors.records import OUTPUT, TensorRecord


@dataclass(frozen=True, slots=True)
class WriteCounts:
    """Counts of what a writer has written.

    files          files whose bytes were written
    links          further names of such files
    bytes_named    size of everything under its names, links included
    bytes_written  bytes that went to disk
    """

    files: int = 0
    links: int = 0
    bytes_named: int = 0
    bytes_written: int = 0

    def __add__(self, other: WriteCounts) -> WriteCounts:
        return WriteCounts(
            self.files + other.files,
            self.links + other.links,
            self.bytes_named + other.bytes_named,
            self.bytes_written + other.bytes_written,
        )

    def __sub__(self, other: WriteCounts) -> WriteCounts:
        return WriteCounts(
            self.files - other.files,
            self.links - other.links,
            self.bytes_named - other.bytes_named,
            self.bytes_written - other.bytes_written,
        )


class Writer(Protocol):
    """Seam between dumpers and files. Any thread may call a writer, and records of several iterations may be under way.

    writes_once  True: the writer puts every distinct tensor of an iteration on disk once and needs no data for
                 records that repeat one; False: it needs the data of every record
    takes_empty  True: outputs without elements have something to say to this writer; False: they never come
    """

    writes_once: bool
    takes_empty: bool

    @property
    def counts(self) -> WriteCounts: ...

    def write(self, records: Sequence[TensorRecord]) -> None:
        """Put all records of one operator on disk; the arrays belong to the caller again when this returns.

        A record that repeats another may come only after the `write` that took the first one has returned.
        Raises: WriteError, and then nothing else is owed for these records.
        """
        ...

    def end_iteration(self, graph_id: int, iteration: int) -> None:
        """The iteration is over: finish its files and drop its tensors. Idempotent.

        Raises: WriteError, whose `unwritten` counts the records that `write` took and that are lost with it; what does
                not depend on the failure is finished all the same.
        """
        ...

    def close(self) -> None:
        """End all iterations and release what is open; idempotent.   Raises: WriteError, as `end_iteration`."""
        ...


def takers_of(record: TensorRecord, writers: Sequence[Writer]) -> Sequence[Writer]:
    """The writers that put something of a record on disk.

    Source: MindSpore, a tensor without elements has no file; the output of an operator still has its row of statistics.
    """
    if record.data.size:
        return writers
    if record.io != OUTPUT or record.is_parameter:
        return ()
    return [writer for writer in writers if writer.takes_empty]


def finish_all(ends: Iterable[Callable[[], None]]) -> None:
    """Call each of them, also after one that fails.

    Raises: WriteError of the first that failed, with the unwritten records of all; another error comes before it.
    """
    failures: list[WriteError] = []
    for end in ends:
        try:
            end()
        except WriteError as error:
            failures.append(error)
    if failures:
        raise WriteError(str(failures[0]), sum(error.unwritten for error in failures)) from failures[0]


class Counter:
    """WriteCounts that several threads add to."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = [0, 0, 0, 0]

    def add(self, files: int = 0, links: int = 0, bytes_named: int = 0, bytes_written: int = 0) -> None:
        counts = self._counts
        with self._lock:
            counts[0] += files
            counts[1] += links
            counts[2] += bytes_named
            counts[3] += bytes_written

    def file(self, size_bytes: int) -> None:
        """One more file of this size."""
        self.add(files=1, bytes_named=size_bytes, bytes_written=size_bytes)

    @property
    def total(self) -> WriteCounts:
        with self._lock:
            return WriteCounts(*self._counts)


# -- folders that are being filled -------------------------------------------------------------------------------------


class FileFolder(Protocol):
    """Destination of the files of a folder. Any thread may call it.

    `tensors_from` is the number of the first chunk that is the data of a tensor, as all that follow are; 0: none is.
    """

    def fitting_name(self, name: str, suffix: str) -> str: ...

    def write(
        self, name: str, chunks: Sequence[Buffer], mode: int, replace: bool = False, tensors_from: int = 0
    ) -> int: ...

    def close(self) -> None: ...


class LinkFolder(FileFolder, Protocol):
    """A folder whose files can be linked to further names.   path: for messages"""

    path: str

    def link(self, existing: str, name: str, existing_folder: Any = None) -> bool:
        """Give a file another name; False when its bytes had to be copied.   Raises: WriteError."""
        ...


F = TypeVar("F", bound=FileFolder)
Chunks = Sequence[Buffer]
# Opens the folder of that path, which may have to be made.
OpenFolder = Callable[[Path], FileFolder]


class LongNames:
    """Digits for the names of one folder that the filesystem would refuse as too long. Any thread may call it.

    is_taken   whether a name is another file's already
    append     adds (mapped, original) to the folder's mapping.csv
    """

    def __init__(self, is_taken: Callable[[str], bool], append: Callable[[str, str], None]) -> None:
        self._is_taken = is_taken
        self._append = append
        self._mapped: set[str] = set()
        self._lock = threading.Lock()

    def fitting(self, name: str, suffix: str) -> str:
        """The name itself, or digits that stand for it.

        The line in mapping.csv comes first: no file without its meaning.
        """
        if 4 * len(name) <= NAME_MAX_BYTES or len(name.encode()) <= NAME_MAX_BYTES:
            return name
        with self._lock:
            mapped = mapped_name(name, suffix, lambda taken: taken in self._mapped or self._is_taken(taken))
            self._append(mapped, name)
            self._mapped.add(mapped)
        return mapped


class DumpFolder(Folder):
    """An open folder that is made when it is missing. Any thread may call it.

    mode, dir_mode   of mapping.csv and of folders that are made
    """

    def __init__(
        self, path: Path, mode: int, dir_mode: int, is_direct: bool = False, spares: SpareFiles | None = None
    ) -> None:
        make_dirs(path, dir_mode)
        super().__init__(path, is_direct, spares)
        self._mode = mode
        self._names = LongNames(self.has, self._append_mapping)

    def fitting_name(self, name: str, suffix: str) -> str:
        """The name itself, or digits that stand for it when the filesystem would refuse it as too long."""
        return self._names.fitting(name, suffix)

    def _append_mapping(self, mapped: str, name: str) -> None:
        append_mapping(self, mapped, name, self._mode)


class OpenFolders(Generic[F]):
    """The folders of one iteration, by the path that `directory` names for a record. Any thread may call it.

    open_folder   opens the folder of a path
    """

    def __init__(self, directory: Callable[[TensorRecord], Path], open_folder: Callable[[Path], F]) -> None:
        self._directory = directory
        self._open_folder = open_folder
        self._folders: dict[Path, F] = {}
        self._lock = threading.Lock()

    def of(self, record: TensorRecord) -> F:
        path = self._directory(record)
        folder = self._folders.get(path)
        if folder is None:
            with self._lock:
                folder = self._folders.get(path)
                if folder is None:
                    folder = self._folders[path] = self._open_folder(path)
        return folder

    def close(self) -> None:
        folders = list(self._folders.values())
        self._folders.clear()
        finish_all([folder.close for folder in folders])


# -- one file per operator ---------------------------------------------------------------------------------------------


class OperatorFileWriter(ABC):
    """Writer of one file per operator; subclasses say how it is called and what is in it.

    directory    folder that a record belongs to; made when its first record comes
    mode         of files
    is_direct    write big files past the page cache, see `Folder`
    open_folder  opens a destination of files other than a folder on the disk, which then decides on modes
    tensors_from  of its files, as `FileFolder` has it

    Records that follow one another and name the same operator share a file, until an input or output comes again.
    Arrays are not kept. Any thread may call it: files are written outside all locks.
    """

    writes_once = False
    takes_empty = False
    tensors_from = 0

    def __init__(
        self,
        directory: Callable[[TensorRecord], Path],
        mode: int = 0o400,
        is_direct: bool = False,
        open_folder: OpenFolder | None = None,
    ) -> None:
        self._directory = directory
        self._mode = mode
        self._open_folder = open_folder or (lambda path: DumpFolder(path, mode, 0o700, is_direct))
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
            self._counter.file(folder.write(name, chunks, self._mode, False, self.tensors_from))

    def end_iteration(self, graph_id: int, iteration: int) -> None:
        with self._lock:
            folders = self._iterations.pop((graph_id, iteration), None)
        if folders is not None:
            folders.close()

    def close(self) -> None:
        finish_all([functools.partial(self.end_iteration, *step) for step in list(self._iterations)])

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

"""DumpFolder: a folder of a dump that is being filled, and the long names that were shortened in it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from msdump.formats.atomic import Folder, make_dirs
from msdump.formats.direct import Buffer
from msdump.formats.mapping_csv import append_mapping, mapped_name
from msdump.formats.paths.sync import NAME_MAX_BYTES
from msdump.formats.writer import finish_all
from msdump.records import TensorRecord


class FileFolder(Protocol):
    """Where files of one folder go. Any thread may call it."""

    def fitting_name(self, name: str, suffix: str) -> str: ...

    def write(self, name: str, chunks: Sequence[Buffer], mode: int) -> int: ...

    def close(self) -> None: ...


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

    def __init__(self, path: Path, mode: int, dir_mode: int, is_direct: bool = False) -> None:
        make_dirs(path, dir_mode)
        super().__init__(path, is_direct)
        self._mode = mode
        self._names = LongNames(self.has, self._append_mapping)

    def fitting_name(self, name: str, suffix: str) -> str:
        """The name itself, or digits that stand for it when the filesystem would refuse it as too long."""
        return self._names.fitting(name, suffix)

    def _append_mapping(self, mapped: str, name: str) -> None:
        append_mapping(self, mapped, name, self._mode)


F = TypeVar("F", bound=FileFolder)


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

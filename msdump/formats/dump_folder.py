"""DumpFolder: a folder of a dump that is being filled, and the long names that were shortened in it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

from msdump.formats.atomic import Folder, make_dirs
from msdump.formats.layout import MAPPING_FILE, NAME_MAX_BYTES
from msdump.formats.mapping_csv import append_mapping, mapped_name
from msdump.records import TensorRecord


class DumpFolder(Folder):
    """An open folder that is made when it is missing. Any thread may call it.

    mode, dir_mode   of mapping.csv and of folders that are made
    """

    def __init__(self, path: Path, mode: int, dir_mode: int, is_direct: bool = False) -> None:
        make_dirs(path, dir_mode)
        super().__init__(path, is_direct)
        self._mode = mode
        self._mapped: set[str] = set()
        self._lock = threading.Lock()

    def fitting_name(self, name: str, suffix: str) -> str:
        """The name itself, or digits that stand for it when the filesystem would refuse it as too long.

        The line in mapping.csv comes first: no file without its meaning.
        """
        if 4 * len(name) <= NAME_MAX_BYTES or len(name.encode()) <= NAME_MAX_BYTES:
            return name
        with self._lock:
            mapped = mapped_name(name, suffix, lambda taken: taken in self._mapped or self.has(taken))
            append_mapping(os.path.join(self.path, MAPPING_FILE), mapped, name, self._mode)
            self._mapped.add(mapped)
        return mapped


class OpenFolders:
    """The folders of one iteration, by the path that `directory` names for a record. Any thread may call it."""

    def __init__(
        self, directory: Callable[[TensorRecord], Path], mode: int, dir_mode: int, is_direct: bool = False
    ) -> None:
        self._directory = directory
        self._mode = mode
        self._dir_mode = dir_mode
        self._is_direct = is_direct
        self._folders: dict[Path, DumpFolder] = {}
        self._lock = threading.Lock()

    def of(self, record: TensorRecord) -> DumpFolder:
        path = self._directory(record)
        folder = self._folders.get(path)
        if folder is None:
            with self._lock:
                folder = self._folders.get(path)
                if folder is None:
                    folder = self._folders[path] = DumpFolder(path, self._mode, self._dir_mode, self._is_direct)
        return folder

    def close(self) -> None:
        for folder in self._folders.values():
            folder.close()
        self._folders.clear()

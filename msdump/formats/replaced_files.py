"""Files that are written anew while their iteration goes on, such as lists that grow."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from msdump.formats.atomic import Folder, make_dirs
from msdump.formats.writer import Counter, WriteCounts
from msdump.tensors.records import TensorRecord


class ReplacedFiles:
    """Writer of records whose data, (size_bytes,) uint8, are the bytes of the file that `op_name` names.

    directory    folder that a record belongs to; made when it is missing
    mode         of files; `dir_mode` of folders

    A file of that name gives way, and a reader finds the old one or the new one, each whole. One that an iteration
    writes again counts once, with its last size. Any thread may call it, but one at a time for each file.
    """

    writes_once = False
    takes_empty = True

    def __init__(self, directory: Callable[[TensorRecord], Path], mode: int, dir_mode: int) -> None:
        self._directory = directory
        self._mode = mode
        self._dir_mode = dir_mode
        self._counter = Counter()
        # Of each open iteration: the size of each file.
        self._sizes: dict[tuple[int, int], dict[str, int]] = {}
        self._lock = threading.Lock()

    @property
    def counts(self) -> WriteCounts:
        return self._counter.total

    def write(self, records: Sequence[TensorRecord]) -> None:
        """Raises: WriteError; the files before the one that failed are written, and that one is as it was."""
        for record in records:
            path = self._directory(record)
            make_dirs(path, self._dir_mode)
            with Folder(path) as folder:
                size = folder.write(record.op_name, [record.data.data], self._mode, replace=True)
            with self._lock:
                sizes = self._sizes.setdefault((record.graph_id, record.iteration), {})
                before = sizes.get(record.op_name)
                sizes[record.op_name] = size
            more = size - (before or 0)
            self._counter.add(files=before is None, bytes_named=more, bytes_written=more)

    def end_iteration(self, graph_id: int, iteration: int) -> None:
        """What comes for this iteration after that counts anew."""
        with self._lock:
            self._sizes.pop((graph_id, iteration), None)

    def close(self) -> None:
        self._sizes.clear()

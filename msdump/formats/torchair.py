"""Files of TorchAir's eager data dump: one .npy file for each value, and the list of those that no file can hold."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from msdump.errors import DtypeError, FormatError
from msdump.formats.direct import Buffer
from msdump.formats.npy import NpyWriter, mark_of, numpy_chunks, numpy_header
from msdump.formats.paths.torchair import SKIPPED_FILE, TorchairFileName, format_torchair_name
from msdump.formats.writer import LinkFolder, WriteCounts, finish_all
from msdump.tensors.records import TensorRecord


class Unshown(np.ndarray[tuple[int, ...], np.dtype[np.uint8]]):
    """Stands for a value that no file can hold: an array of no elements.   `reason`: why."""

    reason = ""


def unshown(reason: str) -> Unshown:
    array = np.empty(0, np.uint8).view(Unshown)
    array.reason = reason
    return array


class TorchairWriter:
    """Writer of the bytes that `numpy.save` gives, where TorchAir puts them.

    directory   folder that a record belongs to; made when its first record comes
    name        the pieces of its file's name
    mode        of files; `dir_mode` of the folders it makes
    on_skip     called for each value that has no file

    A record holds what numpy can show of a value: numbers, or text, whose dtype is "string". One of a dtype that numpy
    does not have names it, and its data are widened already.
    """

    writes_once = True
    takes_empty = True

    def __init__(
        self,
        directory: Callable[[TensorRecord], Path],
        name: Callable[[TensorRecord], TorchairFileName],
        mode: int,
        dir_mode: int,
        on_skip: Callable[[], None] = lambda: None,
        open_folder: Callable[[Path], LinkFolder] | None = None,
    ) -> None:
        self._name = name
        self._files = NpyWriter(directory, mode, dir_mode, content=_content, open_folder=open_folder)
        # By iteration: a record of it, which names its folder, and lines.
        self._skipped: dict[tuple[int, int], tuple[TensorRecord, list[str]]] = {}
        self._lock = threading.Lock()
        self._on_skip = on_skip

    @property
    def counts(self) -> WriteCounts:
        return self._files.counts

    def write(self, records: Sequence[TensorRecord]) -> None:
        """Raises: WriteError; records before the one that failed are on disk, or in the list."""
        for record in records:
            name = self._name(record)
            try:
                text = format_torchair_name(name)
            except FormatError as error:
                self._skip(record, f"{name.node}-{name.target}.{name.io}.{name.slot}: {error}")
                continue
            if isinstance(record.data, Unshown):
                self._skip(record, f"{text}: {record.data.reason}")
                continue
            try:
                self._files.write_as(text, record)
            except (DtypeError, MemoryError) as error:
                self._skip(record, f"{text}: {error or 'there is not enough memory for a copy'}")

    def end_iteration(self, graph_id: int, iteration: int) -> None:
        with self._lock:
            record, lines = self._skipped.pop((graph_id, iteration), (None, []))
        try:
            if record is not None:
                text = "".join(line + "\n" for line in lines)
                self._files.write_beside(record, SKIPPED_FILE, text.encode(errors="backslashreplace"))
        finally:
            self._files.end_iteration(graph_id, iteration)

    def close(self) -> None:
        ends = [functools.partial(self.end_iteration, *step) for step in list(self._skipped)]
        finish_all([*ends, self._files.close])

    def _skip(self, record: TensorRecord, line: str) -> None:
        with self._lock:
            self._skipped.setdefault((record.graph_id, record.iteration), (record, []))[1].append(line)
        self._on_skip()


def torchair_size(record: TensorRecord, is_repeat: bool = False) -> int:
    """Bytes that a record takes at most: in its file, or in the list of those that have none."""
    if isinstance(record.data, Unshown):
        return _LINE_BYTES + 4 * len(record.op_name) + 4 * len(record.data.reason)
    return (
        0
        if is_repeat
        else record.size_bytes + len(numpy_header(record.data.dtype, record.shape, False, _original(record)))
    )


# The rest of a line beside the names and the reason.
_LINE_BYTES = 1024


def _original(record: TensorRecord) -> str | None:
    """The dtype before the data were widened."""
    return record.dtype if record.dtype != "string" and mark_of(record.dtype) else None


def _content(record: TensorRecord) -> Sequence[Buffer]:
    return numpy_chunks(record.data, _original(record))

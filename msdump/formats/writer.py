"""Writer: whoever turns the records of one operator into files."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from msdump.errors import WriteError
from msdump.records import TensorRecord


@dataclass(frozen=True, slots=True)
class WriteCounts:
    """What a writer has left on disk so far.

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
        """No record of this iteration comes any more: finish it and forget its tensors. Idempotent.

        Raises: WriteError, whose `unwritten` counts the records that `write` took and that are lost with it; what does
                not depend on the failure is finished all the same.
        """
        ...

    def close(self) -> None:
        """End all iterations and release what is open; idempotent.   Raises: WriteError, as `end_iteration`."""
        ...


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

"""Writer: whoever turns the records of one operator into files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

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
    """Seam between dumpers and files. One thread at a time may call a writer."""

    @property
    def counts(self) -> WriteCounts: ...

    def write(self, records: Sequence[TensorRecord]) -> None:
        """Put all records of one operator on disk; the arrays belong to the caller again when this returns.

        Raises: WriteError, and then nothing else is owed for these records.
        """
        ...

    def close(self) -> None:
        """Release what is open; idempotent. Every file is whole before this, too."""
        ...

"""A writer that keeps records in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from msdump.errors import WriteError
from msdump.formats.writer import WriteCounts
from msdump.tensors.records import TensorRecord


class MemoryWriter:
    """Keeps copies of the records; raises from the call number `fails_at` on."""

    writes_once = False
    takes_empty = False

    def __init__(self, fails_at: int | None = None) -> None:
        self.batches: list[list[TensorRecord]] = []
        self.ended: list[tuple[int, int]] = []
        self.is_closed = False
        self._fails_at = fails_at

    @property
    def counts(self) -> WriteCounts:
        sizes = [record.size_bytes for record in self.records]
        return WriteCounts(len(sizes), 0, sum(sizes), sum(sizes))

    @property
    def records(self) -> list[TensorRecord]:
        return [record for batch in self.batches for record in batch]

    def write(self, records: Sequence[TensorRecord]) -> None:
        if self._fails_at is not None and len(self.batches) >= self._fails_at:
            raise WriteError("/nowhere: expected to write, got a full disk.")
        self.batches.append([replace(record, data=record.data.copy()) for record in records])

    def end_iteration(self, graph_id: int, iteration: int) -> None:
        self.ended.append((graph_id, iteration))

    def close(self) -> None:
        self.is_closed = True

"""Batches: records that are worth a hand-over to another thread."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from msdump.records import TensorRecord

_BATCH_BYTES = 4 * 2**20


def batches(records: Sequence[TensorRecord]) -> Iterator[list[TensorRecord]]:
    """Groups of records; those that fill the same memory stay together, so that it is looked at once."""
    by_memory: dict[Hashable, list[TensorRecord]] = {}
    for number, record in enumerate(records):
        by_memory.setdefault(record.filled_memory or number, []).append(record)
    batch: list[TensorRecord] = []
    size = 0
    for group in by_memory.values():
        batch += group
        size += sum(record.size_bytes for record in group)
        if size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch

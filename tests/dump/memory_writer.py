"""A writer that keeps records in memory, and plans without a configuration file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from msdump.config.plan import DumpPlan
from msdump.config.ranges import parse_ranges
from msdump.errors import WriteError
from msdump.formats.writer import WriteCounts
from msdump.records import TensorRecord


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


def make_plan(**changes: Any) -> DumpPlan:
    """A plan that dumps everything in every iteration, but for the changes."""
    plan = DumpPlan(
        engine="async",
        path=Path("/nowhere"),
        net_name="Net",
        iterations=parse_ranges("all"),
        saves_tensor=True,
        saves_statistic=False,
        dumps_input=True,
        dumps_output=True,
        selectors=None,
        dump_mode=0,
        trans_flag=True,
        file_format="npy",
        op_debug_mode=0,
        overflow_number=0,
        statistic_categories=None,
        device_target="Ascend",
        device_id=0,
        rank_id=0,
        is_device_enabled=True,
        config_text=b"{}",
        config_path=Path("/nowhere/dump.json"),
        is_strict=False,
    )
    return replace(plan, **changes)

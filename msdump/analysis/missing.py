"""What dumps that are not complete lack: which ranks a question is about, and how answers say it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msdump.formats.dump_dir import DumpDir
from msdump.formats.selection import StepSelection, is_selected
from msdump.formats.sidecars import Lost
from msdump.tables.messages import counted, message


def lost_of(dump: DumpDir, selection: StepSelection) -> dict[int, Lost]:
    """What the selected ranks have lost, in their order."""
    return {rank: lost for rank, lost in sorted(dump.lost.items()) if is_selected(rank, selection.rank)}


def lost_lines(lost: Mapping[int, Lost]) -> list[str]:
    """For people."""
    return [
        message(
            "rank {rank}: the dump is not complete, {tensors} lost: {reason}",
            rank=rank, tensors=counted(one.tensors, "{count} tensor", "{count} tensors"), reason=one.reason,
        )
        for rank, one in lost.items()
    ]  # fmt: skip


OUTSIDE = message("code outside of compiled regions is not in this dump")


def lost_values(lost: Mapping[int, Lost]) -> list[dict[str, Any]]:
    """For JSON."""
    return [{"rank": rank, "tensors": one.tensors, "reason": one.reason} for rank, one in lost.items()]

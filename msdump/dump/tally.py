"""Tally: what a dump has done so far, counted where it happens and read by the report at the end."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Tally:
    """Counts of one session. Times in seconds; `lost` counts records that were asked for and not written."""

    operators_seen: int = 0
    operators_selected: int = 0
    tensors_written: int = 0
    iterations_run: int = 0
    iterations_dumped: int = 0
    seconds: float = 0.0
    lost: int = 0
    error: str = ""
    skipped: Counter[str] = field(default_factory=Counter)
    names_seen: set[str] = field(default_factory=set)

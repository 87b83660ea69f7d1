"""Sets of ranks as short texts, so that a row of a table does not grow with the job: "0-7", "3,17", "0-56/8"."""

from __future__ import annotations

import functools
from collections.abc import Sequence


@functools.lru_cache(maxsize=4096)
def format_ranks(ranks: tuple[int, ...]) -> str:
    """Text of ranks that ascend.   Edges: equal sets have equal texts; "" for none"""
    pieces = []
    start = 0
    while start < len(ranks):
        end = start + 1
        step = ranks[end] - ranks[start] if end < len(ranks) else 0
        while end + 1 < len(ranks) and ranks[end + 1] - ranks[end] == step:
            end += 1
        if end - start >= 2 or (end < len(ranks) and step == 1):
            pieces.append(f"{ranks[start]}-{ranks[end]}" + (f"/{step}" if step > 1 else ""))
            start = end + 1
        else:
            pieces.append(str(ranks[start]))
            start += 1
    return ",".join(pieces)


def parse_ranks(text: str) -> list[int]:
    """Inverse of `format_ranks`.   Raises: ValueError."""
    ranks: list[int] = []
    for piece in filter(None, text.split(",")):
        ends, _, step = piece.partition("/")
        first, _, last = ends.partition("-")
        ranks += range(int(first), int(last or first) + 1, int(step or 1))
    return ranks


def shown_ranks(ranks: Sequence[int], most: int = 16) -> str:
    """For people: all of a few, else the short text."""
    return ", ".join(map(str, ranks)) if len(ranks) <= most else format_ranks(tuple(ranks))

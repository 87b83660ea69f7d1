"""Small pictures of numbers in block characters, for a terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msdump.statistics.exponents import ExponentHistogram

_BLOCKS = "▁▂▃▄▅▆▇█"
BINS = 20


def exponent_bars(histogram: ExponentHistogram) -> str:
    """`2^-9 ▁▂▅█▂ 2^0`: how many elements lie at each power of two, of both signs, on a scale of its own.

    Edges:  "" where every element is 0, NaN or Inf. More exponents than `BINS` share bars, as many to each.
    """
    counts = [left + right for left, right in zip(histogram.positive, histogram.negative, strict=True)]
    if not counts:
        return ""
    width = math.ceil(len(counts) / BINS)
    bars = [sum(counts[start : start + width]) for start in range(0, len(counts), width)]
    largest = max(bars)
    # A block that is not empty is visible, however small.
    text = "".join(" " if not bar else _BLOCKS[math.ceil(bar * len(_BLOCKS) / largest) - 1] for bar in bars)
    return f"2^{histogram.first} {text} 2^{histogram.first + len(bars) * width}"


def sparkline(values: Sequence[float | None]) -> str:
    """A bar for each number, from the least to the largest of them.

    Edges:  "!" for NaN and Inf, " " for None; equal numbers are bars of half the height.
    """
    finite = [value for value in values if value is not None and math.isfinite(value)]
    least, largest = (min(finite), max(finite)) if finite else (0.0, 0.0)
    return "".join(_bar(value, least, largest) for value in values)


def _bar(value: float | None, least: float, largest: float) -> str:
    if value is None:
        return " "
    if not math.isfinite(value):
        return "!"
    # Halves first, as the distance of two numbers may be too large for a float.
    span = largest / 2 - least / 2
    share = (value / 2 - least / 2) / span if span else 0.5
    return _BLOCKS[min(len(_BLOCKS) - 1, int(share * len(_BLOCKS)))]


def bar(value: float | None, largest: float, width: int) -> str:
    """A bar of at most `width` blocks for |value|, as a share of `largest`.   Edges: "!" for NaN and Inf."""
    if value is None:
        return ""
    if not math.isfinite(value):
        return "!"
    eighths: int = round(8 * width * (abs(value) / largest)) if largest else 0
    whole, rest = divmod(eighths, 8)
    return "█" * whole + " ▏▎▍▌▋▊▉"[rest].strip()

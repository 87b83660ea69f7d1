"""Spikes: values far outside a series' recent values, such as a loss or the norm of a gradient."""

from __future__ import annotations

import math
from collections import deque

_FEWEST, _MOST = 16, 200
# Of a normal distribution: what turns a median deviation into a standard deviation.
_SIGMA = 1.4826
# Numbers that hardly move have no spread to speak of: this part of their size is no spike.
_SMALLEST_PART = 1e-3


class SpikeRule:
    """One series of numbers.   limit: standard deviations, estimated from the median deviation, that make a spike."""

    def __init__(self, name: str, limit: float) -> None:
        self._name = name
        self._limit = limit
        self._last: deque[float] = deque(maxlen=_MOST)

    def add(self, value: float) -> tuple[str, str]:
        """Take the next number.   Returns: name of the trigger and what happened; ("", "") where nothing did."""
        if not math.isfinite(value):
            return "nonfinite", f"{self._name} is {value}"
        score, centre = self._score(value)
        # A spike is no measure for what comes later.
        if score > self._limit:
            return "spike", f"{self._name} is {value:.6g}, {score:.3g} standard deviations above {centre:.6g}"
        self._last.append(value)
        return "", ""

    def _score(self, value: float) -> tuple[float, float]:
        if len(self._last) < _FEWEST:
            return 0.0, 0.0
        centre = _median(list(self._last))
        spread = _SIGMA * _median([abs(number - centre) for number in self._last])
        return (value - centre) / max(spread, _SMALLEST_PART * abs(centre), 1e-300), centre


def _median(values: list[float]) -> float:
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2

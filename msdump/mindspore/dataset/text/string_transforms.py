"""Transforms of strings and of lists of tokens."""

from __future__ import annotations

from typing import Any

import numpy as np

from msdump.errors import ConfigError
from msdump.mindspore.dataset import checks
from msdump.tensors.arrays import Array


class TruncateSequencePair:
    """Two lists cut from their ends, always the longer one (the second of two equal ones), to `max_length` in all."""

    def __init__(self, max_length: int) -> None:
        self._max_length = checks.whole_number("TruncateSequencePair(max_length)", max_length, 0)

    def __call__(self, first: Any, second: Any) -> tuple[Array, Array]:
        one, other = np.asarray(first), np.asarray(second)
        if one.ndim != 1 or other.ndim != 1:
            raise ConfigError(f"TruncateSequencePair: expected two 1-d values, got {one.shape} and {other.shape}.")
        left, right = len(one), len(other)
        while left + right > self._max_length:
            left, right = (left - 1, right) if left > right else (left, right - 1)
        return one[:left], other[:right]

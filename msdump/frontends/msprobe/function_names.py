"""Names of the functions that levels L1 and mix record, by the prefix of their records.

Source: mindstudio-probe 26.2, the list of functions that it wraps, and two lists of its risk levels.
"""

from __future__ import annotations

import functools
from pathlib import Path

FUNCTIONAL, TENSOR_METHODS, TORCH, DISTRIBUTED = "Functional", "Tensor", "Torch", "Distributed"
# By risk level: functions that compute most of a model, and functions that only move or make data.
CORE, MOVING = "core", "moving"


def names_of(prefix: str) -> frozenset[str]:
    return _names()[prefix]


@functools.cache
def _names() -> dict[str, frozenset[str]]:
    groups: dict[str, frozenset[str]] = {}
    for block in (Path(__file__).parent / "function_names.txt").read_text(encoding="utf-8").split("[")[1:]:
        prefix, _, names = block.partition("]")
        groups[prefix] = frozenset(names.split())
    return groups

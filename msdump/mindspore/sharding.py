"""`shard`: strategies that cut tensors over devices, which nothing here does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def _is_whole(strategy: Any) -> bool:
    """Does a strategy cut nothing?"""
    if isinstance(strategy, tuple | list):
        return all(map(_is_whole, strategy))
    return strategy is None or (isinstance(strategy, int) and strategy in (1, -1))


def shard(fn: Any, in_strategy: Any, out_strategy: Any = None, parameter_plan: Mapping[str, Any] | None = None) -> Any:
    """`fn`, when the strategies cut nothing.

    Raises: TypeError for anything but a function or a cell; ValueError for a strategy that cuts.
    """
    if not callable(fn):
        raise TypeError(f"For 'Shard', the 'fn' should be a Cell or function, but got {type(fn).__name__}.")
    for strategy in (in_strategy, out_strategy, *(parameter_plan or {}).values()):
        if not _is_whole(strategy):
            raise ValueError(f"shard: expected a strategy of ones, got {strategy}. msdump cuts no tensors.")
    return fn

"""Decorators that say how a graph is compiled, which changes nothing of what it computes: accepted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msdump.mindspore.names import publish


def lazy_inline(fn: Any = None, attrs: Any = None, policy: str | None = None) -> Any:
    """Decorator of a cell's `__init__`, with or without arguments.   Raises: ValueError for an unknown policy."""
    if policy not in (None, "front"):
        raise ValueError(f"For 'lazy_inline', 'policy' must be None or 'front', but got {policy!r}.")
    return fn if fn is not None else _same


def no_inline(fn: Any = None) -> Any:
    """Decorator of a function, with or without arguments."""
    return fn if fn is not None else _same


def recompute(block: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """`block(*args, **kwargs)`: nothing is computed twice here."""
    return block(*args, **kwargs)


def _same(fn: Any) -> Any:
    return fn


publish(__name__)

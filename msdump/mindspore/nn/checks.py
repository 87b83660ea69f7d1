"""Checks of arguments that layers share."""

from __future__ import annotations

from typing import Any


def check_whole(where: str, name: str, value: Any) -> None:
    """Raises: TypeError for what is no int, ValueError for one below 1."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"For '{where}', the '{name}' must be int, but got {type(value).__name__} {value!r}.")
    if value < 1:
        raise ValueError(f"For '{where}', the '{name}' must be int and must > 0, but got {value!r}.")


def check_sizes(where: str, **sizes: Any) -> None:
    """Raises: as `check_whole`, for each size, and for each of a tuple or list of sizes."""
    for name, size in sizes.items():
        for each in size if isinstance(size, tuple | list) else (size,):
            check_whole(where, name, each)

"""Hooks: the check of what a script registers, and the handle that it gets for it."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any


def check_hook(hook_fn: Any, where: str) -> None:
    """Raises: TypeError for anything but a Python function or method."""
    if not isinstance(hook_fn, FunctionType | MethodType):
        raise TypeError(
            f"When using '{where}(hook_fn)', the type of 'hook_fn' must be python function, but got {type(hook_fn)}."
        )


class HookHandle:
    """What registering a hook returns.   `remove()` takes the hook away; again, it does nothing."""

    def __init__(self, hooks: list[Any], entry: Any, on_change: Callable[[], None] | None = None) -> None:
        self._hooks, self._entry, self._on_change = hooks, entry, on_change
        hooks.append(entry)
        if on_change is not None:
            on_change()

    def remove(self) -> None:
        before = len(self._hooks)
        # By identity: one function may be registered twice.
        self._hooks[:] = [entry for entry in self._hooks if entry is not self._entry]
        if self._on_change is not None and len(self._hooks) != before:
            self._on_change()

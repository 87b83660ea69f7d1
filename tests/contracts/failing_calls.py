"""System calls of this process that fail when their turn comes."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Any

import pytest

CALLS = ("open", "write", "writev", "pwritev", "close", "link", "rename", "unlink", "mkdir", "ftruncate", "fchmod")


class FailingCalls:
    """From `start` on the call number `fails_at` of those above fails with `number`, and so does each later one of its
    name until `stop`; a file is closed all the same, as the system does it.

    has_failed   whether the turn came
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fails_at: int, number: int = errno.EIO) -> None:
        self.has_failed = False
        self._fails_at = fails_at
        self._error = number
        self._calls = 0
        self._broken = ""
        self._is_on = False
        for name in CALLS:
            monkeypatch.setattr(os, name, self._failing(name, getattr(os, name)))

    def start(self) -> None:
        self._is_on = True

    def stop(self) -> None:
        self._is_on = False

    def _failing(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def failing(*args: Any, **options: Any) -> Any:
            if not self._is_on:
                return call(*args, **options)
            if self._calls == self._fails_at:
                self._broken = name
            self._calls += 1
            if name != self._broken:
                return call(*args, **options)
            self.has_failed = True
            if name == "close":
                call(*args, **options)
            raise OSError(self._error, os.strerror(self._error))

        return failing

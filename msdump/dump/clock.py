"""Clock: the time stamps of a dump."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Clock:
    """Microseconds since the epoch, strictly increasing, so that no two files of a process share a stamp.

    Thread safe. `now_us` is injected by tests.
    """

    def __init__(self, now_us: Callable[[], int] = lambda: time.time_ns() // 1000) -> None:
        self._now_us = now_us
        self._last = 0
        self._lock = threading.Lock()

    def next_us(self) -> int:
        with self._lock:
            self._last = max(self._now_us(), self._last + 1)
            return self._last

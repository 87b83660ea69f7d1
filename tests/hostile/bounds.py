"""Time and memory that one input may cost."""

from __future__ import annotations

import resource
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SECONDS = 20
_BYTES = 1 << 30


class TooLongError(BaseException):
    """No reader may catch it."""


@contextmanager
def bounded() -> Iterator[None]:
    """What is done inside may take 20 seconds and 1 GiB, which no small input needs on any machine.

    Raises: TooLongError; MemoryError by the system.
    """
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("signals come to the main thread alone")

    def ring(*_: object) -> None:
        raise TooLongError(f"the input takes longer than {SECONDS} seconds")

    old_handler = signal.signal(signal.SIGALRM, ring)
    old_limits = resource.getrlimit(resource.RLIMIT_AS)
    in_use = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    signal.alarm(SECONDS)
    resource.setrlimit(resource.RLIMIT_AS, (in_use + _BYTES, old_limits[1]))
    try:
        yield
    finally:
        signal.alarm(0)
        resource.setrlimit(resource.RLIMIT_AS, old_limits)
        signal.signal(signal.SIGALRM, old_handler)

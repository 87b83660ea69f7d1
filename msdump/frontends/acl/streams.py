"""Streams and events: what a script starts and does not wait for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait


class Stream:
    """A queue of work, done by one thread in the order of the calls. The first error waits for `synchronize`."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._pending: list[Future[None]] = []
        self._lock = threading.Lock()

    def submit(self, work: Callable[[], None]) -> None:
        """Do it after everything that was submitted before."""
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(1, "acl-stream")
            self._pending = [future for future in self._pending if not future.done() or future.exception()]
            self._pending.append(self._pool.submit(work))

    def drain(self, timeout: float | None = None) -> bool:
        """Wait; errors stay for `synchronize`.   Returns: False when the time was over first. Seconds."""
        with self._lock:
            pending = list(self._pending)
        return not wait(pending, timeout).not_done

    def synchronize(self) -> None:
        """Wait for all work.   Raises: what the first piece of it raised."""
        self.drain()
        with self._lock:
            done = [future for future in self._pending if future.done()]
            self._pending = [future for future in self._pending if not future.done()]
        for future in done:
            future.result()

    def close(self) -> None:
        """Finish what was submitted and end the thread."""
        self.drain()
        if self._pool is not None:
            self._pool.shutdown()


class Event:
    """A moment in a stream.   `recorded_at`: seconds, None = not reached."""

    def __init__(self) -> None:
        self.recorded_at: float | None = None
        self._reached = threading.Event()
        self._reached.set()  # an event that nobody records holds nobody up

    def arm(self) -> None:
        """Called when a stream is told to record it."""
        self._reached.clear()

    def reach(self) -> None:
        """Called by the stream."""
        self.recorded_at = time.perf_counter()
        self._reached.set()

    def wait(self) -> None:
        self._reached.wait()

    @property
    def is_reached(self) -> bool:
        return self._reached.is_set()

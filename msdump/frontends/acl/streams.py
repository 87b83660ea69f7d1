"""Streams and events: asynchronous work of a script; and the threads that run callbacks of streams."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

from msdump.frontends.acl import codes
from msdump.frontends.acl.calls import CallError


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
        self._reached.set()  # an event that is never recorded delays nothing

    def arm(self) -> None:
        """Called when it is recorded on a stream."""
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


@dataclass(slots=True, eq=False)
class PendingCallback:
    """One callback on its way to its thread.   `done` is set when it has run, or never will."""

    function: Callable[[Any], object]
    argument: object
    done: threading.Event


class Subscriptions:
    """Which thread runs the callbacks of which stream."""

    def __init__(self) -> None:
        self._thread_by_stream: dict[Stream, int] = {}
        self._reports_by_thread: dict[int, queue.SimpleQueue[PendingCallback]] = {}
        self._lock = threading.Lock()

    def add(self, thread_id: int, stream: Stream) -> None:
        """Raises: CallError 107011 for a stream that has a thread already."""
        with self._lock:
            if stream in self._thread_by_stream:
                raise CallError(codes.RT_STREAM_SUBSCRIBE, "stream: expected one that no thread is subscribed to")
            self._thread_by_stream[stream] = thread_id
            self._reports_by_thread.setdefault(thread_id, queue.SimpleQueue())

    def remove(self, thread_id: int, stream: Stream) -> None:
        """Raises: CallError 107011 for a stream that the thread is not subscribed to."""
        with self._lock:
            if self._thread_by_stream.get(stream) != thread_id:
                raise CallError(codes.RT_STREAM_SUBSCRIBE, f"stream: expected one that thread {thread_id} subscribed")
            del self._thread_by_stream[stream]
            if thread_id not in self._thread_by_stream.values():
                waiting = self._reports_by_thread.pop(thread_id)
                while not waiting.empty():
                    waiting.get().done.set()

    def deliver(self, report: PendingCallback, reports: queue.SimpleQueue[PendingCallback]) -> None:
        """Let a callback wait for its thread, or return immediately when no thread takes callbacks any more."""
        with self._lock:
            if any(reports is report for report in self._reports_by_thread.values()):
                reports.put(report)
            else:
                report.done.set()

    def reports(self, thread_id: int) -> queue.SimpleQueue[PendingCallback] | None:
        """What waits for a thread; None for one that is not subscribed."""
        with self._lock:
            return self._reports_by_thread.get(thread_id)

    def reports_of(self, stream: Stream) -> queue.SimpleQueue[PendingCallback]:
        """What waits for the thread of a stream.   Raises: CallError 107015 for a stream without one."""
        with self._lock:
            thread_id = self._thread_by_stream.get(stream)
            if thread_id is None:
                raise CallError(codes.RT_STREAM_NO_CB_REG, "stream: call acl.rt.subscribe_report for it first")
            return self._reports_by_thread[thread_id]

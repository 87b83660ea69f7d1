"""Subscriptions: which thread of a script runs the callbacks of which stream, and what waits for it."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from msdump.frontends.acl import codes
from msdump.frontends.acl.calls import CallError
from msdump.frontends.acl.streams import Stream


@dataclass(slots=True, eq=False)
class Report:
    """One callback on its way to its thread.   `done` is set when it has run, or never will."""

    function: Callable[[Any], Any]
    argument: Any
    done: threading.Event


class Subscriptions:
    """Which thread runs the callbacks of which stream."""

    def __init__(self) -> None:
        self._thread_by_stream: dict[Stream, int] = {}
        self._reports_by_thread: dict[int, queue.SimpleQueue[Report]] = {}
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

    def reports(self, thread_id: int) -> queue.SimpleQueue[Report] | None:
        """What waits for a thread; None for one that is not subscribed."""
        with self._lock:
            return self._reports_by_thread.get(thread_id)

    def reports_of(self, stream: Stream) -> queue.SimpleQueue[Report]:
        """What waits for the thread of a stream.   Raises: CallError 107015 for a stream without one."""
        with self._lock:
            thread_id = self._thread_by_stream.get(stream)
            if thread_id is None:
                raise CallError(codes.RT_STREAM_NO_CB_REG, "stream: call acl.rt.subscribe_report for it first")
            return self._reports_by_thread[thread_id]

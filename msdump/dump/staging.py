"""Staging: copies of values that an operator may overwrite while they wait for a writer."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from msdump.events import Array
from msdump.stats import MeasuredArray

_PAGE = 4096
# From here on a copy has a buffer of whole pages that is used again: fresh pages cost more than the copy itself.
_PAGED_BYTES = 64 << 10


class Staged:
    """One copy, or one array that needs none. It lives as long as somebody refers to it; then its memory belongs to
    Staging again.

    Owners are counted by the interpreter and by nobody else, so that an exception at any moment, Ctrl-C included,
    can neither lose memory nor free it too early.
    """

    __slots__ = ("__weakref__", "_buffer", "_staging", "array")

    def __init__(self, staging: Staging, array: Array, buffer: Array | None) -> None:
        self._staging = staging
        self._buffer = buffer
        self.array = array

    @property
    def size_bytes(self) -> int:
        """Bytes of the budget that the copy takes."""
        return staged_size(self.array) if self._buffer is None else int(self._buffer.nbytes)

    def __del__(self) -> None:
        if self._buffer is None:
            self._staging._let_go(self.size_bytes)
        else:
            self._staging._take_back(self._buffer)


class Staging:
    """Copies within a budget. A value that is still waiting is copied once however many records name it.

    `reserve` and `stage` are called by the one thread that runs the graph; copies die in any thread.
    """

    def __init__(self, budget_bytes: int) -> None:
        self._budget = budget_bytes
        # Entered as it is: a Condition's own `with` runs Python, where Ctrl-C may come between the lock and the block.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._waiting: WeakValueDictionary[Hashable, Staged] = WeakValueDictionary()
        self._free: dict[int, list[Array]] = {}
        self._free_bytes = 0
        self._held = 0
        self.peak_bytes = 0

    @property
    def held_bytes(self) -> int:
        """Bytes of copies that are alive."""
        return self._held

    def reserve(self, size_bytes: int, own_bytes: int = 0) -> None:
        """Wait until `size_bytes` more fit into the budget.

        own_bytes   of copies that the caller holds itself: no waiting would free them
        What is larger than the whole budget goes through alone, when nothing else waits.
        """
        with self._lock:
            self._changed.wait_for(lambda: self._held <= own_bytes or self._held + size_bytes <= self._budget)

    def stage(self, name: Hashable, array: Array, file_offset: int = 0) -> Staged:
        """A copy of the value of that name: the one that is still alive, or a new one.

        file_offset   where the bytes will begin in their file: pages of memory are made to coincide with pages of
                      the file, so that the disk can fetch them as they lie
        """
        if isinstance(array, MeasuredArray):
            return self.hold(name, array)  # nothing to copy: its numbers are its own
        known = self._waiting.get(name)
        if known is not None:
            return known
        buffer = self._buffer(staged_size(array))
        first = file_offset % _PAGE if buffer.size >= _PAGED_BYTES else 0
        view = buffer[first : first + array.nbytes].view(array.dtype).reshape(array.shape)
        # From here on the buffer has an owner that gives it back.
        staged = Staged(self, view, buffer)
        np.copyto(view, array)
        self._waiting[name] = staged
        return staged

    def hold(self, name: Hashable, array: Array) -> Staged:
        """The value of that name itself: nobody will write it, but it takes memory while it waits."""
        known = self._waiting.get(name)
        if known is not None:
            return known
        with self._lock:
            self._held += staged_size(array)
            self.peak_bytes = max(self.peak_bytes, self._held + self._free_bytes)
        staged = self._waiting[name] = Staged(self, array, None)
        return staged

    def _let_go(self, size: int) -> None:
        with self._lock:
            self._held -= size
            self._changed.notify_all()

    def _buffer(self, size: int) -> Array:
        """A buffer of exactly `size` bytes; free ones of other sizes go first when memory would pass the budget."""
        with self._lock:
            self._held += size
            free = self._free.get(size)
            if free:
                self._free_bytes -= size
                return free.pop()
            for other in sorted(self._free, reverse=True):
                while self._free[other] and self._held + self._free_bytes > self._budget:
                    self._free[other].pop()
                    self._free_bytes -= other
            self.peak_bytes = max(self.peak_bytes, self._held + self._free_bytes)
        try:
            return _aligned(size) if size >= _PAGED_BYTES else np.empty(size, np.uint8)
        except BaseException:
            with self._lock:
                self._held -= size
            raise

    def _take_back(self, buffer: Array) -> None:
        size = buffer.size
        with self._lock:
            self._held -= size
            if size >= _PAGED_BYTES and self._held + self._free_bytes + size <= self._budget:
                self._free.setdefault(size, []).append(buffer)
                self._free_bytes += size
            self._changed.notify_all()


def staged_size(array: Array) -> int:
    """Bytes of the budget that a copy of this array takes."""
    if isinstance(array, MeasuredArray):
        return 0
    if array.nbytes < _PAGED_BYTES:
        return array.nbytes
    # Whole pages, and room to begin anywhere in the first one.
    return (array.nbytes // _PAGE + 2) * _PAGE


def _aligned(size: int) -> Array:
    raw: np.ndarray[Any, np.dtype[Any]] = np.empty(size + _PAGE, np.uint8)
    start = -raw.ctypes.data % _PAGE
    return raw[start : start + size]

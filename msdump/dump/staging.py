"""Staging: copies of values that an operator may overwrite while they wait for a writer."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from msdump.events import Array
from msdump.records import TensorKey

_PAGE = 4096


class Staged:
    """One copy. `uses` counts records that still need it; owned by Staging, freed when it reaches zero."""

    __slots__ = ("array", "buffer", "name", "uses")

    def __init__(self, name: tuple[int, int, TensorKey], array: Array, buffer: Array) -> None:
        self.name = name
        self.array = array
        self.buffer = buffer
        self.uses = 1


class Staging:
    """Copies in page-aligned buffers that are used again, so that no step pays for fresh pages.

    A value that is still waiting is copied once however many records name it. `reserve`, `share` and `copy` are
    called by the one thread that runs the graph, `release` by writers.
    """

    def __init__(self, budget_bytes: int) -> None:
        self._budget = budget_bytes
        self._changed = threading.Condition()
        self._free: dict[int, list[Array]] = {}
        self._free_bytes = 0
        self._waiting: dict[tuple[int, int, TensorKey], Staged] = {}
        self._held = 0
        self.peak_bytes = 0

    @property
    def held_bytes(self) -> int:
        """Bytes that wait for a writer."""
        return self._held

    def reserve(self, size_bytes: int) -> None:
        """Wait until `size_bytes` more fit into the budget, or nothing waits any more: what is larger than the
        whole budget goes through alone."""
        with self._changed:
            self._changed.wait_for(lambda: not self._held or self._held + size_bytes <= self._budget)

    def stage(self, graph_id: int, iteration: int, key: TensorKey, array: Array) -> Staged:
        """A copy with one more use: the one that already waits, or a new one."""
        with self._changed:
            known = self._waiting.get((graph_id, iteration, key))
            if known is not None:
                known.uses += 1
                return known
            buffer = self._take(-(-max(array.nbytes, 1) // _PAGE) * _PAGE)
        view = buffer[: array.nbytes].view(array.dtype).reshape(array.shape)
        np.copyto(view, array)
        staged = Staged((graph_id, iteration, key), view, buffer)
        with self._changed:
            self._waiting[staged.name] = staged
        return staged

    def release(self, staged: Staged) -> None:
        """One use less; the last one frees the copy."""
        with self._changed:
            staged.uses -= 1
            if staged.uses == 0:
                del self._waiting[staged.name]
                self._free.setdefault(staged.buffer.size, []).append(staged.buffer)
                self._free_bytes += staged.buffer.size
                self._held -= staged.buffer.size
                self._changed.notify_all()

    def _take(self, size: int) -> Array:
        """A buffer of exactly `size` bytes; free buffers of other sizes go first when memory would grow past
        the budget."""
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
        return _aligned(size)


def _aligned(size: int) -> Array:
    raw: np.ndarray[Any, np.dtype[Any]] = np.empty(size + _PAGE, np.uint8)
    start = -raw.ctypes.data % _PAGE
    return raw[start : start + size]

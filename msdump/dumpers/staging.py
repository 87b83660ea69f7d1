"""Staging: copies of values that an operator may overwrite while they wait for a writer, within a budget."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any
from weakref import ReferenceType, ref

import numpy as np

from msdump.config.environment import async_buffer
from msdump.statistics.stats import MeasuredArray
from msdump.tensors.arrays import Array
from msdump.tensors.c_order import copy_elements

_PAGE = 4096
# From here on a copy has a buffer of whole pages that is used again: fresh pages cost more than the copy itself.
_PAGED_BYTES = 64 << 10
# Seconds without a message after which a waiting thread counts for itself: another thread may have taken the message.
_PATIENCE_S = 0.1


class Staged:
    """One copy, or one array that needs none. It lives while it is referenced; then its memory belongs to
    Staging again.

    Owners are counted by the interpreter alone, and it runs no Python when the last one goes: an exception at any
    moment, Ctrl-C included, can neither lose memory nor free it too early, and no exception gets lost in a destructor.

    size_bytes   of the budget that the copy takes
    """

    __slots__ = ("__weakref__", "array", "size_bytes")

    def __init__(self, array: Array, size_bytes: int) -> None:
        self.array = array
        self.size_bytes = size_bytes


@dataclass(frozen=True, slots=True)
class _Account:
    """What a copy that is alive takes. `buffer`: whole pages that may be used again after it; None: it has none."""

    name: Hashable
    size_bytes: int
    buffer: Array | None


class Staging:
    """Copies within a budget. A value that is still waiting is copied once however many records name it.

    `reserve` and `stage` are called by threads that run graphs; copies die in any thread.
    """

    def __init__(self, budget_bytes: int) -> None:
        self._budget = budget_bytes
        self._lock = threading.RLock()
        # The truth about what is held: an entry comes and goes in one step, which no signal can divide.
        self._accounts: dict[ReferenceType[Staged], _Account] = {}
        # Messages of the interpreter that a copy has died. Written by no Python code, as a destructor would be.
        self._deaths: SimpleQueue[ReferenceType[Staged]] = SimpleQueue()
        self._by_name: dict[Hashable, ReferenceType[Staged]] = {}
        self._free: dict[int, list[Array]] = {}
        # Sum of the accounts; more than that after an interrupt, until the next count.
        self._held = 0
        self.peak_bytes = 0

    @property
    def held_bytes(self) -> int:
        """Bytes of copies that are alive."""
        self._count()
        return self._held

    def has_room(self, size_bytes: int, own_bytes: int = 0) -> bool:
        """Whether `reserve` would not wait."""
        with self._lock:
            self._bury_dead()
            return not size_bytes or self._held <= own_bytes or self._held + size_bytes <= self._budget

    def reserve(self, size_bytes: int, own_bytes: int = 0) -> None:
        """Wait until `size_bytes` more fit into the budget.

        own_bytes   of copies that the caller holds itself: no waiting would free them
        What is larger than the whole budget goes through alone, when nothing else waits; nothing goes through always.
        """
        while not self.has_room(size_bytes, own_bytes):
            try:
                dead = self._deaths.get(timeout=_PATIENCE_S)
            except Empty:
                self._count()
            else:
                with self._lock:
                    self._bury(dead)

    def stage(self, name: Hashable, array: Array, file_offset: int = 0) -> Staged:
        """A copy of the value of that name: the one that is still alive, or a new one.

        file_offset   where the bytes will begin in their file: pages of memory are made to coincide with pages of
                      the file, so that the disk can fetch them as they lie
        """
        if isinstance(array, MeasuredArray):
            return self.hold(name, array)  # nothing to copy: its numbers are its own
        known = self._known(name)
        if known is not None:
            return known
        size = staged_size(array)
        buffer = self._buffer(size)
        is_paged = size >= _PAGED_BYTES
        first = file_offset % _PAGE if is_paged else 0
        view = buffer[first : first + array.nbytes].view(array.dtype).reshape(array.shape)
        staged = Staged(view, size)
        reference = self._open_account(staged, name, buffer if is_paged else None)
        copy_elements(view, array)
        # From here on it may be shared: a copy that was interrupted never is.
        self._by_name[name] = reference
        return staged

    def hold(self, name: Hashable, array: Array) -> Staged:
        """The value of that name itself: it will not be overwritten, but it takes memory while it waits."""
        known = self._known(name)
        if known is not None:
            return known
        staged = Staged(array, staged_size(array))
        self._by_name[name] = self._open_account(staged, name, None)
        return staged

    # -- parts ------------------------------------------------------------------------------------

    def _known(self, name: Hashable) -> Staged | None:
        reference = self._by_name.get(name)
        return reference() if reference is not None else None

    def _open_account(self, staged: Staged, name: Hashable, buffer: Array | None) -> ReferenceType[Staged]:
        reference = ref(staged, self._deaths.put)
        with self._lock:
            # In this order: an interrupt between the two leaves too much on the sum, which is corrected, never less.
            self._held += staged.size_bytes
            self._accounts[reference] = _Account(name, staged.size_bytes, buffer)
            self.peak_bytes = max(self.peak_bytes, self._held + self.free_bytes())
        return reference

    def _bury_dead(self) -> None:
        try:
            while True:
                self._bury(self._deaths.get_nowait())
        except Empty:
            return

    def _bury(self, dead: ReferenceType[Staged]) -> None:
        """Close the account of a copy that has been freed; further calls do nothing."""
        account = self._accounts.get(dead)
        if account is None:
            return
        if self._by_name.get(account.name) is dead:
            del self._by_name[account.name]
        del self._accounts[dead]
        self._held -= account.size_bytes
        fits = self._held + self.free_bytes() + account.size_bytes <= self._budget
        if account.buffer is not None and fits:
            self._free.setdefault(account.size_bytes, []).append(account.buffer)

    def _count(self) -> None:
        """Look at every account: also at those whose message an interrupt has lost."""
        with self._lock:
            for reference in list(self._accounts):
                if reference() is None:
                    self._bury(reference)
            self._held = sum(account.size_bytes for account in self._accounts.values())

    def _buffer(self, size: int) -> Array:
        """A buffer of exactly `size` bytes; free ones of other sizes go first when memory would pass the budget."""
        with self._lock:
            self._bury_dead()
            free = self._free.get(size)
            if free:
                return free.pop()
            for free_size in sorted(self._free, reverse=True):
                while self._free[free_size] and self._held + size + self.free_bytes() > self._budget:
                    self._free[free_size].pop()
        return _aligned(size) if size >= _PAGED_BYTES else np.empty(size, np.uint8)

    def free_bytes(self) -> int:
        """Memory of buffers that wait to be used again."""
        return sum(size * len(buffers) for size, buffers in self._free.items())


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


_LARGEST_DEFAULT = 2 << 30


def staging_budget(environ: Mapping[str, str] = os.environ) -> int:
    """Bytes that MSDUMP_ASYNC_BUFFER asks for ("512M", "2G", "1000000"); else a quarter of what is free, at most 2 GiB.

    Raises: ConfigError.
    """
    size = async_buffer(environ)
    return min(_LARGEST_DEFAULT, max(1, free_memory() // 4)) if size is None else size


def free_memory() -> int:
    """Bytes that this process may still take without swapping; what its control group allows counts."""
    sizes = []
    available = re.search(r"^MemAvailable:\s+(\d+) kB", _text("/proc/meminfo"), re.MULTILINE)
    if available is not None:
        sizes.append(int(available[1]) << 10)
    limit, used = _text("/sys/fs/cgroup/memory.max").strip(), _text("/sys/fs/cgroup/memory.current").strip()
    if limit.isdigit() and used.isdigit():
        sizes.append(max(0, int(limit) - int(used)))
    # Systems without /proc say at least how much memory they have.
    return min(sizes) if sizes else os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def _text(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""

"""Memory behind a script's addresses. It is real memory: addresses are valid in C.

Every address is looked up before it is touched, so that a wrong one is an error and not the end of the process.
"""

from __future__ import annotations

import bisect
import ctypes
import mmap
import os
import sys
import threading
from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np

from msdump.frontends.acl import codes
from msdump.frontends.acl.calls import CallError, bad_argument
from msdump.tensors.arrays import Array

DEVICE, HOST = "device", "host"
# Objects that only this table still holds are let go of, except for the last few: a script may make a pointer of an
# array that it holds nowhere else, and use it in its next call.
_RECENT = 16


@dataclass(frozen=True, slots=True)
class MemoryBlock:
    """Memory that `malloc` or `malloc_host` made. Freed with the last reference to the mapping, arrays included."""

    address: int
    size: int
    kind: str
    mapping: mmap.mmap


@dataclass(frozen=True, slots=True)
class BorrowedMemory:
    """Memory of a Python object that a script made a pointer of."""

    address: int
    size: int
    is_writable: bool
    owner: object


class ProcessMemory:
    """All memory that a script may use by address."""

    def __init__(self) -> None:
        self._addresses: list[int] = []
        self._block_by_address: dict[int, MemoryBlock] = {}
        self._lent: deque[BorrowedMemory] = deque()
        self._lock = threading.Lock()

    def allocate(self, size: int, kind: str) -> int:
        """Address of `size` new bytes, zeros, aligned to a page.   Raises: CallError 100000, 200000."""
        if size <= 0:
            raise bad_argument(f"size: expected more than 0 bytes, got {size}")
        total = memory_sizes()[1]
        try:
            if size > total:
                raise MemoryError
            mapping = mmap.mmap(-1, size)
        except (MemoryError, OSError, OverflowError):
            raise CallError(
                codes.BAD_ALLOC, f"size: expected at most the {total} bytes of this machine, got {size}"
            ) from None
        address = ctypes.addressof(ctypes.c_char.from_buffer(mapping))
        with self._lock:
            bisect.insort(self._addresses, address)
            self._block_by_address[address] = MemoryBlock(address, size, kind, mapping)
        return address

    def free(self, address: int, kind: str) -> None:
        """Forget a block.   Raises: CallError 100000 for anything but the first byte of a block of that kind."""
        with self._lock:
            block = self._block_by_address.get(address)
            if block is None or block.kind != kind:
                got = "a null pointer" if address == 0 else "an address that is none or was freed already"
                if block is not None:
                    got = f"{block.kind} memory"
                maker = "malloc" if kind == DEVICE else "malloc_host"
                raise CallError(
                    codes.INVALID_PARAM,
                    f"ptr: expected {kind} memory that acl.rt.{maker} made, got {got}",
                    codes.BAD_ARGUMENT if address else codes.NULL_ARGUMENT,
                )
            del self._block_by_address[address]
            del self._addresses[bisect.bisect_left(self._addresses, address)]

    def lend(self, owner: object, address: int, size: int, is_writable: bool) -> int:
        """Register the memory of a Python object while the object is referenced elsewhere."""
        with self._lock:
            while len(self._lent) > _RECENT and not _is_held(self._lent[0]):
                self._lent.popleft()
            if len(self._lent) > 4 * _RECENT:
                recent = [self._lent.pop() for _ in range(_RECENT)]
                self._lent = deque([entry for entry in self._lent if _is_held(entry)] + recent[::-1])
            self._lent.append(BorrowedMemory(address, size, is_writable, owner))
        return address

    def take_back(self, owner: object) -> None:
        """End what `lend` began for an object."""
        with self._lock:
            self._lent = deque(entry for entry in self._lent if entry.owner is not owner)

    def array(self, address: int, size: int, name: str, is_written: bool = False) -> Array:
        """The bytes at an address, in place; the array keeps the memory alive.

        name   of the argument
        Raises: CallError 100000 when not all of them may be touched.
        """
        if size < 0:
            raise bad_argument(f"{name}: expected a size, got {size}")
        if address == 0:
            raise CallError(
                codes.INVALID_PARAM, f"{name}: expected an address, got a null pointer", codes.NULL_ARGUMENT
            )
        if size == 0:
            return np.empty((0,), np.uint8)
        block = self._block_at(address)
        if block is not None:
            if address + size > block.address + block.size:
                raise _too_short(name, size, block.address + block.size - address)
            return np.frombuffer(block.mapping, np.uint8, size, address - block.address)
        lent = self._lent_at(address, size, is_written)
        if lent is None and not _is_mapped(address, size, is_written):
            raise bad_argument(
                f"{name}: expected {size} bytes that may be {'written' if is_written else 'read'}, got an address of "
                "none. Was it freed? Make pointers with acl.rt.malloc, acl.rt.malloc_host or acl.util"
            )
        window: Any = (ctypes.c_ubyte * size).from_address(address)
        window.owner = None if lent is None else lent.owner
        return np.frombuffer(window, np.uint8)

    # -- parts ------------------------------------------------------------------------------------

    def _block_at(self, address: int) -> MemoryBlock | None:
        with self._lock:
            index = bisect.bisect_right(self._addresses, address) - 1
            block = self._block_by_address[self._addresses[index]] if index >= 0 else None
        return block if block is not None and address < block.address + block.size else None

    def _lent_at(self, address: int, size: int, is_written: bool) -> BorrowedMemory | None:
        with self._lock:
            for entry in reversed(self._lent):
                is_inside = entry.address <= address and address + size <= entry.address + entry.size
                if is_inside and (entry.is_writable or not is_written):
                    return entry
        return None


def memory_sizes() -> tuple[int, int]:
    """(free, total) bytes of this machine."""
    page = os.sysconf("SC_PAGE_SIZE")
    return page * os.sysconf("SC_AVPHYS_PAGES"), page * os.sysconf("SC_PHYS_PAGES")


def _is_held(entry: BorrowedMemory) -> bool:
    """True when the object has other references: the entry and the call hold one each."""
    return sys.getrefcount(entry.owner) > 2


def _is_mapped(address: int, size: int, is_written: bool) -> bool:
    """True when the process has all of these bytes: memory of another library, such as `array.ctypes.data`.

    Edges:  a system that does not tell knows none.
    """
    end = address + size
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            for line in maps:
                ends, rights = line.split(maxsplit=2)[:2]
                first, last = (int(text, 16) for text in ends.split("-"))
                if first <= address < last and rights[0] == "r" and (rights[1] == "w" or not is_written):
                    if end <= last:
                        return True
                    address = last  # the rest must lie in the next line
    except OSError:
        return False
    return False


def _too_short(name: str, size: int, remaining: int) -> CallError:
    return bad_argument(f"{name}: expected at most the {remaining} bytes that are left there, got {size}")

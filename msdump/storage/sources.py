"""Sources: the bytes of one archive or object, in parts, wherever it lies."""

from __future__ import annotations

import os
from typing import Protocol

import numpy as np

from msdump.storage.plain import mapping, open_plain
from msdump.tensors.arrays import Array

# (device, inode, size, time of the last change in nanoseconds), or numbers of an object that mean the same.
Stamp = tuple[int, int, int, int]


class Source(Protocol):
    """Any thread may call it.

    where   for messages
    size    in bytes
    stamp   two sources of one stamp hold the same bytes
    state_ns  changes with every change of the file, also of one whose stamp was set back; 0 of an object
    """

    where: str
    size: int
    stamp: Stamp
    state_ns: int

    def read(self, offset: int, size: int) -> bytes:
        """As many bytes as there are, at most `size`.   Raises: OSError."""
        ...

    def array(self, offset: int, size: int) -> Array:
        """(size,) uint8, read-only.   Raises: OSError; ValueError when there are fewer."""
        ...


class LocalSource:
    """A plain file, mapped as a whole; its pages are read when they are looked at.

    Raises: FormatError for anything but a plain file; OSError.
    """

    def __init__(self, path: str) -> None:
        self.where = path
        with open_plain(path) as file:
            status = os.fstat(file.fileno())
            self.stamp: Stamp = stamp_of(status)
            self.state_ns = status.st_ctime_ns
            self.size = status.st_size
            self._bytes: Array = np.empty(0, np.uint8)
            if self.size:
                self._bytes = np.frombuffer(mapping(file.fileno()), np.uint8)

    def read(self, offset: int, size: int) -> bytes:
        return self._bytes[offset : offset + size].tobytes()

    def array(self, offset: int, size: int) -> Array:
        part = self._bytes[offset : offset + size]
        if part.size != size:
            raise ValueError(f"{size} bytes at offset {offset}")
        return part


def stamp_of(status: os.stat_result) -> Stamp:
    """Of a file on a disk."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns

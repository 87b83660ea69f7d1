"""Mapped files: their bytes as an array, and their pages brought in at once instead of one fault after the other."""

from __future__ import annotations

import contextlib
import mmap
import os
import sys
from typing import Any

import numpy as np

from msdump.arrays import Array
from msdump.plain_files import open_plain

_POPULATE_READ = 22  # MADV_POPULATE_READ of Linux 5.14; Python names it from 3.14 on
_FEW_BYTES = 256 << 10
_MANY_BYTES = 1 << 30


def map_file(path: str | os.PathLike[str]) -> Array:
    """Bytes of a plain file, (n,) uint8, read-only and mapped.   Raises: FormatError for any other kind; OSError."""
    with open_plain(path) as file:
        if os.fstat(file.fileno()).st_size == 0:
            return np.empty(0, np.uint8)
        return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)


def populate(array: Array) -> None:
    """Make the pages of a mapped array ready to be read; nothing happens for others, or where the system cannot.

    Reading a mapped file of the page cache once is half the work when its pages come this way. More than a gigabyte is
    left alone: it would push out what others need.
    """
    if sys.platform != "linux" or not _FEW_BYTES <= array.nbytes <= _MANY_BYTES:
        return
    owner = _mapping(array)
    if owner is None:
        return
    # An address says where in the mapping the array lies; the mapping itself tells its own only through a buffer.
    start = array.__array_interface__["data"][0] - _address(owner)
    first = start // mmap.PAGESIZE * mmap.PAGESIZE
    with contextlib.suppress(OSError, ValueError):
        owner.madvise(_POPULATE_READ, first, min(start + array.nbytes, len(owner)) - first)


def _mapping(array: Array) -> mmap.mmap | None:
    """The mapping that an array shows, however many views are between them."""
    owner: Any = array
    while owner is not None and not isinstance(owner, mmap.mmap):
        owner = owner.obj if isinstance(owner, memoryview) else getattr(owner, "base", None)
    return owner


def _address(owner: mmap.mmap) -> int:
    address: int = np.frombuffer(owner, np.uint8, 1).__array_interface__["data"][0]
    return address

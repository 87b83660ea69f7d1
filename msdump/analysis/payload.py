"""Do two dumped tensors hold the same bytes? Known from the file system when they are one file, else by looking."""

from __future__ import annotations

import math

import numpy as np

from msdump.arrays import Array
from msdump.errors import FormatError
from msdump.formats.dump_tensor import DumpedTensor

_BLOCK = 1 << 18  # bytes that are compared between two looks at whether the search is over


def identity(tensor: DumpedTensor) -> tuple[object, ...]:
    """Equal identities are the same bytes on disk, hard links included.   Raises: OSError."""
    found = tensor.content_id
    # Inside a container without offsets only the slot tells tensors apart.
    return found if tensor.offset >= 0 else (*found, tensor.io, tensor.slot)


def has_same_bytes(one: DumpedTensor, other: DumpedTensor) -> bool:
    """True when both are the same dtype and number of elements and the same bytes.

    Edges: False for a file that is gone or has become unreadable; NaNs of equal bits are equal.
    """
    if one.dtype != other.dtype or math.prod(one.shape) != math.prod(other.shape):
        return False
    try:
        return identity(one) == identity(other) or equal_bytes(one.load(), other.load())
    except (OSError, FormatError):
        return False


def equal_bytes(one: Array, other: Array) -> bool:
    """True when two arrays of one dtype hold the same bytes in C order. The first difference ends the search."""
    if one.nbytes != other.nbytes or one.dtype != other.dtype:
        return False
    a, b = (np.ascontiguousarray(side).reshape(-1).view(np.uint8) for side in (one, other))
    whole = a.size // 8 * 8
    if not np.array_equal(a[whole:], b[whole:]):
        return False
    step = _BLOCK // 8
    # Blocks of machine words; a header of an odd length leaves a mapped file unaligned, which only costs speed.
    c, d = a[:whole].view(np.uint64), b[:whole].view(np.uint64)
    return all(bool((c[at : at + step] == d[at : at + step]).all()) for at in range(0, c.size, step))

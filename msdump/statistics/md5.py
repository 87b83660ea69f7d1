"""MD5 of tensors: by hashlib, one after the other, or of many at once, which one core does up to ten times faster."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from msdump.statistics.stats import is_little_endian, raw_bytes
from msdump.tensors.arrays import Array
from msdump.tensors.compiling import has_compiler

# Below this hashlib takes less time than it takes to find the address of an array.
_LANE_BYTES = 1 << 10
# Where this is more than the batch has, compiled code is not worth its first load.
_COMPILED_BYTES = 1 << 20
# Larger arrays that lie otherwise than their bytes are digested one by one: only one copy at a time.
_COPIED_BYTES = 1 << 20
# hashlib digests one message faster than a lane does: this much more than the longest message must be there.
_GAIN = 1.5
# The dtypes of numpy that hashlib takes as they are; numpy has one object of each; others take the slow path.
_PLAIN = frozenset(id(np.dtype(code)) for code in "?bBhHiIlLqQefdFD" if sys.byteorder == "little")


def md5_hex(array: Array) -> str:
    """MD5 of the raw little-endian bytes in C order, 32 lower-case hex digits."""
    # Many are small, and finding out how they lie would take as long as their digest.
    is_plain = id(array.dtype) in _PLAIN and array.flags.c_contiguous and type(array) is np.ndarray
    data: Any = array if is_plain else raw_bytes(array)
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def md5_many(arrays: Sequence[Array]) -> list[str]:
    """`md5_hex` of each array, in one thread, which gives the GIL to others meanwhile.

    Many arrays of similar size are the fastest: one lane of a vector register for each. hashlib takes small ones, one
    that is larger than all others together, and all of them where there is no compiler.

    Shapes:  any.   Dtypes: any.   Edges: arrays that are not contiguous are copied, large ones one at a time.
    """
    digests = [""] * len(arrays)
    lanes = [index for index, array in enumerate(arrays) if array.nbytes >= _LANE_BYTES and _fits_lane(array)]
    lanes.sort(key=lambda index: -arrays[index].nbytes)
    if _gains([arrays[index].nbytes for index in lanes]):
        for index, digest in zip(lanes, in_lanes([arrays[index] for index in lanes]), strict=True):
            digests[index] = digest
    return [digest or md5_hex(array) for digest, array in zip(digests, arrays, strict=True)]


def _fits_lane(array: Array) -> bool:
    return array.nbytes <= _COPIED_BYTES or _lies_as_bytes(array)


def _lies_as_bytes(array: Array) -> bool:
    return bool(array.flags.c_contiguous) and is_little_endian(array.dtype)


def _gains(sizes: Sequence[int]) -> bool:
    """Whether lanes take less time than hashlib.   sizes: largest first"""
    if len(sizes) < 2 or sum(sizes) < _GAIN * sizes[0] or sys.byteorder != "little":
        return False
    return ("msdump.statistics.md5_lanes" in sys.modules or sum(sizes) >= _COMPILED_BYTES) and has_compiler()


def in_lanes(arrays: Sequence[Array]) -> list[str]:
    """Digests of arrays, several at a time in the lanes of vector registers."""
    from msdump.statistics.md5_lanes import lane_kernel

    held = [array if _lies_as_bytes(array) else np.frombuffer(raw_bytes(array), np.uint8) for array in arrays]
    addresses = np.array([array.__array_interface__["data"][0] for array in held], np.int64)
    digests = np.empty((len(held), 4), np.uint32)
    lane_kernel()(addresses, np.array([array.nbytes for array in held], np.int64), digests)
    text = digests.tobytes().hex()
    return [text[start : start + 32] for start in range(0, len(text), 32)]

"""Dtypes that numpy has no element for: bits to arrays and back. Sub-byte integers and floats, HiFloat8.

Source: CANN OutputDataType table and its notes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from msdump.errors import TruncatedFileError
from msdump.tensors import dtypes

Array = np.ndarray[Any, np.dtype[Any]]


def packed_size(dtype_name: str, count: int) -> int:
    """Bytes that `count` elements take in a device buffer; a started byte counts."""
    return -(-count * dtypes.dtype(dtype_name).bits // 8)


def unpack(raw: Array, dtype_name: str, shape: Sequence[int]) -> Array:
    """Array of `shape` from a device buffer of bytes.

    Shapes:  raw (n,) uint8 -> shape; bytes past the last element are padding and dropped.
    Dtypes:  that of the dtype table; HiFloat8 becomes float32. Without a copy where numpy can show the bytes.
    Edges:   sub-byte integers and floats take the low bits first, uint1 the most significant bit first.
    Raises:  TruncatedFileError when the buffer is too short.
    """
    row = dtypes.dtype(dtype_name)
    count = math.prod(shape)
    needed = packed_size(dtype_name, count)
    if raw.size < needed:
        raise TruncatedFileError(f"expected {needed} data bytes for {dtype_name} {tuple(shape)}, got {raw.size}.")
    raw = raw[:needed]
    if dtype_name == "hifloat8":
        values: Array = _hifloat8_values()[raw]
        return values.reshape(shape)
    if row.bits >= 8:
        return np.frombuffer(raw.data, row.numpy, count).reshape(shape) if count else np.empty(shape, row.numpy)
    if row.bits == 1:
        bits: Array = np.unpackbits(raw)[:count]
        return bits.reshape(shape)
    per_byte = 8 // row.bits
    shifts = np.arange(per_byte, dtype=np.uint8) * row.bits
    codes = ((raw[:, None] >> shifts) & ((1 << row.bits) - 1)).reshape(-1)[:count]
    return _from_codes(codes, row).reshape(shape)


def pack(array: Array, dtype_name: str) -> Array:
    """Device buffer (n,) uint8 of an array; inverse of `unpack` for all dtypes but HiFloat8, which rounds.

    HiFloat8 values are taken as codes (uint8), never rounded here.
    """
    row = dtypes.dtype(dtype_name)
    flat = np.ascontiguousarray(array).reshape(-1)
    if row.bits >= 8:
        return flat.view(np.uint8)
    if row.bits == 1:
        return np.packbits(flat.astype(np.uint8))
    per_byte = 8 // row.bits
    codes = flat.view(np.uint8) & ((1 << row.bits) - 1)
    padded = np.zeros(-(-codes.size // per_byte) * per_byte, np.uint8)
    padded[: codes.size] = codes
    shifts = np.arange(per_byte, dtype=np.uint8) * row.bits
    packed: Array = np.bitwise_or.reduce(padded.reshape(-1, per_byte) << shifts, axis=1).astype(np.uint8)
    return packed


def _from_codes(codes: Array, row: dtypes.Dtype) -> Array:
    if row.kind == dtypes.INT:
        # Sign-extend into the whole byte that ml_dtypes keeps such an integer in.
        sign = 1 << (row.bits - 1)
        return ((codes ^ sign).astype(np.int8) - np.int8(sign)).astype(row.numpy)
    return codes.astype(np.uint8).view(row.numpy)


@cache
def _hifloat8_values() -> Array:
    """float32 value of each of the 256 codes."""
    return np.array([_hifloat8(code) for code in range(256)], np.float32)


def _hifloat8(code: int) -> float:
    """One code: sign, a prefix that says how many exponent bits follow, exponent, mantissa."""
    if code == 0x80:
        return math.nan
    if code in (0x6F, 0xEF):
        return math.inf if code == 0x6F else -math.inf
    sign = -1.0 if code & 0x80 else 1.0
    rest = code & 0x7F
    for prefix, prefix_bits, exponent_bits in ((3, 2, 4), (2, 2, 3), (1, 2, 2), (1, 3, 1), (1, 4, 0)):
        if rest >> (7 - prefix_bits) == prefix:
            return sign * _hifloat8_normal(rest & ((1 << (7 - prefix_bits)) - 1), 7 - prefix_bits, exponent_bits)
    fraction = rest & 7
    return sign * math.ldexp(1.0, fraction - 23) if fraction else 0.0


def _hifloat8_normal(bits: int, width: int, exponent_bits: int) -> float:
    """Exponent in sign and magnitude with a hidden leading one, then the mantissa."""
    mantissa_bits = width - exponent_bits
    mantissa = (bits & ((1 << mantissa_bits) - 1)) / (1 << mantissa_bits)
    if exponent_bits == 0:
        return 1.0 + mantissa
    code = bits >> mantissa_bits
    magnitude_bits = exponent_bits - 1
    magnitude = (1 << magnitude_bits) | (code & ((1 << magnitude_bits) - 1))
    exponent = -magnitude if code >> magnitude_bits else magnitude
    return math.ldexp(1.0 + mantissa, exponent)

"""The float dtype that a tensor had before its .npy file stored it in a wider one: npy knows no bfloat16.

The text of the header ends in padding, which every reader passes over: numpy fills it with blanks. Here it begins with
tabs, as many as the number of the dtype among CANN's OutputDataType (27 for bfloat16, 34 for float8_e5m2). Length,
alignment and the dictionary stay what the format asks for.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from msdump import dtypes

ALIGNMENT = 64
_PREFIX_BYTES = 10  # magic, version and the length of the text, of version 1.0


def mark_of(dtype_name: str) -> str:
    """Tabs for a float dtype that npy stores in a wider one, "" for all others."""
    row = dtypes.dtype(dtype_name)
    return "\t" * row.acl_number if row.is_float and row.is_widened and row.acl_number else ""


def dtype_of_mark(padding: str, stored: np.dtype[Any]) -> str | None:
    """Dtype that the padding of a header tells; None for plain padding, and where it does not fit the stored dtype."""
    count = len(padding) - len(padding.lstrip("\t"))
    row = dtypes.BY_ACL_NUMBER.get(count)
    if row is None or not mark_of(row.name):
        return None
    return row.name if dtypes.dtype(row.npy_name).numpy == stored.newbyteorder("=") else None


def with_mark(header: bytes, dtype_name: str) -> bytes:
    """A header of version 1.0 that tells the dtype; longer by a multiple of 64 bytes where its padding is too short."""
    mark = mark_of(dtype_name).encode()
    if not mark:
        return header
    text = header[_PREFIX_BYTES:].rstrip() + mark
    missing = max(0, _PREFIX_BYTES + len(text) + 1 - len(header))
    total = len(header) + -(-missing // ALIGNMENT) * ALIGNMENT
    length = total - _PREFIX_BYTES
    return header[: _PREFIX_BYTES - 2] + struct.pack("<H", length) + text.ljust(length - 1) + b"\n"

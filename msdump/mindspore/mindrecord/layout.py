"""Bytes of a MindRecord file: header, pages, rows.

A file is a header (8 bytes of length, JSON, zeros up to `header_size`) and pages of `page_size` bytes. Each row stands
in a raw page as msgpack of its single values, and in a blob page as its bytes and arrays; a SQLite file beside it, with
".db" added to its name, says where.
Source: files of MindSpore 2.7, version "3.0" of the format.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from msdump.mindspore.mindrecord.exceptions import MRMFetchDataError, MRMInvalidSchemaError, MRMOpenError
from msdump.tensors.arrays import Array

VERSION = "3.0"
HEADER_SIZE, PAGE_SIZE = 1 << 24, 1 << 25
SIZES = range(1 << 14, (1 << 28) + 1)  # bytes; of header and pages that the format takes
SCALARS = ("int32", "int64", "float32", "float64", "string", "bytes")
_LENGTH = struct.Struct("<Q")
_FIELD_LENGTH = struct.Struct(">Q")
NO_BLOB = bytes(4)  # what stands for the blob of a row without bytes and arrays


@dataclass(frozen=True)
class Field:
    """A field of a schema; `shape` None: a single value, -1: an open size."""

    name: str
    type: str
    shape: tuple[int, ...] | None

    @property
    def is_blob(self) -> bool:
        """Does it stand in a blob page?"""
        return self.type == "bytes" or self.shape is not None


def fields_of(content: Any) -> list[Field]:
    """Fields of {name: {"type": ..., "shape": [...]}}.   Raises: MRMInvalidSchemaError."""
    if not isinstance(content, Mapping) or not content:
        raise MRMInvalidSchemaError(f"schema: expected a dictionary of fields, got {content!r}.")
    return [_field(name, what) for name, what in content.items()]


def _field(name: Any, what: Any) -> Field:
    if not isinstance(name, str) or not name.isidentifier() or not isinstance(what, Mapping):
        raise MRMInvalidSchemaError(f"schema: expected name: {{'type': ...}}, got {name!r}: {what!r}.")
    kind, shape = what.get("type"), what.get("shape")
    if kind not in SCALARS or set(what) - {"type", "shape"}:
        raise MRMInvalidSchemaError(f"schema[{name!r}]: expected a type of {list(SCALARS)}, got {what!r}.")
    if shape is None:
        return Field(name, kind, None)
    if kind in ("string", "bytes") or not isinstance(shape, (list, tuple)) or not shape:
        raise MRMInvalidSchemaError(f"schema[{name!r}]: expected a list of sizes, of numbers, got {what!r}.")
    sizes = tuple(shape)
    if any(isinstance(size, bool) or not isinstance(size, int) or size == 0 or size < -1 for size in sizes):
        raise MRMInvalidSchemaError(f"schema[{name!r}](shape): expected positive ints, or -1, got {list(sizes)}.")
    if sizes.count(-1) > 1:
        raise MRMInvalidSchemaError(f"schema[{name!r}](shape): expected at most one -1, got {list(sizes)}.")
    return Field(name, kind, sizes)


# --- single values: the part of msgpack that they need


def packed(values: Mapping[str, Any]) -> bytes:
    """msgpack of a dictionary of str to int, float or str, its keys sorted."""
    head = bytes([0x80 | len(values)]) if len(values) < 16 else b"\xde" + struct.pack(">H", len(values))
    return head + b"".join(_packed_str(name) + _packed_value(values[name]) for name in sorted(values))


def _packed_value(value: Any) -> bytes:
    if isinstance(value, str):
        return _packed_str(value)
    if isinstance(value, float):
        with np.errstate(over="ignore"):
            single = float(np.float32(value))
        is_single = single == value or value != value
        return b"\xca" + struct.pack(">f", value) if is_single else b"\xcb" + struct.pack(">d", value)
    return _packed_int(int(value))


def _packed_int(value: int) -> bytes:
    if -32 <= value < 128:
        return struct.pack(">b", value) if value < 0 else bytes([value])
    codes = (
        [(0xCC, "B", 8), (0xCD, "H", 16), (0xCE, "I", 32), (0xCF, "Q", 64)]
        if value >= 0
        else [(0xD0, "b", 7), (0xD1, "h", 15), (0xD2, "i", 31), (0xD3, "q", 63)]
    )
    for code, letter, bits in codes:
        if -(1 << bits) <= value < (1 << bits):
            return bytes([code]) + struct.pack(f">{letter}", value)
    raise MRMFetchDataError(f"mindrecord: expected a 64-bit int, got {value}.")


def _packed_str(text: str) -> bytes:
    data = text.encode("utf-8")
    if len(data) < 32:
        return bytes([0xA0 | len(data)]) + data
    for code, letter, limit in ((0xD9, "B", 1 << 8), (0xDA, "H", 1 << 16), (0xDB, "I", 1 << 32)):
        if len(data) < limit:
            return bytes([code]) + struct.pack(f">{letter}", len(data)) + data
    raise MRMFetchDataError("mindrecord: expected a string below 4 GiB.")


_NUMBERS = {
    0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h", 0xD2: ">i",
    0xD3: ">q",
}  # fmt: skip
_STRINGS = {0xD9: ">B", 0xDA: ">H", 0xDB: ">I"}


def unpacked(data: bytes) -> dict[str, Any]:
    """Dictionary of msgpack that `packed` could have made.   Raises: MRMFetchDataError."""
    try:
        count, place = (data[0] & 0x0F, 1) if data[0] >> 4 == 8 else (struct.unpack_from(">H", data, 1)[0], 3)
        if data[0] >> 4 != 8 and data[0] != 0xDE:
            raise MRMFetchDataError(f"mindrecord: expected a map, got the byte {data[0]:02x}.")
        result = {}
        for _ in range(count):
            name, place = _unpacked_value(data, place)
            result[str(name)], place = _unpacked_value(data, place)
        return result
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise MRMFetchDataError(f"mindrecord: expected a row of msgpack, got {error}. Is the file damaged?") from error


def _unpacked_value(data: bytes, place: int) -> tuple[Any, int]:
    code = data[place]
    place += 1
    if code < 0x80 or code >= 0xE0:
        return (code if code < 0x80 else code - 256), place
    if code in _NUMBERS:
        form = struct.Struct(_NUMBERS[code])
        return form.unpack_from(data, place)[0], place + form.size
    if code in (0xC2, 0xC3):
        return code == 0xC3, place
    if code in _STRINGS:
        form = struct.Struct(_STRINGS[code])
        length, place = form.unpack_from(data, place)[0], place + form.size
    elif 0xA0 <= code < 0xC0:
        length = code & 0x1F
    else:
        raise MRMFetchDataError(f"mindrecord: expected a number or a string, got the byte {code:02x}.")
    if place + length > len(data):
        raise MRMFetchDataError("mindrecord: expected a row of msgpack, got a string that is cut short.")
    return data[place : place + length].decode("utf-8"), place + length


# --- bytes and arrays


def narrowed(values: Array) -> bytes:
    """Ints as MindRecord stores arrays of them: their number, how wide each is (2 bits), each as narrow as it goes."""
    flat = values.reshape(-1).astype(np.int64)
    widths = np.select([flat == flat.astype(f"i{size}") for size in (1, 2, 4)], [0, 1, 2], 3).astype(np.uint8)
    pairs = np.zeros(-(-len(flat) // 4) * 4, np.uint8)
    pairs[: len(flat)] = widths
    quads = pairs.reshape(-1, 4)
    marks = (quads << np.array([6, 4, 2, 0], np.uint8)).sum(axis=1).astype(np.uint8)
    body = b"".join(
        int(value).to_bytes(1 << width, "little", signed=True) for value, width in zip(flat, widths, strict=True)
    )
    return bytes(struct.pack(">I", len(flat)) + marks.tobytes() + body)


def widened(data: bytes) -> Array:
    """Ints of `narrowed`.   Shapes: -> (N,) int64   Raises: MRMFetchDataError."""
    if len(data) < 4:
        raise MRMFetchDataError(f"mindrecord: expected the number of ints, got {len(data)} bytes.")
    count = struct.unpack_from(">I", data)[0]
    start = 4 + -(-count // 4)
    if start > len(data):
        raise MRMFetchDataError(f"mindrecord: expected {count} ints, got {len(data)} bytes.")
    marks = np.frombuffer(data[4:start], np.uint8)
    widths = ((marks[:, None] >> np.array([6, 4, 2, 0], np.uint8)) & 3).reshape(-1)[:count]
    ends = start + np.cumsum(1 << widths.astype(np.int64))
    if count and int(ends[-1]) != len(data):
        raise MRMFetchDataError(f"mindrecord: expected {int(ends[-1])} bytes of ints, got {len(data)}.")
    starts = np.concatenate([[start], ends[:-1]])[:count]
    return np.array(
        [int.from_bytes(data[first:last], "little", signed=True) for first, last in zip(starts, ends, strict=True)],
        np.int64,
    )


def blob_of(values: Sequence[bytes]) -> bytes:
    """The blob of a row: one field as it is, several with their lengths."""
    if not values:
        return NO_BLOB
    return values[0] if len(values) == 1 else b"".join(_FIELD_LENGTH.pack(len(value)) + value for value in values)


def fields_in_blob(blob: bytes, count: int) -> list[bytes]:
    """The fields of `blob_of`.   Raises: MRMFetchDataError."""
    if count <= 1:
        return [blob] * count
    parts: list[bytes] = []
    place = 0
    for _ in range(count):
        if place + 8 > len(blob):
            raise MRMFetchDataError(f"mindrecord: expected {count} fields in a blob, got {len(parts)}.")
        length = _FIELD_LENGTH.unpack_from(blob, place)[0]
        place += 8
        if length > len(blob) - place:
            raise MRMFetchDataError(f"mindrecord: expected a field of {length} bytes, got {len(blob) - place}.")
        parts.append(blob[place : place + length])
        place += length
    return parts


def with_length(data: bytes) -> bytes:
    """`data` after its length."""
    return _LENGTH.pack(len(data)) + data


def without_length(data: bytes) -> bytes:
    """The data of `with_length`.   Raises: MRMFetchDataError."""
    if len(data) < 8 or _LENGTH.unpack_from(data)[0] != len(data) - 8:
        raise MRMFetchDataError(
            f"mindrecord: expected a row with its length, got {data[:8].hex(' ')} of {len(data)} bytes."
        )
    return data[8:]


def header_bytes(header: Mapping[str, Any]) -> bytes:
    """The header's part of a file, without the zeros after it."""
    return with_length(json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode("utf-8"))


def read_header(path: str, file: BinaryIO) -> dict[str, Any]:
    """Header at the start of a file.   Raises: MRMOpenError."""
    start = file.read(_LENGTH.size)
    length = _LENGTH.unpack(start)[0] if len(start) == _LENGTH.size else 0
    if not 2 <= length < SIZES[-1]:
        raise MRMOpenError(f"{path}: expected the header of a MindRecord file, got {start.hex(' ')!r}.")
    try:
        header = json.loads(file.read(length))
    except (ValueError, RecursionError) as error:
        raise MRMOpenError(f"{path}: expected a header in JSON, got: {error}") from error
    names = ("header_size", "page_size", "schema", "page", "shard_addresses")
    if not isinstance(header, dict) or any(name not in header for name in names):
        raise MRMOpenError(f"{path}: expected a header with {', '.join(names)}. Is it a MindRecord file?")
    if header["header_size"] not in SIZES or header["page_size"] not in SIZES:
        raise MRMOpenError(f"{path}: expected sizes in [{SIZES[0]}, {SIZES[-1]}], got {header['header_size']!r}.")
    return header

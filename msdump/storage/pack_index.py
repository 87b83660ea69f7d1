"""What a pack holds by its index, which one read of its end finds, or else by the headers of its members."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from msdump.errors import FormatError
from msdump.storage.pack_format import (
    BLOCK,
    END,
    HASH,
    MAX_INDEX_BYTES,
    NUMBER_COLUMNS,
    TAIL_BYTES,
    TAIL_MAGIC,
    VERSION,
    Member,
)
from msdump.storage.pack_scan import ArchiveContents, Read, check_name, scan

# How a part of a name begins and ends among others that are joined by zero bytes; such that are empty, "." or "..".
_ODD_PARTS = tuple(f"{begin}{part}{end}" for part in ("", ".", "..") for begin in "/\0" for end in "/\0")


def read_contents(where: str, size: int, read: Read, search_bytes: int | None = None) -> ArchiveContents:
    """What an archive holds, by its index or, where it has none, by its headers.

    where   for messages
    size    of the archive
    search_bytes   as of `scan`
    Edges:  a last member that is cut is left out, as is one whose header is damaged.
    Raises: FormatError for an index that is damaged or contradicts itself, and for names that no dump has: absolute
            ones, ones that lead out, two of one name, links to what is not an earlier member.
    """
    place = _tail(size, read)
    if place is None:
        return scan(where, size, read, search_bytes)
    offset, length, checksum = place
    data = read(offset, length)
    if len(data) != length or zlib.crc32(data) != checksum:
        raise FormatError(
            f"{where} at offset {offset}: expected an index of {length} bytes with the checksum {checksum}, got "
            "another. `msdump pack --repair` writes it anew."
        )
    return _indexed(where, data, offset)


def _tail(size: int, read: Read) -> tuple[int, int, int] | None:
    """Offset, length and checksum of the index."""
    if size < TAIL_BYTES:
        return None
    tail = read(size - BLOCK - len(END), BLOCK)
    if not tail.startswith(TAIL_MAGIC):
        return None
    numbers = tail[len(TAIL_MAGIC) :].split(b"\n", 1)[0].split(b" ")
    if len(numbers) != 3 or not all(one.isdigit() and len(one) < 20 for one in numbers):
        return None
    offset, length, checksum = map(int, numbers)
    return (offset, length, checksum) if length <= MAX_INDEX_BYTES and offset + length <= size else None


def index_offset(size: int, read: Read) -> int | None:
    """Where the header of the index lies, by the tail of the archive."""
    place = _tail(size, read)
    return None if place is None else place[0] - BLOCK


class _Rows(Mapping[str, Member]):
    """Members of an index, made when they are asked for: opening a pack of many costs its columns alone.

    Raises: ValueError, TypeError, OverflowError for columns that contradict themselves or the archive.
    """

    def __init__(self, columns: Mapping[str, Any], has_hashes: bool, end: int) -> None:
        self._names, self._hashes = columns["name"], columns["hashes"]
        self._heads = [base64.b64decode(text, validate=True) for text in columns["heads"]]
        self._has_hashes = has_hashes
        for column, kind in (("name", str), ("hashes", str), *((name, int) for name in NUMBER_COLUMNS)):
            if len(columns[column]) != len(self._names) or not set(map(type, columns[column])) <= {kind}:
                raise ValueError(f"the column {column}")
        numbers = (np.array(columns[column], np.int64) for column in NUMBER_COLUMNS)
        self._offsets, self._sizes, self._targets, self._head_numbers = numbers
        offsets, targets, own = self._offsets, self._targets, np.arange(len(self._names))
        is_placed = (offsets >= BLOCK) & (self._sizes >= 0) & (offsets <= end) & (self._sizes <= end - offsets)
        is_linked = (targets >= 0) & (targets < own) & (offsets[np.minimum(targets, own)] == offsets)
        has_head = (self._head_numbers >= -1) & (self._head_numbers < len(self._heads))
        wrong = np.flatnonzero(~(is_placed & (is_linked | (targets == -1)) & has_head))
        if wrong.size:
            raise ValueError(f"member {wrong[0]}")
        self._number_by_name = dict(zip(self._names, range(len(self._names)), strict=True))

    @property
    def has_names_twice(self) -> bool:
        return len(self._number_by_name) != len(self._names)

    def __getitem__(self, name: str) -> Member:
        number = self._number_by_name[name]
        head, text = int(self._head_numbers[number]), self._hashes[number]
        return Member(
            name,
            int(self._offsets[number]),
            int(self._sizes[number]),
            bool(self._targets[number] >= 0),
            self._heads[head] if head >= 0 else b"",
            tuple(text.split(",")) if text and self._has_hashes else (),
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._number_by_name)

    def __len__(self) -> int:
        return len(self._number_by_name)

    def __contains__(self, name: object) -> bool:
        return name in self._number_by_name


def _indexed(where: str, data: bytes, end: int) -> ArchiveContents:
    try:
        content = json.loads(data)
        if content["msdump_index"] != VERSION:
            raise FormatError(f"{where}: expected an index of version {VERSION}, got {content['msdump_index']!r:.20}.")
        members = _Rows(content, content["hash"] == HASH, end)
    except FormatError:
        raise
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError) as error:
        raise FormatError(
            f"{where} at offset {end}: expected an index of a pack, got a damaged one: {error!s:.200}. "
            "`msdump pack --repair` writes it anew."
        ) from error
    if members.has_names_twice:
        raise FormatError(f"{where}: expected each name once in the index, got one twice.")
    # All at once: names are nearly always those of files below the folder.
    joined = "\0".join(("", *members, ""))
    if joined.count("\0") != len(members) + 1 or any(part in joined for part in _ODD_PARTS):
        for name in members:
            check_name(where, name)
    return ArchiveContents(members, end=end, has_index=True)

"""Packs that are being read: which file of which archive a path names.

A path leads through an archive as through a folder: `rank_0/Net/0/5.tar/5/Conv2D.Conv2D-op12....npy`.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable

from msdump.arrays import Array
from msdump.errors import FormatError
from msdump.storage.pack_format import (
    BLOCK,
    PART_SUFFIX,
    SUFFIX,
    Contents,
    Member,
    is_header_of,
    read_contents,
)
from msdump.storage.sources import LocalSource, Source, Stamp, stamp_of

_NEAR_BYTES = 64 << 10
_KEPT = 64  # each one keeps a descriptor and its index


def is_pack_name(name: str) -> bool:
    """Whether a file of this name is looked into."""
    return name.endswith((SUFFIX, PART_SUFFIX))


class Pack:
    """One archive and what it holds. Any thread may call it.   Raises: as `read_contents`; OSError."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.contents: Contents = read_contents(source.where, source.size, source.read)
        self._checked: set[int] = set()

    def member(self, name: str) -> Member | None:
        return self.contents.members.get(name)

    def array(self, member: Member, offset: int, size: int) -> Array:
        """Bytes of a member, (size,) uint8, read-only.

        The index may be of another archive, or lie: the header before the data must be that of the member. Both are
        read at once, as a store is far away.
        Raises: FormatError; OSError; ValueError when the member has fewer.
        """
        if offset + size > member.size:
            raise ValueError(f"{size} bytes at offset {offset}")
        start = member.offset + offset
        if not self.contents.has_index or member.offset in self._checked:
            return self.source.array(start, size)
        if offset > _NEAR_BYTES:
            self._check(member, self.source.read(member.offset - BLOCK, BLOCK))
            return self.source.array(start, size)
        data = self.source.array(member.offset - BLOCK, BLOCK + offset + size)
        self._check(member, data[:BLOCK].tobytes())
        return data[BLOCK + offset :]

    def _check(self, member: Member, block: bytes) -> None:
        if not is_header_of(block, member):
            raise FormatError(
                f"{self.source.where} at offset {member.offset - BLOCK}: expected the header of {member.name[:200]!r} "
                f"with {member.size} bytes, as the index says, got another. `msdump recover` writes the index anew."
            )
        self._checked.add(member.offset)

    def hash_at(self, member: Member, offset: int) -> str | None:
        """Hash of the tensor whose bytes begin at this offset of a member, where the index has it."""
        start = f"{offset}:"
        return next((text[len(start) :] for text in member.hashes if text.startswith(start)), None)


class _Packs:
    """Archives that were opened last, by path."""

    def __init__(self) -> None:
        self._by_path: OrderedDict[str, Pack] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, path: str, stamp: Stamp, make: Callable[[], Source]) -> Pack:
        with self._lock:
            pack = self._by_path.get(path)
            if pack is not None and pack.source.stamp == stamp:
                self._by_path.move_to_end(path)
                return pack
        pack = Pack(make())
        with self._lock:
            self._by_path[path] = pack
            while len(self._by_path) > _KEPT:
                self._by_path.popitem(last=False)
        return pack


_packs = _Packs()


def open_pack(path: str) -> Pack:
    """The archive at a path on the disk.   Raises: FormatError; OSError."""
    return _packs.get(path, stamp_of(os.stat(path)), lambda: LocalSource(path))


def keep_pack(path: str, source: Source) -> Pack:
    """The archive that a source holds, from what is kept where that is still the same.   Raises: as `Pack`."""
    return _packs.get(path, source.stamp, lambda: source)


def split_pack_path(path: str) -> tuple[str, str] | None:
    """(archive, member) of a path that leads through an archive, by its names alone; None for any other.

    Edges:  the archive itself has an empty member.
    """
    for suffix in (SUFFIX, PART_SUFFIX):
        at = path.find(f"{suffix}/")
        if at >= 0:
            return path[: at + len(suffix)], path[at + len(suffix) + 1 :].strip("/")
    return (path, "") if is_pack_name(path) else None


def without_packs(parts: list[str]) -> list[str]:
    """Parts of a path without the archives among them: those that the same files had in folders."""
    return [part for part in parts if not is_pack_name(part)]

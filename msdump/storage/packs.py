"""Packs that are being read: where their bytes come from, and which file of which archive a path names.

A path leads through an archive as through a folder: `rank_0/Net/0/5.tar/5/Conv2D.Conv2D-op12....npy`.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from msdump.errors import FormatError, WriteError
from msdump.process.user_cache import cache_folder
from msdump.storage.pack_format import BLOCK, PART_SUFFIX, SUFFIX, Member
from msdump.storage.pack_index import read_contents
from msdump.storage.pack_scan import ArchiveContents, is_header_of
from msdump.storage.plain import mapping, open_plain
from msdump.tensors.arrays import Array

if TYPE_CHECKING:
    import sqlite3

# (device, inode, size, time of the last change in nanoseconds), or numbers of an object that mean the same.
Stamp = tuple[int, int, int, int]


class Source(Protocol):
    """The bytes of one archive or object, in parts, wherever it lies. Any thread may call it.

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


_NEAR_BYTES = 64 << 10
_SEARCH_BYTES = 1 << 30
_KEPT = 64  # each one keeps a descriptor and its index


def is_pack_name(name: str) -> bool:
    """Whether a file of this name is looked into."""
    return name.endswith((SUFFIX, PART_SUFFIX))


class Pack:
    """One archive and what it holds. Any thread may call it.

    contents   what is known of it; None: its index, or else its headers, tell it
    Raises: as `read_contents`; OSError.
    """

    def __init__(self, source: Source, contents: ArchiveContents | None = None) -> None:
        self.source = source
        # To look for a header behind a damaged one would fetch all of an object.
        search_bytes = _SEARCH_BYTES if isinstance(source, LocalSource) else 0
        self.contents: ArchiveContents = contents or read_contents(
            source.where, source.size, source.read, search_bytes=search_bytes
        )
        self._checked: set[int] = set()
        self._right: set[int] | None = None
        self._remembered = 0

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
                f"with {member.size} bytes, as the index says, got another. `msdump pack --repair` writes the index "
                "anew."
            )
        self._checked.add(member.offset)

    # -- hashes ----------------------------------------------------------------------------------------------------

    def claimed_hash(self, member: Member, offset: int) -> str | None:
        """Hash of the tensor whose bytes begin at this offset of a member, where the index has it; nothing is read."""
        return next((part.hash for part in hashed_parts(member) if part.offset == offset), None)

    def verified_hash(self, member: Member, offset: int) -> str | None:
        """As `claimed_hash`, once the bytes were found to have it, be it by an earlier process.

        Raises: FormatError when they have another; OSError.
        """
        part = next((part for part in hashed_parts(member) if part.offset == offset), None)
        if part is None:
            return None
        self._verify(member, part)
        return part.hash

    def verify(self, member: Member) -> int:
        """Hold a member against the index: its header, and the bytes of each tensor in it; the number of these.

        Raises: FormatError when they differ; OSError.
        """
        self._check(member, self.source.read(member.offset - BLOCK, BLOCK))
        parts = hashed_parts(member)
        for part in parts:
            self._verify(member, part, is_again=True)
        return len(parts)

    def _verify(self, member: Member, part: HashedPart, is_again: bool = False) -> None:
        if self._right is None:
            self._right = verified.of(self.source)
            self._remembered = len(self._right)
        position = member.offset + part.offset
        if position in self._right and not is_again:
            return
        if not part.is_of(self.array(member, part.offset, part.size)):
            self._right.discard(position)
            raise FormatError(
                f"{self.source.where}, {member.name[:200]} at offset {part.offset}: expected bytes with the hash "
                f"{part.hash[:40]}, as the index says, got others. The file was changed or is damaged: copy it anew."
            )
        self._right.add(position)

    def remember(self) -> None:
        """Keep what was verified for later processes."""
        if self._right is not None and len(self._right) > self._remembered:
            self._remembered = len(self._right)
            verified.keep(self.source, self._right)


def hash_of(data: memoryview) -> str:
    """What an index says of the bytes of a tensor."""
    from xxhash import xxh3_128_hexdigest

    return str(xxh3_128_hexdigest(data))


@dataclass(frozen=True, slots=True)
class HashedPart:
    """Bytes of a member that an index has the hash of."""

    offset: int
    size: int
    hash: str

    def is_of(self, data: Array) -> bool:
        """Whether bytes have it."""
        return hash_of(data.data) == self.hash


def hashed_parts(member: Member) -> list[HashedPart]:
    """The tensors of a member: each reaches to the next one, the last to the end of the member.

    Edges:  hashes of tensors that are not in the member are those of no bytes.
    """
    texts = [text.partition(":") for text in member.hashes]
    starts = [int(start) if start.isdecimal() and len(start) < 20 else member.size for start, _, _ in texts]
    ends = [*starts[1:], member.size][: len(starts)]
    return [
        HashedPart(start, end - start, text)
        if 0 <= start <= end <= member.size
        else HashedPart(0, 0, f"{text} of none")
        for start, end, (_, _, text) in zip(starts, ends, texts, strict=True)
    ]


def has_wrong_hash(source: Source, member: Member) -> bool:
    """Whether bytes of a member are not those that its index has the hashes of.   Raises: OSError."""
    return any(not part.is_of(source.array(member.offset + part.offset, part.size)) for part in hashed_parts(member))


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
        self.put(path, pack)
        return pack

    def put(self, path: str, pack: Pack) -> None:
        with self._lock:
            self._by_path[path] = pack
            self._by_path.move_to_end(path)
            dropped = [self._by_path.popitem(last=False)[1] for _ in range(len(self._by_path) - _KEPT)]
        for one in dropped:
            one.remember()

    def remember(self) -> None:
        """At the end of the process."""
        with self._lock:
            packs = list(self._by_path.values())
        for pack in packs:
            pack.remember()

    def forget(self) -> None:
        with self._lock:
            self._by_path.clear()


_packs = _Packs()
atexit.register(_packs.remember)


def forget_packs() -> None:
    """Open every archive anew from here on, as the next process does; what was verified of them is kept for it."""
    _packs.remember()
    _packs.forget()


def open_pack(path: str) -> Pack:
    """The archive at a path on the disk.   Raises: FormatError; OSError."""
    return _packs.get(path, stamp_of(os.stat(path)), lambda: LocalSource(path))


def keep_pack(path: str, source: Source) -> Pack:
    """The archive that a source holds, from what is kept where that is still the same.   Raises: as `Pack`."""
    return _packs.get(path, source.stamp, lambda: source)


def use_contents(path: str, source: Source, contents: ArchiveContents) -> None:
    """Have these contents in the place of what the archive at a path tells of itself, as long as it does not change."""
    _packs.put(path, Pack(source, contents))


def split_pack_path(path: str) -> tuple[str, str] | None:
    """(archive, member) of a path that leads through an archive, by its names alone; None for any other.

    Edges:  the archive itself has an empty member.
    """
    for suffix in (SUFFIX, PART_SUFFIX):
        at = path.find(f"{suffix}/")
        if at >= 0:
            return path[: at + len(suffix)], path[at + len(suffix) + 1 :].strip("/")
    return (path, "") if is_pack_name(path) else None


def without_packs(parts: Iterable[str]) -> list[str]:
    """Parts of a path without the archives among them: those that the same files had in folders."""
    return [part for part in parts if not is_pack_name(part)]


# -- hashes that were verified, kept in the cache of the user ----------------------------------------------------------

_FILE = "verified.sqlite"
# Another number means another file.
_TABLE = """
create table if not exists verified_1 (
    device integer, inode integer, size integer, changed integer, state integer, positions blob, used integer,
    primary key (device, inode, size, changed, state)
) without rowid
"""
_MOST_ROWS = 50_000
_INT64 = range(-(1 << 63), 1 << 63)
# A file that was written this lately may be written again without another time.
_SETTLED_NS = 2_000_000_000


def _folder() -> Path:
    return cache_folder("packs")


class Verified:
    """Positions in archives whose hashes were found right, kept over the end of the process.

    Edges:  a cache that cannot be written, or is damaged, keeps nothing: what it had is verified again.
    """

    def __init__(self, folder: Callable[[], Path] = _folder) -> None:
        self.folder = folder
        self._lock = threading.Lock()

    def of(self, source: Source) -> set[int]:
        """Positions that are known of the archive as it is now."""
        import sqlite3  # few dumps have packs

        key = _key(source)
        if key is None:
            return set()
        with (
            contextlib.suppress(sqlite3.Error, OSError, WriteError, ValueError),
            self._database(is_new=False) as database,
        ):
            query = "select positions from verified_1 where (device, inode, size, changed, state) = (?, ?, ?, ?, ?)"
            row = database.execute(query, key).fetchone()
            if row is not None:
                return set(np.frombuffer(row[0], np.int64).tolist())
        return set()

    def keep(self, source: Source, positions: set[int]) -> None:
        """Remember them for the archive as it is now."""
        import sqlite3

        key = _key(source)
        # An object of a store has no times: another content is another stamp.
        if key is None or (source.state_ns and time.time_ns() - max(key[3:]) < _SETTLED_NS):
            return
        blob = np.array(sorted(positions), np.int64).tobytes()
        with contextlib.suppress(sqlite3.Error, OSError, WriteError), self._database(is_new=True) as database, database:
            values = (*key, blob, int(time.time()))
            database.execute("insert or replace into verified_1 values (?, ?, ?, ?, ?, ?, ?)", values)
            (count,) = database.execute("select count(*) from verified_1").fetchone()
            if count > _MOST_ROWS:
                query = (
                    "delete from verified_1 where used <= (select used from verified_1 order by used limit 1 offset ?)"
                )
                database.execute(query, (count - _MOST_ROWS // 2,))

    @contextlib.contextmanager
    def _database(self, is_new: bool) -> Iterator[sqlite3.Connection]:
        """Raises: OSError; WriteError; sqlite3.Error."""
        import sqlite3

        path = self.folder() / _FILE
        with self._lock:
            if is_new:
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(path, (os.O_CREAT if is_new else 0) | os.O_RDWR | os.O_NOFOLLOW, 0o600))
            with contextlib.closing(sqlite3.connect(path, timeout=5)) as database:
                try:
                    database.execute(_TABLE)
                except sqlite3.DatabaseError as error:
                    # What is damaged here can be made again; what another process holds is not damaged.
                    if not isinstance(error, sqlite3.OperationalError):
                        path.unlink(missing_ok=True)
                    raise
                yield database


def _key(source: Source) -> tuple[int, int, int, int, int] | None:
    key = (*source.stamp, source.state_ns)
    return key if all(number in _INT64 for number in key) else None


verified = Verified()

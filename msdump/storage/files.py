"""Opening files of a dump by their paths: on the disk, in a pack, or in an object store.

A path names a file on the disk, a member of a pack as if the pack were a folder (`5.tar/5/x.npy`), or an object
(`s3://bucket/job/rank_0/LeNet/0/5.tar/5/x.npy`, which is a member of a pack as well). Readers of formats use these
functions and know nothing of the difference.
"""

from __future__ import annotations

import functools
import io
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PosixPath
from typing import IO, Any, cast

import numpy as np

from msdump.errors import FormatError
from msdump.storage import plain
from msdump.storage.pack_format import PART_SUFFIX, Member
from msdump.storage.packs import Pack, keep_pack, open_pack, split_pack_path, without_packs
from msdump.storage.plain import SIDE_BYTES
from msdump.storage.remote import RemoteSource, canonical, find_object, is_remote, objects_below
from msdump.tensors.arrays import Array

PathLike = str | os.PathLike[str]


class Address(PosixPath):
    """An address as a path, which keeps the two slashes behind its scheme."""

    def __str__(self) -> str:
        return canonical(super().__str__())


class _Part(io.RawIOBase):
    """An object of a store or a member of a pack as a file, whose first bytes may be known already."""

    def __init__(self, name: str, size: int, array: Callable[[int, int], Array], head: bytes = b"") -> None:
        self.name = name
        self.size = size
        self.array = array
        self.head = head
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        wanted = min(len(buffer), max(0, self.size - self._at))
        end = self._at + wanted
        if end <= len(self.head):
            buffer[:wanted] = self.head[self._at : end]
        elif wanted:
            buffer[:wanted] = self.array(self._at, wanted).data
        self._at = end
        return wanted

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self.size}[whence]
        if base + offset < 0:
            raise OSError(22, "a place before the beginning")
        self._at = base + offset
        return self._at

    def tell(self) -> int:
        return self._at


def open_file(path: PathLike, max_bytes: int | None = None) -> IO[bytes]:
    """A file, opened to be read; links on the disk are followed.

    max_bytes   size from which it is refused; None for files that are only mapped or read in parts

    Raises: FormatError for anything but a plain file, for one that is too large, and for a damaged pack; OSError.
    """
    text = os.fspath(path)
    if not is_remote(text):
        try:
            return plain.open_plain(text, max_bytes)
        except NotADirectoryError:
            if split_pack_path(text) is None:
                raise
    part = _part(text)
    if max_bytes is not None and part.size > max_bytes:
        raise FormatError(f"{text}: expected at most {max_bytes} bytes, got {part.size}.")
    # Reading ahead would fetch data where only a header is asked for.
    return cast("IO[bytes]", part)


def _part(text: str) -> _Part:
    """Raises: FormatError; OSError."""
    found = _find(text)
    if isinstance(found, RemoteSource):
        return _Part(text, found.size, found.array)
    pack, member = found
    return _Part(text, member.size, functools.partial(pack.array, member), member.head)


def _find(text: str) -> RemoteSource | tuple[Pack, Member]:
    """The object, or the pack and its member, that a path names.   Raises: FormatError; OSError."""
    parts = split_pack_path(text)
    if parts is None or not parts[1]:
        return _remote_source(canonical(text))
    pack = pack_at(parts[0])
    member = pack.member(parts[1])
    if member is None:
        raise FileNotFoundError(2, "the pack has no such member", text)
    return pack, member


def _remote_source(url: str) -> RemoteSource:
    found = find_object(url)
    if found is None:
        raise FileNotFoundError(2, "the store has no such object", url)
    return RemoteSource(found)


def pack_at(path: PathLike) -> Pack:
    """The archive at a path, on the disk or in a store.   Raises: FormatError; OSError."""
    text = os.fspath(path)
    if not is_remote(text):
        return open_pack(text)
    return keep_pack(canonical(text), _remote_source(canonical(text)))


def size_of(file: IO[bytes]) -> int:
    """Bytes of an open file."""
    return file.size if isinstance(file, _Part) else os.fstat(file.fileno()).st_size


def known_start(file: IO[bytes]) -> bytes:
    """First bytes of an open file that are known without reading it: those that the index of a pack has."""
    return file.head if isinstance(file, _Part) else b""


def part_of(file: IO[bytes], offset: int, size: int) -> Array:
    """(size,) uint8, bytes of an open file, read-only: mapped where it is on the disk.

    Raises: ValueError when the file has fewer; OSError.
    """
    if isinstance(file, _Part):
        if offset + size > file.size:
            raise ValueError(f"{size} bytes at offset {offset}")
        return file.array(offset, size)
    return np.frombuffer(plain.mapping(file), np.uint8, size, offset)


def read_file(path: PathLike, max_bytes: int = SIDE_BYTES) -> bytes:
    """Content of a file.   Raises: as `open_file`."""
    text = os.fspath(path)
    if not is_remote(text) and split_pack_path(text) is None:
        return plain.read_plain(text, max_bytes)
    with open_file(text, max_bytes) as file:
        return part_of(file, 0, size).tobytes() if (size := size_of(file)) else b""


def read_start(path: PathLike, count: int) -> tuple[bytes, os.stat_result] | None:
    """At most so many first bytes of a file on the disk, and what the system says of it: one opening for both; None for
    a file that is elsewhere.   Raises: as `open_file`."""
    text = os.fspath(path)
    if is_remote(text):
        return None
    try:
        return plain.read_start(text, count)
    except NotADirectoryError:
        if split_pack_path(text) is None:
            raise
        return None


def map_file(path: PathLike) -> Array:
    """Bytes of a file, (n,) uint8, read-only and mapped where that can be.   Raises: as `open_file`."""
    with open_file(path) as file:
        size = size_of(file)
        return part_of(file, 0, size) if size else np.empty(0, np.uint8)


def size_at(path: PathLike) -> int:
    """Bytes of a file.   Raises: as `open_file`."""
    text = os.fspath(path)
    if not is_remote(text) and split_pack_path(text) is None:
        return os.path.getsize(text)
    with open_file(text) as file:
        return size_of(file)


def content_id(path: PathLike) -> tuple[int, int, int, int, int]:
    """(device, inode, offset, size, time of the last change in ns): files that agree in the first three are one file,
    under whatever names; in all, it has not changed.

    offset   of the file in its pack; 0 outside of one
    Raises:  FormatError; OSError.
    """
    text = os.fspath(path)
    if not is_remote(text):
        try:
            status = os.stat(text)
        except NotADirectoryError:
            if split_pack_path(text) is None:
                raise
        else:
            return status.st_dev, status.st_ino, 0, status.st_size, status.st_mtime_ns
    found = _find(text)
    if isinstance(found, RemoteSource):
        device, inode, size, time = found.stamp
        return device, inode, 0, size, time
    pack, member = found
    device, inode, _, time = pack.source.stamp
    return device, inode, member.offset, member.size, time


def claimed_hash(path: PathLike, offset: int) -> str | None:
    """Hash that the index of a pack has of the tensor whose bytes begin at this offset of a file; None where no index
    has one. Nothing of the tensor is read."""
    found = _indexed(path)
    return None if found is None else found[0].claimed_hash(found[1], offset)


def content_hash(path: PathLike, offset: int) -> str | None:
    """As `claimed_hash`, where the bytes have that hash: they are read for it unless this was done before.

    Raises: FormatError when they have another; OSError.
    """
    found = _indexed(path)
    return None if found is None else found[0].verified_hash(found[1], offset)


def _indexed(path: PathLike) -> tuple[Pack, Member] | None:
    text = os.fspath(path)
    parts = split_pack_path(text)
    if parts is None or not parts[1]:
        return None
    try:
        pack = pack_at(parts[0])
    except (OSError, FormatError):
        return None
    member = pack.member(parts[1])
    return None if member is None else (pack, member)


# -- folders -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Listed:
    """Content of an archive or of an address: names of files by folder, entries that are no files, and a text on what
    could not be parsed."""

    names_by_folder: dict[str, list[str]]
    foreign: tuple[str, ...] = ()
    damage: tuple[str, ...] = ()


def exists(path: PathLike) -> bool:
    """Whether a path leads to anything.   Raises: ConfigError; FormatError when a store cannot be read."""
    text = os.fspath(path)
    if not is_remote(text):
        return os.path.exists(text) or _member_exists(text)
    parts = split_pack_path(text)
    if parts is not None and parts[1]:
        return _member_exists(text)
    return bool(objects_below(canonical(text)))


def _member_exists(text: str) -> bool:
    parts = split_pack_path(text)
    if parts is None or not parts[1] or os.path.isdir(parts[0]):
        return False
    try:
        members = pack_at(parts[0]).contents.members
    except (OSError, FormatError):
        return False
    return parts[1] in members or any(name.startswith(f"{parts[1]}/") for name in members)


def is_folder(path: PathLike) -> bool:
    """Whether a path leads to something that holds files: a folder, a pack, a folder of a pack, or such an address."""
    text = os.fspath(path)
    parts = split_pack_path(text)
    if not is_remote(text):
        if os.path.isdir(text):
            return True
        if parts is None or not os.path.isfile(parts[0]):
            return False
    elif parts is None:
        return find_object(canonical(text)) is None
    assert parts is not None
    return not parts[1] or pack_at(parts[0]).member(parts[1]) is None


def absolute(path: PathLike) -> Path:
    """The path from the root; an address as it is."""
    text = os.fspath(path)
    return Address(canonical(text)) if is_remote(text) else Path(os.path.abspath(text))


def folder_below(root: PathLike, path: PathLike) -> str:
    """Folder of a file as seen from another, "." for that itself; packs on the way are left out, as `unpack` does."""
    base, folder = (canonical(os.fspath(plain_path)) for plain_path in (root, os.path.dirname(path)))
    relative = folder[len(base) :].lstrip("/") if is_remote(base) else os.path.relpath(folder, base)
    return "/".join(without_packs(relative.split("/"))) or "."


def list_pack(path: str, below: str = "") -> Listed:
    """Files of an archive by folder, whose paths lead through the archive.   Raises: FormatError; OSError."""
    contents = pack_at(path).contents
    names: dict[str, list[str]] = {}
    for name in contents.members:
        folder, _, file = name.rpartition("/")
        if not below or folder == below or folder.startswith(f"{below}/"):
            names.setdefault(f"{path}/{folder}" if folder else path, []).append(file)
    # A pack that grows has no end yet, and may have no member.
    damage = contents.damage if not path.endswith(PART_SUFFIX) or contents.gaps else ()
    return Listed(names, tuple(f"{path}/{name}" for name in contents.foreign), damage)


def originals_in(folder: str) -> dict[str, str]:
    """Names that files of a folder of a pack stand for, where the pack was cut before it got its mapping.csv."""
    parts = split_pack_path(folder)
    if parts is None:
        return {}
    try:
        originals = pack_at(parts[0]).contents.originals
    except (OSError, FormatError):
        return {}
    start = f"{parts[1]}/" if parts[1] else ""
    return {name[len(start) :]: original for name, original in originals.items() if name.startswith(start)}


def files_in(folder: PathLike, suffix: str) -> list[str]:
    """Paths of the files of a folder, or links, whose names end so, sorted; none where there is no such folder."""
    text = os.fspath(folder)
    if is_remote(text):
        url = canonical(text)
        return sorted(f"{at}/{name}" for at, name in list_remote(url) if at == url and name.endswith(suffix))
    if os.path.isdir(text):
        return sorted(os.path.join(text, name) for name in os.listdir(text) if name.endswith(suffix))
    parts = split_pack_path(text)
    if parts is None or not os.path.isfile(parts[0]):
        return []
    names = list_pack(*parts).names_by_folder.get(text, [])
    return sorted(f"{text}/{name}" for name in names if name.endswith(suffix))


def list_remote(url: str) -> Iterator[tuple[str, str]]:
    """(folder, name) of each object below an address.   Raises: ConfigError; FormatError."""
    for found in objects_below(canonical(url)):
        folder, _, name = found.url.rpartition("/")
        if name:
            yield folder, name

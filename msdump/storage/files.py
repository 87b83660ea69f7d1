"""Opening files of a dump by their paths: on the disk, in a pack, or in an object store.

A path names a file on the disk, a member of a pack as if the pack were a folder (`5.tar/5/x.npy`), or an object
(`s3://bucket/job/rank_0/LeNet/0/5.tar/5/x.npy`, which is a member of a pack as well). Readers of formats use these
functions and know nothing of the difference.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PosixPath

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


class OpenFile:
    """A file that is open to be read, wherever it lies; one thread at a time.

    size      in bytes, when it was opened
    head      first bytes that are known without another read; those of a pack's member come from the index
    identity  (device, inode) of a file on the disk; None elsewhere
    """

    __slots__ = ("_array", "_descriptor", "head", "identity", "size")

    def __init__(
        self,
        size: int,
        head: bytes,
        array: Callable[[int, int], Array] | None,
        descriptor: int = -1,
        identity: tuple[int, int] | None = None,
    ) -> None:
        """array   reads bytes of a file that is not on the disk; None for one that is"""
        self.size = size
        self.head = head
        self.identity = identity
        self._array = array
        self._descriptor = descriptor

    def read(self, offset: int, count: int) -> bytes:
        """At most so many bytes from an offset on; fewer where the file ends.   Raises: OSError."""
        count = max(0, min(count, self.size - offset))
        if offset + count <= len(self.head):
            return self.head[offset : offset + count]
        if self._array is not None:
            return self._array(offset, count).tobytes() if count else b""
        data = os.pread(self._descriptor, count, offset)
        while len(data) < count and (more := os.pread(self._descriptor, count - len(data), offset + len(data))):
            data += more
        return data

    def array(self, offset: int, size: int) -> Array:
        """(size,) uint8, read-only: mapped where the file lies on the disk, and it may be closed then.

        Raises: ValueError when the file has fewer; OSError.
        """
        if offset + size > self.size:
            raise ValueError(f"{size} bytes at offset {offset}")
        if not size:
            return np.empty(0, np.uint8)
        if self._array is not None:
            return self._array(offset, size)
        return np.frombuffer(plain.mapping(self._descriptor), np.uint8, size, offset)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> OpenFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_file(path: PathLike, max_bytes: int | None = None, head_bytes: int = 0) -> OpenFile:
    """A file, opened to be read; links on the disk are followed.

    max_bytes   size from which it is refused; None for files that are only mapped or read in parts
    head_bytes  first bytes of a file on the disk that are read at once

    Raises: FormatError for anything but a plain file, for one that is too large, and for a damaged pack; OSError.
    """
    text = os.fspath(path)
    if not is_remote(text):
        try:
            descriptor, status = plain.open_descriptor(text, max_bytes)
        except NotADirectoryError:
            if split_pack_path(text) is None:
                raise
        else:
            try:
                head = os.read(descriptor, min(head_bytes, status.st_size)) if head_bytes else b""
            except OSError:
                os.close(descriptor)
                raise
            return OpenFile(status.st_size, head, None, descriptor, (status.st_dev, status.st_ino))
    found = _find(text)
    if isinstance(found, RemoteSource):
        file = OpenFile(found.size, b"", found.array)
    else:
        pack, member = found
        # Reading ahead would fetch data where only a header is asked for.
        file = OpenFile(member.size, member.head, functools.partial(pack.array, member))
    if max_bytes is not None and file.size > max_bytes:
        raise FormatError(f"{text}: expected at most {max_bytes} bytes, got {file.size}.")
    return file


def _find(text: str) -> RemoteSource | tuple[Pack, Member]:
    """The object, or the pack and its member, that a path names.   Raises: FormatError; OSError."""
    places = split_pack_path(text)
    if places is None or not places[1]:
        return _remote_source(canonical(text))
    pack = pack_at(places[0])
    member = pack.member(places[1])
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


def read_file(path: PathLike, max_bytes: int = SIDE_BYTES) -> bytes:
    """Content of a file.   Raises: as `open_file`."""
    text = os.fspath(path)
    if not is_remote(text) and split_pack_path(text) is None:
        return plain.read_plain(text, max_bytes)
    with open_file(text, max_bytes) as file:
        return file.read(0, file.size)


def map_file(path: PathLike) -> Array:
    """Bytes of a file, (n,) uint8, read-only and mapped where that can be.   Raises: as `open_file`."""
    with open_file(path) as file:
        return file.array(0, file.size)


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
    places = split_pack_path(text)
    if places is None or not places[1]:
        return None
    try:
        pack = pack_at(places[0])
    except (OSError, FormatError):
        return None
    member = pack.member(places[1])
    return None if member is None else (pack, member)


# -- folders -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Listed:
    """What lies in one archive or below one address: names of files by folder, what is no file, and what of the archive
    could not be understood, in words."""

    names_by_folder: dict[str, list[str]]
    foreign: tuple[str, ...] = ()
    damage: tuple[str, ...] = ()


def exists(path: PathLike) -> bool:
    """Whether a path leads to anything.   Raises: ConfigError; FormatError when a store cannot be read."""
    text = os.fspath(path)
    if not is_remote(text):
        return os.path.exists(text) or _member_exists(text)
    places = split_pack_path(text)
    if places is not None and places[1]:
        return _member_exists(text)
    return bool(objects_below(canonical(text)))


def _member_exists(text: str) -> bool:
    places = split_pack_path(text)
    if places is None or not places[1] or os.path.isdir(places[0]):
        return False
    try:
        members = pack_at(places[0]).contents.members
    except (OSError, FormatError):
        return False
    return places[1] in members or any(name.startswith(f"{places[1]}/") for name in members)


def is_folder(path: PathLike) -> bool:
    """Whether a path leads to something that holds files: a folder, a pack, a folder of a pack, or such an address."""
    text = os.fspath(path)
    places = split_pack_path(text)
    if not is_remote(text):
        if os.path.isdir(text):
            return True
        if places is None or not os.path.isfile(places[0]):
            return False
    elif places is None:
        return find_object(canonical(text)) is None
    assert places is not None
    return not places[1] or pack_at(places[0]).member(places[1]) is None


def absolute(path: PathLike) -> Path:
    """The path from the root; an address as it is."""
    text = os.fspath(path)
    return Address(canonical(text)) if is_remote(text) else Path(os.path.abspath(text))


def folder_below(root: PathLike, path: PathLike) -> str:
    """Folder of a file as seen from another, "." for that itself; packs on the way are left out, as `unpack` does."""
    base, folder = (canonical(os.fspath(one)) for one in (root, os.path.dirname(path)))
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
    places = split_pack_path(folder)
    if places is None:
        return {}
    try:
        originals = pack_at(places[0]).contents.originals
    except (OSError, FormatError):
        return {}
    start = f"{places[1]}/" if places[1] else ""
    return {name[len(start) :]: original for name, original in originals.items() if name.startswith(start)}


def files_in(folder: PathLike, suffix: str) -> list[str]:
    """Paths of the files of a folder, or links, whose names end so, sorted; none where there is no such folder."""
    text = os.fspath(folder)
    if is_remote(text):
        url = canonical(text)
        return sorted(f"{at}/{name}" for at, name in list_remote(url) if at == url and name.endswith(suffix))
    if os.path.isdir(text):
        return sorted(os.path.join(text, name) for name in os.listdir(text) if name.endswith(suffix))
    places = split_pack_path(text)
    if places is None or not os.path.isfile(places[0]):
        return []
    names = list_pack(*places).names_by_folder.get(text, [])
    return sorted(f"{text}/{name}" for name in names if name.endswith(suffix))


def list_remote(url: str) -> Iterator[tuple[str, str]]:
    """(folder, name) of each object below an address.   Raises: ConfigError; FormatError."""
    for one in objects_below(canonical(url)):
        folder, _, name = one.url.rpartition("/")
        if name:
            yield folder, name

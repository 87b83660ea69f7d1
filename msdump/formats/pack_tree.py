"""Folders of dumps into packs and back, and packs whose writer was killed made whole."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from msdump.errors import FormatError, WriteError
from msdump.formats.append_file import append_text
from msdump.formats.atomic import Folder, make_dirs
from msdump.formats.dump_dir import DumpDir
from msdump.formats.dump_folders import DumpedFolder
from msdump.formats.dump_tensor import DumpedFile
from msdump.formats.folders import write_error
from msdump.formats.pack import PackFolder, described
from msdump.formats.paths.parse import MSPROBE, Place, parse_dump_name
from msdump.formats.paths.sync import MAPPING_FILE, STATISTIC_FILE
from msdump.formats.sidecars import append_mapping
from msdump.plain_files import unreadable
from msdump.storage.files import map_file
from msdump.storage.pack_format import (
    BLOCK,
    PART_SUFFIX,
    SUFFIX,
    Contents,
    Member,
    end_of_pack,
    header,
    padding,
    read_contents,
)
from msdump.storage.packs import is_pack_name, open_pack
from msdump.storage.sources import Source

_MODE, _DIR_MODE = 0o600, 0o700
_TEXTS = (STATISTIC_FILE, MAPPING_FILE)


@dataclass(frozen=True, slots=True)
class Packed:
    """One pack.   members: files in it; size_bytes: of the archive; lost: why something of it was left out, or "" """

    path: str
    members: int
    size_bytes: int
    lost: str = ""


def pack_tree(root: str | os.PathLike[str], keeps_folders: bool = False) -> Iterator[Packed]:
    """Put each folder of an iteration below `root` into a pack beside it, then remove the folder.

    keeps_folders  leave them where they are
    Edges:   msprobe's folders stay, which its own tools read; so do those of constants, and what is no plain file.
    Raises:  FormatError, WriteError; a folder is removed only when its pack is whole, and only what is in the pack.
    """
    dump = DumpDir.open(root)
    for folder in dump.folders():
        if folder.place.iteration is None or folder.place.layout == MSPROBE or not os.path.isdir(folder.path):
            continue
        yield _pack(folder, keeps_folders)


def _pack(folder: DumpedFolder, keeps_folder: bool) -> Packed:
    pack = PackFolder(Path(folder.path), _MODE, _DIR_MODE)
    first: dict[tuple[int, int], str] = {}
    try:
        for name in folder.names:
            path = os.path.join(folder.path, name)
            status = os.stat(path, follow_symlinks=False)
            known = first.setdefault((status.st_dev, status.st_ino), name)
            if known != name:
                pack.link(known, name)
                continue
            chunks, tensors_from = _chunks(folder.place, path, name)
            pack.write(name, chunks, status.st_mode & 0o777, tensors_from=tensors_from)
    except OSError as error:
        raise unreadable(folder.path, error) from error
    whole = pack.finish()
    if not keeps_folder:
        _remove(folder)
    return Packed(whole, len(folder.names), os.path.getsize(whole))


def _chunks(place: Place, path: str, name: str) -> tuple[list[memoryview], int]:
    """Bytes of a file, cut where its tensors begin, so that each gets a hash; (chunks, number of the first tensor)."""
    raw = map_file(path).data
    parsed = parse_dump_name(name)
    if parsed is None or not raw.nbytes:
        return [raw], 0
    tensors, errors = DumpedFile(path, place, parsed, name).scan()
    parts = sorted((tensor.offset, tensor.size_bytes) for tensor in tensors if tensor.size_bytes)
    ends = [*(start for start, _ in parts[1:]), raw.nbytes]
    # Gaps, or data that the file does not tell the place of: then the file as a whole.
    if errors or not parts or parts[0][0] <= 0 or any(a + n != end for (a, n), end in zip(parts, ends, strict=True)):
        return [raw], 0
    return [raw[: parts[0][0]], *(raw[start : start + size] for start, size in parts)], 1


def _remove(folder: DumpedFolder) -> None:
    try:
        for name in folder.names:
            os.unlink(os.path.join(folder.path, name))
        if not os.listdir(folder.path):
            os.rmdir(folder.path)
    except OSError as error:
        raise write_error(folder.path, "to remove this folder, which is packed", error) from error


def unpack_tree(root: str | os.PathLike[str], keeps_packs: bool = False) -> Iterator[Packed]:
    """Put the files of each pack at or below `root` where the pack lies, as `tar xf` does, then remove the pack.

    keeps_packs  leave them where they are
    Edges:   rows of statistic.csv and mapping.csv join those of a file that is there.
    Raises:  FormatError for a pack that is damaged or that leads out of its folder; WriteError, also where a file of
             that name is there already; the pack stays then.
    """
    for path in _packs_below(root):
        with _readable(path):
            contents = open_pack(path).contents
        unpacked = _unpack(path, contents)
        if not keeps_packs:
            os.unlink(path)
        yield unpacked


def _unpack(path: str, contents: Contents) -> Packed:
    source = open_pack(path).source
    home = os.path.dirname(os.path.abspath(path))
    names: dict[int, str] = {}
    folders: dict[str, Folder] = {}
    # Of a pack that was cut; others have a mapping.csv.
    is_told = any(name.endswith(f"/{MAPPING_FILE}") for name in contents.members)
    originals = {} if is_told else contents.originals
    try:
        for member in contents.members.values():
            below, _, name = member.name.rpartition("/")
            if below not in folders:
                make_dirs(os.path.join(home, below), _DIR_MODE)
                folders[below] = Folder(os.path.join(home, below))
            if member.name in originals:
                append_mapping(folders[below], name, originals[member.name], _MODE)
            origin = names.setdefault(member.offset, member.name)
            if member.is_link and origin != member.name:
                above, _, first = origin.rpartition("/")
                folders[below].link(first, name, folders[above])
                continue
            data = source.array(member.offset, member.size)
            if name in _TEXTS and folders[below].has(name):
                _append_rows(os.path.join(home, member.name), data.tobytes().decode(errors="backslashreplace"))
            else:
                folders[below].write(name, [data.data] if data.size else [], _mode_of(source, member.offset))
    finally:
        for folder in folders.values():
            folder.close()
    return Packed(path, len(contents.members), source.size)


def _mode_of(source: Source, offset: int) -> int:
    """Of a file, by the header before its data; nobody else gets more than its owner had."""
    digits = source.read(offset - BLOCK + 100, 7)
    return int(digits, 8) & 0o777 if digits.isdigit() and not digits.strip(b"01234567") else _MODE


def _append_rows(path: str, text: str) -> None:
    if path.endswith(STATISTIC_FILE):
        head, _, text = text.partition("\n")
        with open(path, encoding="utf-8", errors="backslashreplace") as file:
            there = file.readline().rstrip("\n")
        if there != head:
            raise WriteError(f"{path}: expected the columns {head[:300]}, got {there[:300]}. Unpack elsewhere.")
    append_text(path, text, _MODE)


def recover_tree(root: str | os.PathLike[str]) -> Iterator[Packed]:
    """Give each pack at or below `root` that was never finished, or has lost its end, an index and its name.

    What a killed writer had begun is cut off: the last member, if it is not whole.
    Edges:   a pack that somebody writes now is left alone, which `lost` says; whole packs are not touched.
    Raises:  FormatError for an archive that no pack is; WriteError.
    """
    for path in _packs_below(root):
        if path.endswith(PART_SUFFIX) or not _is_whole(path):
            yield _recover(path)


def _is_whole(path: str) -> bool:
    try:
        return open_pack(path).contents.has_index
    except FormatError:
        return False


def _recover(path: str) -> Packed:
    with _readable(path):
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            os.fchmod(fd, _MODE)
        finally:
            os.close(fd)
        fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return Packed(path, 0, os.fstat(fd).st_size, "somebody writes into it")
        size = os.fstat(fd).st_size
        contents = read_contents(path, size, lambda offset, count: os.pread(fd, count, offset), ignores_index=True)
        if not contents.members:
            raise FormatError(f"{path}: expected members, got none that is whole. Remove it.")
        # A damaged index must not be asked about what is left.
        os.ftruncate(fd, contents.end)
        members = [_described(path, member) for member in contents.members.values()]
        end = _append_end(fd, path, members, contents)
    except OSError as error:
        raise write_error(path, "to recover this pack", error) from error
    finally:
        os.close(fd)
    whole = _named_whole(path)
    lost = "" if contents.is_whole else f"{size - contents.end} bytes of a member that was cut"
    return Packed(whole, len(members), end, lost)


def _described(path: str, member: Member) -> Member:
    """With what an index has of it."""
    file = f"{path}/{member.name}"
    chunks, tensors_from = _chunks(Place(), file, member.name.rpartition("/")[2])
    head, hashes = described([chunk for chunk in chunks if chunk.nbytes], tensors_from)
    return replace(member, head=head, hashes=hashes)


def _append_end(fd: int, path: str, members: list[Member], contents: Contents) -> int:
    """End a file of whole members as a pack; returns its size.   Raises: OSError."""
    folder = members[0].name.partition("/")[0]
    now, at = int(time.time()), contents.end
    mapping = f"{folder}/{MAPPING_FILE}"
    if contents.originals and mapping not in contents.members:
        rows = [f"{name.rpartition('/')[2]},{original}\n" for name, original in contents.originals.items()]
        text = "".join(rows).encode(errors="surrogateescape")
        blocks = header(mapping, len(text), _MODE, now)
        _write(fd, blocks + text + bytes(padding(len(text))), at)
        members.append(Member(mapping, at + len(blocks), len(text)))
        at += len(blocks) + len(text) + padding(len(text))
    end = end_of_pack(folder, members, at, _MODE, now)
    _write(fd, end, at)
    return at + len(end)


def _write(fd: int, data: bytes, place: int) -> None:
    while data:
        count = os.pwrite(fd, data, place)
        if not count:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        data, place = data[count:], place + count


def _named_whole(path: str) -> str:
    """Rename what is whole now.   Raises: WriteError."""
    if not path.endswith(PART_SUFFIX):
        return path
    stem, number = path.removesuffix(PART_SUFFIX), 0
    while os.path.lexists(name := f"{stem}.{number}{SUFFIX}" if number else f"{stem}{SUFFIX}"):
        number += 1
    try:
        os.rename(path, name)
    except OSError as error:
        raise write_error(path, f"to rename it to {name}", error) from error
    return name


# -- both --------------------------------------------------------------------------------------------------------------


def _packs_below(root: str | os.PathLike[str]) -> list[str]:
    """Archives at a path or below it, links left out.   Raises: FormatError when there is nothing at the path."""
    top = os.fspath(root)
    if not os.path.lexists(top):
        raise FormatError(f"{top}: expected a pack or a folder of them, got nothing. Is it mounted?")
    if not os.path.isdir(top):
        return [top]
    found = []
    for folder, _, names in os.walk(top):
        paths = [os.path.join(folder, name) for name in names if is_pack_name(name)]
        found += [path for path in paths if os.path.isfile(path) and not os.path.islink(path)]
    return sorted(found)


@contextlib.contextmanager
def _readable(path: str) -> Iterator[None]:
    """Raises: FormatError in the place of an OSError."""
    try:
        yield
    except OSError as error:
        raise unreadable(path, error) from error

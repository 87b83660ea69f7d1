"""Folders of dumps into packs and back. Only what the other form holds byte for byte is removed."""

from __future__ import annotations

import contextlib
import mmap
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from msdump.errors import FormatError, WriteError
from msdump.formats.atomic import SIBLING, Folder, make_dirs
from msdump.formats.dump_dir import DumpDir
from msdump.formats.dump_folders import DumpedFolder
from msdump.formats.dump_tensor import DumpedFile
from msdump.formats.folders import held_for_change, try_lock, write_error
from msdump.formats.pack import PackFolder
from msdump.formats.paths.parse import MSPROBE, FolderLevels, parse_dump_name
from msdump.formats.paths.sync import MAPPING_FILE, STATISTIC_FILE
from msdump.formats.sidecars import append_mapping, read_mapping
from msdump.storage.files import map_file
from msdump.storage.pack_format import BLOCK, SUFFIX
from msdump.storage.pack_index import read_contents
from msdump.storage.pack_scan import ArchiveContents, scan
from msdump.storage.packs import LocalSource, Source, has_wrong_hash, is_pack_name, stamp_of
from msdump.storage.plain import OPEN_FLAGS, readable

_MODE, _DIR_MODE = 0o600, 0o700
_TEXTS = (STATISTIC_FILE, MAPPING_FILE)
_NAMED = 5
_STEP = 1 << 20


@dataclass(frozen=True, slots=True)
class Packed:
    """What became of one pack.

    members, size_bytes  files in it, and bytes of the archive
    lost     why something was left out or left as it is, or ""
    """

    path: str
    members: int
    size_bytes: int
    lost: str = ""


def named(names: Iterable[str]) -> str:
    """The first of some names, and how many more there are."""
    every = list(names)
    more = f" and {len(every) - _NAMED} more" if len(every) > _NAMED else ""
    return f"{', '.join(every[:_NAMED])}{more}"


# -- packing -----------------------------------------------------------------------------------------------------------


def pack_tree(root: str | os.PathLike[str], keeps_folders: bool = False) -> Iterator[Packed]:
    """Put each folder of an iteration below `root` into a pack beside it, then remove the folder.

    keeps_folders  leave them where they are
    Edges:   msprobe's folders stay, which its own tools read; so do those of constants, and what is no plain file. A
             folder that a whole pack beside it holds already is not packed again. One that a process dumps into is left
             alone, which `lost` says.
    Raises:  FormatError, WriteError; a folder is removed only when its pack is whole, and only what is in the pack.
    """
    dump = DumpDir.open(root)
    for folder in dump.folders():
        if folder.levels.iteration is None or folder.levels.grammar == MSPROBE or not os.path.isdir(folder.path):
            continue
        with held_for_change([folder.path, os.path.dirname(folder.path)]) as busy:
            yield Packed(folder.path, 0, 0, busy) if busy else _pack(folder, keeps_folders)


def _pack(folder: DumpedFolder, keeps_folder: bool) -> Packed:
    files, others = _files_of(folder.path)
    lost = f"{named(others)}: no plain files" if others else ""
    if not files:
        return Packed(folder.path, 0, 0, lost or "its files are gone")
    whole = next((path for path in _packs_beside(folder.path) if _holds(path, folder.path, files)), "")
    if not whole:
        with readable(folder.path):
            whole = write_pack(folder, files)
    if not keeps_folder:
        changed = _remove(folder.path, files)
        lost = "; ".join(filter(None, (lost, f"{named(changed)}: changed meanwhile" if changed else "")))
    return Packed(whole, len(files), os.path.getsize(whole), lost)


def _files_of(path: str) -> tuple[dict[str, os.stat_result], list[str]]:
    """Plain files of a folder with their state, and names of what else would be left out of a pack."""
    files: dict[str, os.stat_result] = {}
    others: list[str] = []
    with readable(path):
        for place in (path, os.path.dirname(path)):
            with Folder(place) as folder:
                folder.remove_leftovers()
        with os.scandir(path) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if entry.is_dir(follow_symlinks=False) or SIBLING.fullmatch(entry.name):
                    continue
                if entry.is_file(follow_symlinks=False) and not is_pack_name(entry.name):
                    files[entry.name] = entry.stat(follow_symlinks=False)
                else:
                    others.append(entry.name)
    return files, others


def write_pack(folder: DumpedFolder, files: Mapping[str, os.stat_result]) -> str:
    """Path of a new pack of these files of a folder.   Raises: OSError."""
    pack = PackFolder(Path(folder.path), _MODE, _DIR_MODE, is_copy=True)
    first: dict[tuple[int, int], str] = {}
    try:
        for name, status in files.items():
            known = first.setdefault((status.st_dev, status.st_ino), name)
            if known != name:
                pack.link(known, name)
                continue
            chunks, tensors_from = chunks_of(folder.levels, os.path.join(folder.path, name), name)
            pack.write(name, chunks, status.st_mode & 0o777, tensors_from=tensors_from)
        return pack.finish()
    finally:
        pack.discard()


def _packs_beside(path: str) -> list[str]:
    """Packs that may be of a folder, by their names."""
    parent, name = os.path.split(path)
    paths = [os.path.join(parent, one) for one in os.listdir(parent) if one.endswith(SUFFIX)]
    return sorted(one for one in paths if _stem(one) == name and os.path.isfile(one) and not os.path.islink(one))


def _stem(path: str) -> str:
    """Name of the folder that a pack is of: it has a number behind it where another pack had that name."""
    stem = os.path.basename(path).removesuffix(SUFFIX)
    before, dot, number = stem.rpartition(".")
    return before if dot and number.isdigit() else stem


def _holds(path: str, folder: str, files: Mapping[str, os.stat_result]) -> bool:
    """Whether a whole pack holds every file of a folder."""
    try:
        source = LocalSource(path)
        contents = scan(path, source.size, source.read)
        if contents.damage or contents.own_time is None:
            return False
        for name, status in files.items():
            member = contents.members.get(f"{os.path.basename(folder)}/{name}")
            if member is None or member.size != status.st_size:
                return False
            if source.read(member.offset, member.size) != map_file(os.path.join(folder, name)).tobytes():
                return False
    except (FormatError, OSError):
        return False
    return bool(files)


def chunks_of(place: FolderLevels, path: str, name: str) -> tuple[list[memoryview], int]:
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


def _remove(path: str, files: Mapping[str, os.stat_result]) -> list[str]:
    """Remove the files of a folder that are as they were, and the folder when it is empty; names of the others."""
    changed = []
    try:
        for name, status in files.items():
            file = os.path.join(path, name)
            if stamp_of(os.stat(file, follow_symlinks=False)) == stamp_of(status):
                os.unlink(file)
            else:
                changed.append(name)
        if not os.listdir(path):
            os.rmdir(path)
    except OSError as error:
        raise write_error(path, "to remove this folder, which is packed", error) from error
    return changed


# -- unpacking ---------------------------------------------------------------------------------------------------------


def unpack_tree(root: str | os.PathLike[str], keeps_packs: bool = False) -> Iterator[Packed]:
    """Put the files of each pack at or below `root` where the pack lies, as `tar xf` does, then remove the pack.

    keeps_packs  leave them where they are
    Edges:   a pack stays that is not whole or not understood, which `lost` says; so does one beside files of a process
             that dumps. Files that are there with equal bytes count as done; rows of statistic.csv and mapping.csv join
             those of a file that is there. Nobody but the owner may write a file, and none may be run.
    Raises:  FormatError for a pack that leads out of its folder; WriteError, also where another file of that name is
             there; the pack stays then.
    """
    for path in packs_below(root):
        with readable(path):
            source = LocalSource(path)
        contents = scan(path, source.size, source.read)
        home = os.path.dirname(os.path.abspath(path))
        below = {name.rpartition("/")[0] for name in contents.members} | set(contents.folders)
        with held_for_change([home, *(os.path.join(home, one) for one in below)]) as busy, alone(path) as is_alone:
            if busy or not is_alone:
                yield Packed(path, 0, source.size, busy or "another process writes it now")
            else:
                yield _unpack(path, home, source, contents, keeps_packs)


def _unpack(path: str, home: str, source: LocalSource, contents: ArchiveContents, keeps_pack: bool) -> Packed:
    is_wrong, problems = _problems(path, source, contents)
    _extract(home, source, contents, is_wrong)
    if not keeps_pack and not problems:
        with readable(path):
            if stamp_of(os.stat(path, follow_symlinks=False)) != source.stamp:
                problems.append("it has changed meanwhile")
            else:
                os.unlink(path)
    return Packed(path, len(contents.members) - len(is_wrong), source.size, "; ".join(problems))


def _problems(path: str, source: LocalSource, contents: ArchiveContents) -> tuple[set[str], list[str]]:
    """Names of members whose bytes are not those that the index tells, and all that is not whole or not understood."""
    problems = list(contents.damage)
    if contents.foreign:
        problems.append(f"{named(contents.foreign)}: no plain files")
    is_wrong: set[str] = set()
    try:
        indexed = read_contents(path, source.size, source.read, search_bytes=0)
    except FormatError as error:
        return is_wrong, [*problems, str(error)]
    if indexed.has_index:
        missing = [
            one.name
            for one in indexed.members.values()
            if (own := contents.members.get(one.name)) is None or (own.offset, own.size) != (one.offset, one.size)
        ]
        if missing:
            problems.append(f"{named(missing)}: in the index, and no header says so")
        hashed = [one for one in indexed.members.values() if one.name not in missing]
        is_wrong = {one.name for one in hashed if has_wrong_hash(source, one)}
        if is_wrong:
            problems.append(f"{named(sorted(is_wrong))}: other bytes than those that the index has the hashes of")
    return is_wrong, problems


def _extract(home: str, source: Source, contents: ArchiveContents, without: set[str]) -> None:
    """Write the members, but for some, into folders below `home`."""
    names: dict[int, str] = {}
    folders: dict[str, Folder] = {}
    # Of a pack that was cut; others have a mapping.csv.
    is_told = any(name.endswith(f"/{MAPPING_FILE}") for name in contents.members)
    originals = {} if is_told else contents.originals
    try:
        for below in contents.folders:
            make_dirs(os.path.join(home, below), _DIR_MODE)
        # No file without its meaning, also when this process is killed.
        for member in sorted(contents.members.values(), key=lambda one: not one.name.endswith(f"/{MAPPING_FILE}")):
            if member.name in without:
                continue
            below, _, name = member.name.rpartition("/")
            if below not in folders:
                make_dirs(os.path.join(home, below), _DIR_MODE)
                folders[below] = Folder(os.path.join(home, below))
                with contextlib.suppress(OSError):
                    folders[below].remove_leftovers()
            folder = folders[below]
            if member.name in originals:
                _map_name(folder, name, originals[member.name])
            origin = names.setdefault(member.offset, member.name)
            data = source.array(member.offset, member.size).data if member.size else memoryview(b"")
            if member.is_link and origin != member.name:
                above, _, first = origin.rpartition("/")
                if not _is_there(folder, name, data):
                    folder.link(first, name, folders[above])
            elif name in _TEXTS and folder.has(name):
                _join_rows(folder, name, bytes(data))
            elif not _is_there(folder, name, data):
                folder.write(name, [data] if data.nbytes else [], _mode_of(source, member.offset))
    finally:
        for folder in folders.values():
            folder.close()


def _mode_of(source: Source, offset: int) -> int:
    """Of a file, by the header before its data: its owner may read it, others what the header lets them read."""
    digits = source.read(offset - BLOCK + 100, 7)
    mode = int(digits, 8) if digits.isdigit() and not digits.strip(b"01234567") else _MODE
    return mode & 0o644 | stat.S_IRUSR


def _is_there(folder: Folder, name: str, data: memoryview) -> bool:
    """Whether a plain file of these bytes has the name."""
    try:
        fd = folder.open_file(name, os.O_RDONLY)
    except OSError:
        return False
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_size != data.nbytes:
            return False
        if not data.nbytes:
            return True
        with mmap.mmap(fd, 0, access=mmap.ACCESS_READ) as there:
            return all(
                there[start : start + _STEP] == data[start : start + _STEP] for start in range(0, data.nbytes, _STEP)
            )
    except (OSError, ValueError):
        return False
    finally:
        os.close(fd)


def _map_name(folder: Folder, name: str, original: str) -> None:
    path = os.path.join(folder.path, MAPPING_FILE)
    if not folder.has(MAPPING_FILE) or read_mapping(path).get(name) != original:
        append_mapping(folder, name, original, _MODE)


def _join_rows(folder: Folder, name: str, rows: bytes) -> None:
    """Add the rows of a table to one that is there, unless it has them: a killed process may have come so far."""
    where = os.path.join(folder.path, name)
    with readable(where):
        fd = folder.open_file(name, os.O_RDONLY)
        with os.fdopen(fd, "rb") as file:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode):
                raise WriteError(f"{where}: expected a plain file, got something else. Remove it.")
            there = file.read()
    there = there[: there.rfind(b"\n") + 1]
    if name == STATISTIC_FILE:
        head, _, rows = rows.partition(b"\n")
        if there.partition(b"\n")[0] != head:
            texts = [one[:300].decode(errors="backslashreplace") for one in (head, there.partition(b"\n")[0])]
            raise WriteError(f"{where}: expected the columns {texts[0]}, got {texts[1]}. Unpack elsewhere.")
    if b"\n" + rows not in b"\n" + there:
        folder.write(name, [there, rows], stat.S_IMODE(status.st_mode), replace=True)


# -- both, and recovering ----------------------------------------------------------------------------------------------


def packs_below(root: str | os.PathLike[str]) -> list[str]:
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
def alone(path: str) -> Iterator[bool]:
    """Whether no other process writes the pack at a path; none may begin to, inside of the block."""
    with readable(path):
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | OPEN_FLAGS)
    try:
        yield try_lock(fd)
    finally:
        os.close(fd)

"""Which folders of a dump hold files: on the disk, in packs, and below an address of an object store.

Links that lead out of a dump are not followed, and cycles of links end.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from msdump.errors import FormatError
from msdump.formats.other_tools.files import divide
from msdump.formats.other_tools.members import natural_key
from msdump.formats.paths.parse import BARE, FX, MSPROBE, FolderLevels, parse_folder, parse_msprobe_name
from msdump.storage import files as storage
from msdump.storage.pack_format import PART_SUFFIX
from msdump.storage.packs import is_pack_name, split_pack_path, without_packs
from msdump.storage.plain import is_temporary, readable, unreadable
from msdump.storage.remote import is_remote

_MAX_DEPTH = 40


@dataclass(frozen=True, slots=True)
class DumpedFolder:
    """One folder of a dump and the names of its plain files, sorted.

    scope   of a folder of another tool: folders on the way to it that are parts of the names of its tensors, joined by
            "/"; such a folder is there once for each rank and iteration that its files are of
    """

    path: str
    levels: FolderLevels
    names: tuple[str, ...]
    scope: str = ""


class FolderWalk:
    """The folders at a path, which may be that of one file.

    damage   called with the path of a folder or pack that cannot be listed, and why
    foreign  takes the paths that belong to no dump
    """

    def __init__(self, path: Path, damage: Callable[[str, FormatError], None], foreign: set[str]) -> None:
        self._path = path
        self._damage = damage
        self._foreign = foreign

    def folders(self) -> list[DumpedFolder]:
        """Every folder that holds files, in the order in which a run fills them. They are listed now."""
        path = os.fspath(self._path)
        root = path if is_remote(path) or storage.is_folder(path) else os.fspath(self._path.parent)
        return sorted(_with_other_tools(root, self._listed(path)), key=_folder_order)

    def _listed(self, path: str) -> list[DumpedFolder]:
        if is_remote(path):
            return self._remote_folders(path)
        if not storage.is_folder(path):
            parent = os.fspath(self._path.parent)
            return [DumpedFolder(parent, _levels_of(parent), (self._path.name,))]
        if not os.path.isdir(path):
            return self._packed_folders(path)
        return self._local_folders()

    def _packed_folders(self, path: str) -> list[DumpedFolder]:
        """Folders in a pack, or below one of its folders; none where it is damaged."""
        pack, below = split_pack_path(path) or (path, "")
        try:
            with readable(path):
                listed = storage.list_pack(pack, below)
        except FormatError as error:
            self._damage(path, error)
            return []
        self._foreign.update(listed.foreign)
        if listed.damage:
            self._damage(pack, FormatError(f"{pack}: expected a whole archive, got {'; '.join(listed.damage)}."))
        return _folders(listed.names_by_folder)

    def _remote_folders(self, path: str) -> list[DumpedFolder]:
        pack_parts = split_pack_path(path)
        if pack_parts is not None and pack_parts[1]:
            return self._packed_folders(path)
        found: list[DumpedFolder] = []
        names_by_folder: dict[str, list[str]] = {}
        for folder, name in storage.list_remote(path):
            if is_pack_name(name):
                found += self._packed_folders(f"{folder}/{name}")
            else:
                names_by_folder.setdefault(folder, []).append(name)
        return [*found, *_folders(names_by_folder)]

    def _local_folders(self) -> list[DumpedFolder]:
        root = os.path.realpath(self._path)
        folders: list[DumpedFolder] = []
        seen: set[tuple[int, int]] = set()
        waiting = [(os.fspath(self._path), 0)]
        while waiting:
            path, depth = waiting.pop()
            names: list[str] = []
            packs: dict[str, int] = {}
            try:
                status = os.stat(path)
                if (status.st_dev, status.st_ino) in seen or depth > _MAX_DEPTH:
                    continue
                seen.add((status.st_dev, status.st_ino))
                with os.scandir(path) as entries:
                    for entry in entries:
                        if entry.is_dir(follow_symlinks=False):
                            if not is_temporary(entry.name):
                                waiting.append((entry.path, depth + 1))
                        elif entry.is_file(follow_symlinks=False) or _stays_inside(entry, root):
                            if is_pack_name(entry.name):
                                packs[entry.path] = entry.inode()
                            else:
                                names.append(entry.name)
                        else:
                            self._foreign.add(entry.path)
            except OSError as error:
                self._damage(path, unreadable(path, error))
            for pack in _packs_once(packs):
                folders += self._packed_folders(pack)
            if names:
                folders.append(DumpedFolder(path, _levels_of(path), tuple(sorted(names))))
        return folders


def _with_other_tools(root: str, folders: Sequence[DumpedFolder]) -> Iterator[DumpedFolder]:
    """The folders, those that no grammar of dumps knows by the ranks and iterations of other tools."""
    others = [folder for folder in folders if _is_of_another_tool(folder)]
    known = {id(folder) for folder in others}
    yield from (folder for folder in folders if id(folder) not in known)
    for path, parts in divide(root, [(folder.path, folder.names) for folder in others]):
        yield from (DumpedFolder(path, part.levels, part.names, part.scope) for part in parts)


def _is_of_another_tool(folder: DumpedFolder) -> bool:
    grammar = folder.levels.grammar
    if grammar == MSPROBE:
        # Its folders are called as others may call theirs, but it leaves none without its records.
        return not any(name.endswith(".json") or parse_msprobe_name(name) is not None for name in folder.names)
    return grammar == BARE


def _packs_once(packs: Mapping[str, int]) -> list[str]:
    """Packs of a folder, by path with their inodes, without those that are also there under their last names: a writer
    that was killed meanwhile leaves both."""
    whole = {inode for path, inode in packs.items() if not path.endswith(PART_SUFFIX)}
    return [path for path, inode in packs.items() if not (path.endswith(PART_SUFFIX) and inode in whole)]


def _folders(names_by_folder: Mapping[str, Sequence[str]]) -> list[DumpedFolder]:
    return [
        DumpedFolder(folder, _levels_of(folder), tuple(sorted(names)))
        for folder, names in names_by_folder.items()
        if names
    ]


def _folder_order(folder: DumpedFolder) -> tuple[Any, ...]:
    """Ranks, then time. Where each graph counts steps of its own, only the time stamps of files tell what came first;
    the latest one, as where two runs share a folder the newer one counts."""
    stamps = []
    if folder.levels.grammar == FX:
        stamps = [stamp for name in folder.names if (stamp := name.rpartition(".npy")[0].rpartition(".")[2]).isdigit()]
    rank, time, *rest = folder.levels.sort_key
    path: tuple[str | int, ...] = natural_key(folder.path) if folder.levels.grammar == BARE else (folder.path,)
    return (rank, max(stamps, default=time), *rest, path)


def _stays_inside(entry: os.DirEntry[str], root: str) -> bool:
    """True for a link to a plain file below the root."""
    return entry.is_symlink() and os.path.exists(entry.path) and is_plain_below(entry.path, root)


def is_plain_below(path: str | os.PathLike[str], root: str | os.PathLike[str]) -> bool:
    """True for a plain file that lies below the root, links resolved; packs and stores lead nowhere else."""
    target = os.path.realpath(path)
    if not os.path.isfile(target):
        return storage.exists(path) and not os.path.lexists(path)
    real = os.path.realpath(root)
    return os.path.commonpath((real, target)) == real


def _levels_of(path: str) -> FolderLevels:
    """What a folder's path says; packs on the way stand for nothing."""
    parts = path.split(os.sep)
    plain = without_packs(parts)
    levels = parse_folder(plain)
    if len(plain) == len(parts) or not levels.rank_depth:
        return levels
    return replace(levels, rank_depth=depth_with_packs(parts, levels.rank_depth))


def depth_with_packs(parts: Sequence[str], depth: int) -> int:
    """How many parts of a path lead as deep as so many that are no packs."""
    found = depth
    while len(without_packs(parts[:found])) < depth:
        found += 1
    return found

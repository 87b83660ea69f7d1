"""Which dumps lie below a folder, by the names of folders and files alone.

for found in dumps_below("runs"):
    found.path, found.ranks, found.iterations
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from msdump.analysis.overview.listing import distinct
from msdump.formats.dump_dir import DumpDir
from msdump.formats.dump_folders import DumpedFolder, depth_with_packs
from msdump.formats.paths.parse import FolderLevels, parse_dump_name, parse_folder, parse_msprobe_name
from msdump.storage.packs import is_pack_name, without_packs
from msdump.storage.remote import is_remote

_TABLES = ("statistic.csv", "dump.json")


@dataclass(frozen=True, slots=True)
class FoundDump:
    """One dump.

    path         its folder, absolute
    ranks, graphs, iterations  numbers that the names of its folders tell, ascending
    file_count   plain files, and files in packs
    """

    path: str
    ranks: tuple[int, ...]
    graphs: tuple[int, ...]
    iterations: tuple[int, ...]
    file_count: int


def dumps_below(path: str | os.PathLike[str]) -> list[FoundDump]:
    """Dumps of any form at a path or below it, by path. No file is opened but the index of a pack.

    Edges:  a dump that lies inside of the path's own, as that of a rank, is no dump of its own; none: an empty list.
    Raises: FormatError when there is nothing at the path.
    """
    path = os.fspath(path)
    opened = path if is_remote(path) else os.path.abspath(path)
    folders: dict[str, list[DumpedFolder]] = {}
    for folder in DumpDir.open(opened).folders():
        home = _home(folder)
        if home is not None:
            # The path may lead into a dump, as to one of its ranks.
            folders.setdefault(max(home, opened, key=len), []).append(folder)
    return [_found(home, folders[home]) for home in sorted(folders)]


def _home(folder: DumpedFolder) -> str | None:
    """The folder that holds rank_0, step0, the time or what a form has on top; None for no folder of a dump."""
    parts = folder.path.split(os.sep)  # addresses of stores too
    if folder.levels.rank_depth:
        return os.sep.join(parts[: folder.levels.rank_depth - 1])
    plain = without_packs(parts)
    # Folders of other tools have ranks and iterations too, which are no levels of a dump's.
    levels = parse_folder(plain)
    if levels != FolderLevels():
        # The longest tail that still says all of it, as the grammar has levels above that may be absent.
        below = next(n for n in range(1, len(plain) + 1) if parse_folder(plain[-n:]) == levels)
        return os.sep.join(parts[: depth_with_packs(parts, len(plain) - below)])
    if any(_is_of_dump(name) for name in folder.names):
        return folder.path
    return None


def _is_of_dump(name: str) -> bool:
    is_known = parse_dump_name(name) is not None or parse_msprobe_name(name) is not None
    return name in _TABLES or is_pack_name(name) or is_known


def _found(home: str, folders: list[DumpedFolder]) -> FoundDump:
    levels = [folder.levels for folder in folders]
    return FoundDump(
        home,
        distinct(level.rank_id for level in levels),
        distinct(level.graph_id for level in levels),
        distinct(level.iteration for level in levels),
        sum(len(folder.names) for folder in folders),
    )

"""Files of other tools as data files of a dump: folders by rank and iteration, and a `DumpedFile` for each tensor.

A file that holds many tensors is read for their names, as soon as its folder is listed; the tensors stay on disk.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from msdump.errors import FormatError
from msdump.formats.dump_tensor import DumpedFile
from msdump.formats.other_tools.containers import POLYGRAPHY, is_container, members_of, suffix_of
from msdump.formats.other_tools.layouts import FileName, Place, parse_file_name, place_of_folder, ranks_of, side_of
from msdump.formats.other_tools.members import Member, natural_key
from msdump.formats.paths import parse
from msdump.formats.paths.parse import DumpName, FolderLevels
from msdump.storage.packs import without_packs
from msdump.storage.plain import readable
from msdump.tensors.makers import maker

# The value of a file of SGLang's dumper, and what the file says about it.
_VALUE, _ABOUT = "value", "meta"
_dumped_file = maker(DumpedFile)

# Rank, number and name of the run, and iteration.
_Key = tuple[int | None, int | None, str | None, int | None]


@dataclass(frozen=True, slots=True)
class Divided:
    """What of a folder's files is of one rank and one iteration."""

    levels: FolderLevels
    scope: str
    names: tuple[str, ...]


def divide(root: str, folders: Iterable[tuple[str, Sequence[str]]]) -> Iterator[tuple[str, list[Divided]]]:
    """Paths of folders that no grammar of dumps knows, each with its parts by rank and iteration.

    root     the folder that was opened: names of folders below it are ranks, iterations or scopes
    folders  paths and the names of their files
    """
    at = _plain(root)
    placed = [(path, names, place_of_folder(at, _plain(path))) for path, names in folders]
    placed.sort(key=lambda one: natural_key(one[0]))
    pairs = [place.parallel for _, _, place in placed if place.parallel is not None]
    ranks = ranks_of(pairs) if pairs else {}
    used: set[tuple[FolderLevels, str]] = set()
    for path, names, place in placed:
        if place.parallel is not None and place.rank is None:
            place = replace(place, rank=ranks[place.parallel])
        parts = _divided(path, names, place)
        if any((part.levels, part.scope) in used for part in parts):
            # Another folder has tensors of that rank, iteration and scope: a/rank_1 beside rank_1/a.
            whole, number = os.path.relpath(_plain(path), at), 1
            parts = [replace(part, scope=whole) for part in parts]
            while any((part.levels, part.scope) in used for part in parts):
                number += 1  # x/step3.npz beside step_3/x, whose scope is all of the other's path
                parts = [replace(part, scope=f"{whole}#{number}") for part in parts]
        used |= {(part.levels, part.scope) for part in parts}
        yield path, parts


def _plain(path: str) -> str:
    return os.sep.join(without_packs(path.split(os.sep)))


def _divided(path: str, names: Sequence[str], place: Place) -> list[Divided]:
    groups: dict[_Key, list[str]] = {}
    for name in names:
        for key in _keys_of(os.path.join(path, name), name, place):
            groups.setdefault(key, []).append(name)
    return [
        Divided(
            FolderLevels(rank_id=rank, model=run_name, graph_id=run, iteration=iteration), place.scope, tuple(group)
        )
        for (rank, run, run_name, iteration), group in groups.items()
    ]


def _keys_of(path: str, name: str, place: Place) -> list[_Key]:
    suffix = suffix_of(name)
    if not suffix:
        return [(place.rank, None, None, place.iteration)]
    if suffix == POLYGRAPHY:
        return _runs_of(path, name, place) or [(place.rank, None, None, place.iteration)]
    said = parse_file_name(name, may_hold_many=True)
    rank = place.rank if said.rank is None else said.rank
    return [(rank, None, None, place.iteration if said.iteration is None else said.iteration)]


def _runs_of(path: str, name: str, place: Place) -> list[_Key]:
    """Runs and iterations of a file; none of one that is damaged, which is told when its tensors are asked for."""
    try:
        with readable(path):
            members = members_of(path, name).members if is_container(path, name) else ()
    except FormatError:
        return []
    keys = ((place.rank, one.run, one.run_name, _or_else(one.iteration, place.iteration)) for one in members)
    return list(dict.fromkeys(keys))


def _or_else(number: int | None, other: int | None) -> int | None:
    return other if number is None else number


class NamedFiles:
    """The data files of one folder of another tool, each tensor under a name of its own.

    scope   folders that are parts of the names
    damage  called with the path of a file that cannot be read, and why
    """

    def __init__(self, levels: FolderLevels, scope: str, damage: Callable[[str, FormatError], None]) -> None:
        self._levels = levels
        self._scope = scope
        self._damage = damage
        self._taken: set[tuple[str, str, int]] = set()
        self._containers: list[tuple[str, str, FileName, list[Member]]] = []

    def plain(self, path: str, original: str, name: DumpName) -> DumpedFile:
        """An .npy file whose name is no more than that of its tensor."""
        op_name, io, slot = self._own(name.op_name)
        return _dumped_file(path, self._levels, replace(name, op_name=op_name, io=io, slot=slot), original)

    def add(self, path: str, original: str) -> bool:
        """Take a file that may hold many tensors; False for any other."""
        try:
            with readable(path):
                if not is_container(path, original):
                    return False
                held = members_of(path, original)
        except FormatError as error:
            self._damage(path, error)
            return True
        for problem in held.problems:
            self._damage(path, problem)
        members = [one for one in held.members if self._is_of_this_step(one)]
        self._containers.append((path, original, parse_file_name(original, may_hold_many=True), members))
        return True

    def held(self) -> Iterator[DumpedFile]:
        """Tensors of the files that were taken, in the order that the files tell, else by names."""
        self._containers.sort(key=lambda one: (one[2].position or 0, natural_key(one[1])))
        names = [[_name_in(said, member) for member in members] for _, _, said, members in self._containers]
        is_shared = len(set().union(*map(set, names))) < sum(map(len, names))
        position = 0
        for (path, original, said, members), own in zip(self._containers, names, strict=True):
            scope = said.base if is_shared and not said.is_single else ""
            for member, name in zip(members, own, strict=True):
                if name is None:
                    continue
                text = f"{scope}/{name}" if scope and member.name else name
                op_name, io, slot = self._own(text)
                known = DumpName(parse.MEMBER, "", op_name, io=io, slot=slot)
                yield _dumped_file(path, self._levels, known, original, position, None, member)
                position += 1

    def _is_of_this_step(self, member: Member) -> bool:
        levels = self._levels
        return member.run == levels.graph_id and member.iteration in (None, levels.iteration)

    def _own(self, name: str) -> tuple[str, str, int]:
        """Operator, side and number of a tensor, which no other one of the folder has."""
        text = f"{self._scope}/{name}" if self._scope else name
        own = side_of(text)
        if own in self._taken:
            own = text, *side_of("")[1:]
        number = 2
        while own in self._taken:
            own = f"{text}#{number}", *own[1:]
            number += 1
        self._taken.add(own)
        return own


def _name_in(said: FileName, member: Member) -> str | None:
    """Name of a member before scopes; None for what is no tensor of the run."""
    if not said.is_single:
        return member.name or said.base or "tensor"
    first, _, rest = member.name.partition("/")
    if first == _ABOUT:
        return None
    if first == _VALUE:
        first, rest = rest, ""
    return "/".join(part for part in (said.base, first, rest) if part)

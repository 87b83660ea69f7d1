"""What is pinned of an incident goes from the ring to the folder of the dump, whole or not at all.

A recorder does it for its own ring; what lies in rings whose processes have ended without it is collected later.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shutil
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from msdump.engine.recording.incidents import CONTROL, Incident, IncidentLog, read_json, remove_leftovers_below
from msdump.engine.recording.ring import Kept, RankRing, is_alive, is_home_of, is_own, own_homes, rank_rings
from msdump.errors import FormatError
from msdump.formats.atomic import make_dirs, scratch_folder, write_file
from msdump.formats.folders import write_error
from msdump.storage.plain import read_plain

NOTE = "recorder_rank_{}.json"
_TAKEN = (errno.ENOTEMPTY, errno.EEXIST)


def finish(ring: RankRing, path: Path, incident: Incident) -> Kept:
    """Pin what is still missing of an incident, copy all of it to the path, and let go of it in the ring.

    Nothing may be written into the ring meanwhile, or what is complete there must be pinned already.
    Returns: the steps that are kept; none where this rank has none of them.
    Raises:  WriteError; what is pinned stays pinned.
    """
    pin(ring, incident, True)
    ring.pin_rest(incident.name, incident.last)
    kept = ring.pinned(incident.name)
    pinned = ring.state / incident.name
    if not kept.whole and not kept.cut and not any(pinned.rglob("*")):
        return kept
    promote(pinned, ring, path, incident, kept)
    shutil.rmtree(pinned, ignore_errors=True)
    return kept


def pin(ring: RankRing, incident: Incident, with_cut: bool = False) -> None:
    """Pin the steps of an incident that are whole in the ring; also those that are not.   Raises: WriteError."""
    whole = ring.whole_steps()
    tree = ring.steps()
    for step in sorted(tree.steps):
        if incident.keeps(step) and (with_cut or step in whole):
            ring.pin(incident.name, step, tree, step in whole)


def is_kept(ring: RankRing, path: Path, incident: Incident) -> bool:
    """Whether the part of this rank is there already."""
    return os.path.lexists(path / incident.name / ring.tree.name)


def promote(pinned: Path, ring: RankRing, path: Path, incident: Incident, kept: Kept) -> None:
    """Copy what is pinned beside its place, then give it its name.   Raises: WriteError."""
    folder = path / incident.name
    make_dirs(folder)
    with scratch_folder(folder) as scratch:
        copy = scratch / ring.tree.name
        try:
            _copy_tree(pinned / ring.tree.name, copy)
            for file in pinned.iterdir():
                if file.suffix == ".txt":
                    text = scratch / f"{ring.tree.name}_{file.name}"
                    shutil.copyfile(file, text, follow_symlinks=False)
                    os.replace(text, folder / text.name)
            note = {"rank": ring.rank, "host": os.uname().nodename, "whole": kept.whole, "cut": kept.cut}
            write_file(folder / NOTE.format(ring.rank), [(json.dumps(note) + "\n").encode()], _MODE, replace=True)
            os.rename(copy, folder / ring.tree.name)
        except OSError as error:
            if error.errno in _TAKEN:
                return  # another process was faster
            raise write_error(str(folder / ring.tree.name), "to keep steps of the flight recorder", error) from error


def _copy_tree(source: Path, target: Path) -> None:
    """Plain files alone; names of one file in the source are names of one file in the copy."""
    first: dict[tuple[int, int], Path] = {}
    make_dirs(target)
    for folder, _, files in os.walk(source):
        place = target / Path(folder).relative_to(source)
        make_dirs(place)
        for name in files:
            origin = Path(folder) / name
            status = os.stat(origin, follow_symlinks=False)
            if not stat.S_ISREG(status.st_mode):
                continue
            known = first.setdefault((status.st_dev, status.st_ino), place / name)
            if known != place / name:
                with contextlib.suppress(OSError):
                    os.link(known, place / name)
                    continue
            shutil.copyfile(origin, place / name, follow_symlinks=False)
            os.chmod(place / name, stat.S_IMODE(status.st_mode))


_POINTER = re.compile(r"rank_([0-9]{1,9})\.json")
_MODE = 0o600
_NOTE_BYTES = 1 << 20
_ALL_STEPS = 1 << 20


@dataclass(frozen=True, slots=True)
class Collected:
    """What was kept of one rank."""

    rank: int
    incident: Incident
    kept: Kept


@dataclass(frozen=True, slots=True)
class Survey:
    """What the recorders of a folder have left.

    collected  what was kept just now
    alive      ranks of this machine that still record
    dead       ranks of this machine whose processes have ended with steps in their rings
    elsewhere  (rank, machine) of those whose rings are on another machine
    lost       ranks of this machine whose rings are gone, as after the end of a container
    """

    collected: tuple[Collected, ...] = ()
    alive: tuple[int, ...] = ()
    dead: tuple[int, ...] = ()
    elsewhere: tuple[tuple[int, str], ...] = ()
    lost: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class _Pointers:
    """Where the rings of a folder are.   homes: folders on this machine; ranks: those that say so, on this machine."""

    homes: tuple[Path, ...]
    ranks: frozenset[int]
    elsewhere: tuple[tuple[int, str], ...]


def pointer(path: Path, rank: int) -> Path:
    """File that says where the ring of a rank is."""
    return path / CONTROL / f"rank_{rank}.json"


def write_pointer(path: Path, ring: RankRing, base: int, steps: int) -> dict[str, object]:
    """Say where a ring is.   Returns: what is said.   Raises: WriteError."""
    host = os.uname().nodename
    facts: dict[str, object] = {"rank": ring.rank, "host": host, "pid": os.getpid(), "home": os.fspath(ring.home)}
    facts |= {"base": base, "steps": steps}
    make_dirs(path / CONTROL)
    content = (json.dumps(facts, indent=1) + "\n").encode()
    write_file(pointer(path, ring.rank), [content], _MODE, replace=True)
    return facts


def remove_pointer(path: Path, rank: int) -> None:
    with contextlib.suppress(OSError):
        pointer(path, rank).unlink()


def survey(path: Path) -> Survey:
    """What there is, untouched."""
    pointers = _read_pointers(path)
    rings = [ring for home in pointers.homes for ring in rank_rings(home)]
    alive = tuple(sorted(ring.rank for ring in rings if is_alive(ring)))
    dead = tuple(sorted(ring.rank for ring in rings if ring.rank not in alive and _holds_steps(ring)))
    lost = tuple(sorted(pointers.ranks - {ring.rank for ring in rings}))
    return Survey((), alive, dead, pointers.elsewhere, lost)


def collect(path: Path) -> Survey:
    """Keep what the dead processes of this machine have left, all of them the same steps.   Raises: WriteError."""
    pointers = _read_pointers(path)
    alive: list[int] = []
    dead: list[RankRing] = []
    for ring in (ring for home in pointers.homes for ring in rank_rings(home)):
        if is_alive(ring) or not ring.try_hold():
            alive.append(ring.rank)
        else:
            dead.append(ring)
    collected = keep_left_over(dead, path)
    lost = pointers.ranks - {ring.rank for ring in dead} - set(alive)
    for rank in (*(ring.rank for ring in dead), *lost):
        remove_pointer(path, rank)
    for ring in dead:
        ring.leave(is_empty=True)
    return Survey(tuple(collected), tuple(sorted(alive)), (), pointers.elsewhere, tuple(sorted(lost)))


def keep_left_over(rings: list[RankRing], path: Path) -> list[Collected]:
    """Keep what lies in rings that nobody fills any longer, and that this process holds.

    What a killed process was about to keep is removed.   Raises: WriteError.
    """
    remove_leftovers_below(path)
    rings = [ring for ring in rings if _holds_steps(ring)]
    if not rings:
        return []
    facts = {ring.rank: _facts(ring) for ring in rings}
    log = IncidentLog(path, min(base for base, _ in facts.values()))
    log.poll()
    _declare_killed(rings, facts, log)
    collected = []
    for ring in rings:
        for incident in log.seen:
            present = {*ring.steps().steps, *ring.pinned(incident.name).whole, *ring.pinned(incident.name).cut}
            is_news = incident.number > facts[ring.rank][0] and not is_kept(ring, path, incident)
            if is_news and any(map(incident.keeps, present)):
                collected.append(Collected(ring.rank, incident, finish(ring, path, incident)))
    return collected


def _declare_killed(rings: list[RankRing], facts: dict[int, tuple[int, int]], log: IncidentLog) -> None:
    """An incident for those whose last whole step none keeps: the last steps that all of them have."""
    last: dict[int, int] = {}
    for ring in rings:
        present = ring.steps().steps
        step = max(ring.whole_steps() & set(present), default=max(present, default=-1))
        known = any(each.number > facts[ring.rank][0] and each.keeps(step) for each in log.seen)
        if step >= 0 and not known:
            last[ring.rank] = step
    if not last:
        return
    common = min(last.values())
    ranks = ", ".join(map(str, sorted(last)))
    steps = max(facts[rank][1] for rank in last)
    text = f"the process of rank {ranks} ended without a word"
    wish = Incident("killed", text, -1, common, max(0, common - steps + 1), common + 1)
    log.declare(wish, lambda other: other.keeps(common))


def _facts(ring: RankRing) -> tuple[int, int]:
    """Number of the last incident before it began, and how many steps it was to keep: all, where nothing says it."""
    try:
        facts = ring.facts()
    except (FormatError, OSError):
        return 0, _ALL_STEPS
    base, steps = facts.get("base"), facts.get("steps")
    is_number = isinstance(steps, int) and 0 < steps < _ALL_STEPS
    return (base if isinstance(base, int) else 0), (int(str(steps)) if is_number else _ALL_STEPS)


def _holds_steps(ring: RankRing) -> bool:
    return bool(ring.steps().steps) or any(ring.state.glob("incident_*"))


def _read_pointers(path: Path) -> _Pointers:
    homes = {home for folder in (Path("/dev/shm"), Path(tempfile.gettempdir())) for home in own_homes(folder, path)}
    ranks: set[int] = set()
    elsewhere = []
    for file in sorted((path / CONTROL).glob("rank_*.json")):
        match = _POINTER.fullmatch(file.name)
        try:
            facts = read_json(file)
        except (FormatError, OSError):
            continue
        home, host = facts.get("home"), facts.get("host")
        if match is None or not isinstance(home, str) or not isinstance(host, str):
            continue
        if host != os.uname().nodename:
            elsewhere.append((int(match[1]), host))
        elif is_home_of(Path(home), path):
            # Only a folder of this name is a ring: the file may come from anywhere.
            homes.add(Path(home))
            ranks.add(int(match[1]))
    return _Pointers(tuple(sorted(filter(is_own, homes))), frozenset(ranks), tuple(elsewhere))


def kept_by_rank(path: Path, incident: Incident) -> dict[int, Kept]:
    """What each rank has kept of an incident."""
    kept = {}
    for folder in sorted((path / incident.name).glob("rank_*")):
        rank = folder.name.removeprefix("rank_")
        if not (folder.is_dir() and rank.isascii() and rank.isdigit() and len(rank) < 10):
            continue
        try:
            note = json.loads(read_plain(path / incident.name / NOTE.format(rank), _NOTE_BYTES))
            whole, cut = (tuple(int(step) for step in note[key]) for key in ("whole", "cut"))
        except (FormatError, OSError, ValueError, KeyError, TypeError, RecursionError):
            whole, cut = (), ()
        kept[int(rank)] = Kept(whole, cut)
    return kept

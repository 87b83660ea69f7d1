"""Promotion: what is pinned of an incident goes to the folder of the dump, whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import stat
from pathlib import Path

from msdump.engine.recording.incidents import Incident
from msdump.engine.recording.ring import Kept, RankRing
from msdump.formats.atomic import make_dirs, scratch_folder, write_file
from msdump.formats.folders import write_error

NOTE = "recorder_rank_{}.json"
_MODE = 0o600
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
        folder_copy = target / Path(folder).relative_to(source)
        make_dirs(folder_copy)
        for name in files:
            origin = Path(folder) / name
            status = os.stat(origin, follow_symlinks=False)
            if not stat.S_ISREG(status.st_mode):
                continue
            known = first.setdefault((status.st_dev, status.st_ino), folder_copy / name)
            if known != folder_copy / name:
                with contextlib.suppress(OSError):
                    os.link(known, folder_copy / name)
                    continue
            shutil.copyfile(origin, folder_copy / name, follow_symlinks=False)
            os.chmod(folder_copy / name, stat.S_IMODE(status.st_mode))

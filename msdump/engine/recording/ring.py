"""The ring of one rank: a dump tree whose old steps are removed, and what of it is pinned for an incident.

    {ring}/msdump-{digest of the path}/     or that name with eight random letters, where another user has it
        rank_3/                 the dump, as its engine writes it
        state_3/                locked while the process lives
            recorder.json       which job this is
            steps               numbers of the steps that are whole, a line each
            spare/              files of removed steps that the next ones are written over
            incident_0001/      pinned: hard links to the files of steps that are kept
                rank_3/
                steps.json      which of them are whole

Files outlive a killed process: `collect` keeps what it has not kept yet.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from msdump.engine.recording.incidents import read_json
from msdump.errors import ConfigError, FormatError, WriteError
from msdump.formats.append_file import AppendFile
from msdump.formats.atomic import link_or_copy, make_dirs, write_file
from msdump.formats.folders import FolderHold, claim_dir, write_error
from msdump.formats.paths.sync import STATISTIC_FILE
from msdump.formats.spare_files import SpareFiles
from msdump.storage.plain import is_temporary, read_plain

STATE, STEPS, PINNED = "recorder.json", "steps", "steps.json"
_MODE = 0o600
_LONGEST_NUMBER = 18


@dataclass(frozen=True, slots=True)
class Kept:
    """Steps of one rank that are kept of an incident.

    whole     written to their ends
    cut       of which files are missing: the process was killed, or an operator raised
    """

    whole: tuple[int, ...] = ()
    cut: tuple[int, ...] = ()


@dataclass
class Tree:
    """Files below a folder, by the step that they belong to.   steps: number -> folders; common: files of no step."""

    steps: dict[int, list[Path]] = field(default_factory=dict)
    common: list[Path] = field(default_factory=list)


def ring_home(ring: Path, path: Path) -> Path:
    """Folder in the ring of all ranks that record to this path, unless another user has that name."""
    digest = hashlib.blake2b(os.fsencode(os.path.abspath(path)), digest_size=8).hexdigest()
    return ring / f"msdump-{digest}"


def is_home_of(home: Path, path: Path) -> bool:
    """Whether a folder has a name that the ring of this path may have."""
    first = ring_home(home.parent, path).name
    return re.fullmatch(rf"{first}(-[a-z0-9_]{{8}})?", home.name) is not None


def own_homes(ring: Path, path: Path) -> list[Path]:
    """Folders of this user that ranks which record to this path have in the ring."""
    try:
        names = os.listdir(ring)
    except OSError:
        return []
    return sorted(home for home in map(ring.joinpath, names) if is_home_of(home, path) and is_own(home))


def take_home(ring: Path, path: Path, rank: int) -> Path:
    """The folder in the ring for a rank that records to this path, made where there is none.

    Every user may write to folders such as /dev/shm: folders and links of other users there are not used.
    Raises: WriteError.
    """
    first = ring_home(ring, path)
    if not own_homes(ring, path) and not claim_dir(first) and not is_own(first):
        try:
            return Path(tempfile.mkdtemp(prefix=f"{first.name}-", dir=ring))
        except OSError as error:
            raise write_error(str(first), "a folder for the ring", error) from error
    homes = own_homes(ring, path)
    return next((home for home in homes if (home / f"state_{rank}").is_dir()), homes[0] if homes else first)


def is_own(home: Path) -> bool:
    """Whether it is a folder, no link, of this user."""
    try:
        status = os.stat(home, follow_symlinks=False)
    except (OSError, ValueError):
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()


class RankRing:
    """The ring of one rank."""

    def __init__(self, home: Path, rank: int) -> None:
        self.home = home
        self.rank = rank
        self.tree = home / f"rank_{rank}"
        self.state = home / f"state_{rank}"
        self.spares = SpareFiles(self.state / "spare")
        self._hold: FolderHold | None = None
        self._steps: AppendFile | None = None

    # -- of the process that records --------------------------------------------------------------

    def take(self) -> None:
        """Make the folders, and hold them.

        Raises: ConfigError when another process has them, or another user has made them; WriteError.
        """
        make_dirs(self.home)
        if not is_own(self.home):
            raise ConfigError(
                f"{self.home}: expected a folder of this user for the ring, got one of another, or a link. "
                "Start again, or choose another ring."
            )
        self._hold = FolderHold.make(self.state, "Give each process a RANK_ID of its own, or a `path` of its own.")

    def try_hold(self) -> bool:
        """Lock an abandoned ring; False when another process has locked it.   Raises: WriteError."""
        self._hold = FolderHold.take(self.state)
        return self._hold is not None

    def begin(self, facts: dict[str, object]) -> None:
        """Empty the ring, and write down whose it is.   Raises: WriteError."""
        self.clear()
        make_dirs(self.tree)
        write_file(self.state / STATE, [(json.dumps(facts, indent=1) + "\n").encode()], _MODE, replace=True)
        self._steps = AppendFile(self.state / STEPS, _MODE)

    def note_whole(self, step: int) -> None:
        """A step is on the disk to its end.   Raises: WriteError."""
        if self._steps is not None:
            self._steps.append(f"{step}\n")

    def leave(self, is_empty: bool) -> None:
        """The process records no longer.   is_empty: no pinned step is needed any more."""
        if self._steps is not None:
            self._steps.close()
            self._steps = None
        if is_empty:
            self.clear()
            with contextlib.suppress(OSError):
                os.rmdir(self.state)
        else:
            # Else it would look as if the process had been killed.
            shutil.rmtree(self.tree, ignore_errors=True)
        if self._hold is not None:
            self._hold.release()
            self._hold = None
        if is_empty:
            with contextlib.suppress(OSError):  # other ranks may still be in it
                os.rmdir(self.home)

    def leave_to_parent(self) -> None:
        """In a process that was forked."""
        if self._hold is not None:
            self._hold.leave_to_parent()

    def clear(self) -> None:
        """Remove what is there; the folder of the state, which is locked, stays."""
        shutil.rmtree(self.tree, ignore_errors=True)
        with contextlib.suppress(FileNotFoundError):
            for name in os.listdir(self.state):
                path = self.state / name
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink(missing_ok=True)

    # -- of any process ---------------------------------------------------------------------------

    def facts(self) -> dict[str, object]:
        """What the process that recorded has written down.   Raises: FormatError; OSError."""
        return dict(read_json(self.state / STATE))

    def whole_steps(self) -> set[int]:
        """Those that are on the disk to their ends, removed ones included."""
        try:
            text = read_plain(self.state / STEPS).decode("ascii", "replace")
        except (OSError, FormatError):
            return set()
        return {int(line) for line in text.split("\n")[:-1] if _is_number(line)}

    def steps(self) -> Tree:
        """Content of the ring."""
        return tree_of(self.tree)

    def pinned(self, name: str) -> Kept:
        """What is pinned for an incident."""
        try:
            content = read_json(self.state / name / PINNED)
        except (FormatError, OSError):
            return Kept()
        lists = [content.get(key) for key in ("whole", "cut")]
        whole, cut = (
            tuple(sorted(number for number in operator_list if isinstance(number, int)))
            if isinstance(operator_list, list)
            else ()
            for operator_list in lists
        )
        return Kept(whole, cut)

    def pin(self, name: str, step: int, tree: Tree, is_whole: bool) -> bool:
        """Keep the files of a step for an incident, while the ring continues; False when they were removed.

        Raises: WriteError.
        """
        kept = self.pinned(name)
        if step in kept.whole or (step in kept.cut and not is_whole):
            return True
        target = self.state / name / self.tree.name
        try:
            for folder in tree.steps.get(step, ()):
                _link_folder(self.tree / folder, target / folder)
        except FileNotFoundError:  # the ring has removed it meanwhile
            for folder in tree.steps.get(step, ()):
                shutil.rmtree(target / folder, ignore_errors=True)
            return False
        whole = {*kept.whole, step} if is_whole else set(kept.whole)
        cut = {*kept.cut} - {step} if is_whole else {*kept.cut, step}
        content = {"whole": sorted(whole), "cut": sorted(cut)}
        write_file(self.state / name / PINNED, [json.dumps(content).encode()], _MODE, replace=True)
        return True

    def pin_rest(self, name: str, last: int) -> None:
        """What belongs to no step, and the statistics of all steps up to `last`.   Raises: WriteError."""
        target = self.state / name / self.tree.name
        tree = self.steps()
        rows = [
            folder / STATISTIC_FILE
            for step, folders in tree.steps.items()
            for folder in folders
            if step <= last and (self.tree / folder / STATISTIC_FILE).is_file()
        ]
        for file in (*tree.common, *rows):
            with contextlib.suppress(FileNotFoundError):
                make_dirs((target / file).parent)
                if not os.path.lexists(target / file):
                    link_or_copy(self.tree / file, target / file)


def tree_of(root: Path) -> Tree:
    """The files of a dump tree: a folder whose name is a number and that holds files is a step, in every layout."""
    tree = Tree()
    for folder, _, files in os.walk(root):
        if not files:
            continue
        step_folder = Path(folder)
        inner = step_folder.relative_to(root)
        if inner.parts and _is_number(step_folder.name):
            tree.steps.setdefault(int(step_folder.name), []).append(inner)
        else:
            tree.common += [inner / name for name in files]
    return tree


def choose_ring(ring: str, budget: int, path: Path) -> tuple[Path, int, str]:
    """Folder of the ring, the bytes that it may take, and what there is to say of this; "" where nothing is.

    ring   "": tmpfs when it has room for the budget, else the folder of temporary files, else the one with more room
    Raises: ConfigError for a folder that is given and has no room for the budget.
    """
    if ring:
        folder = Path(ring)
        total = _total(folder)
        if total < budget:
            raise ConfigError(
                f"{ring}: expected a ring with room for {budget} bytes, got a file system of {total}. Lower the "
                "budget, choose a folder on a local disk, or give a container more of it (docker run --shm-size)."
            )
        free = _free(folder)
        if free < budget:
            # Others have taken it, who may give it back: a smaller ring is better than none.
            return folder, free * 9 // 10, f"the ring may take {free * 9 // 10} bytes of {ring}, as {free} are free."
        return folder, budget, ""
    temporary = Path(tempfile.gettempdir())
    candidates = [candidate for candidate in (Path("/dev/shm"), temporary) if os.access(candidate, os.W_OK)] or [path]
    for candidate in candidates:
        if _free(candidate) >= budget:
            said = (
                f"the ring is in {candidate}, as {candidates[0]} has no room for {budget} bytes."
                if candidate != candidates[0]
                else ""
            )
            return candidate, budget, said
    best = max(candidates, key=_free)
    room = _free(best) // 2
    return best, room, f"the ring may take {room} bytes of {best}, as no place has room for {budget}."


def _link_folder(source: Path, target: Path) -> None:
    """Raises: FileNotFoundError when a file vanishes meanwhile; WriteError."""
    make_dirs(target)
    for name in os.listdir(source):
        status = os.stat(source / name, follow_symlinks=False)
        if stat.S_ISREG(status.st_mode) and not is_temporary(name) and not os.path.lexists(target / name):
            try:
                os.link(source / name, target / name)
            except FileNotFoundError:
                raise
            except OSError as error:
                if error.errno not in (errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP, errno.ENOSYS):
                    raise write_error(str(target / name), "a second name of a file in the ring", error) from error
                shutil.copyfile(source / name, target / name, follow_symlinks=False)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER


def _free(folder: Path) -> int:
    return shutil.disk_usage(folder).free


def _total(folder: Path) -> int:
    try:
        return shutil.disk_usage(folder).total
    except OSError as error:
        raise ConfigError(
            f"{folder}: expected a folder for the ring, got {error.strerror}. Choose an existing one, such as /dev/shm."
        ) from error


def rank_rings(home: Path) -> Iterator[RankRing]:
    """The rings of all ranks that have one on this machine, by rank."""
    try:
        names = os.listdir(home)
    except OSError:
        return
    ranks = [name.removeprefix("state_") for name in names if name.startswith("state_")]
    for rank in sorted(int(rank) for rank in ranks if _is_number(rank)):
        yield RankRing(home, rank)


def is_alive(ring: RankRing) -> bool:
    """Whether the process still runs that records into it."""
    try:
        hold = FolderHold.take(ring.state)
    except WriteError:
        return False
    if hold is None:
        return True
    hold.release()
    return False

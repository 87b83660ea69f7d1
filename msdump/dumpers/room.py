"""What a run would find on the disk, before anything runs: the limits of the environment, and whether its folder can be
made. Nothing is written to find out."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from msdump.config.environment import ASYNC_BUFFER, BUDGET, FLOOR, KEEP, DiskLimits, disk_limits, format_size
from msdump.dumpers.limits import DiskUsage, default_floor, disk_usage
from msdump.dumpers.staging import staging_budget


@dataclass(frozen=True, slots=True)
class Room:
    """Limits of a dump below one folder.

    free_bytes   of the disk now
    floor_bytes  that the dump leaves free
    buffer_bytes  of the asynchronous engine; None for the other one
    problem      why the folder cannot be made or written, or that nothing fits into it; "" when neither holds
    """

    limits: DiskLimits
    free_bytes: int
    floor_bytes: int
    buffer_bytes: int | None
    problem: str

    @property
    def room_bytes(self) -> int:
        """How much the dump may write."""
        room = max(0, self.free_bytes - self.floor_bytes) if self.floor_bytes else self.free_bytes
        return room if self.limits.budget_bytes is None else min(room, self.limits.budget_bytes)


def room_below(
    path: Path,
    is_async: bool,
    environ: Mapping[str, str] = os.environ,
    usage: Callable[[Path], DiskUsage] = disk_usage,
) -> Room:
    """Look at the disk that holds `path`, or will.   Raises: ConfigError for a wrong variable."""
    limits = disk_limits(environ)
    disk = usage(path)
    floor = default_floor(disk) if limits.floor_bytes is None else limits.floor_bytes
    buffer = staging_budget(environ) if is_async else None
    room = Room(limits, disk.free, floor, buffer, why_not_writable(path))
    return room if room.problem or room.room_bytes else replace(room, problem=_no_room(path, room))


def _no_room(path: Path, room: Room) -> str:
    """Also of a file system that holds no files, such as /proc: it has 0 bytes free."""
    reserve = f", and {format_size(room.floor_bytes)} are to stay free ({FLOOR})" if room.floor_bytes else ""
    return (
        f"{path}: expected room for files, got {format_size(room.free_bytes)} of free disk{reserve}. "
        "Free space or choose another path."
    )


def room_rows(room: Room) -> list[tuple[str, str]]:
    """Labels and texts of the limits, each with its variable."""
    limits = room.limits
    budget = "no budget" if limits.budget_bytes is None else f"at most {format_size(limits.budget_bytes)} in all"
    floor = "the disk may fill up" if not room.floor_bytes else f"{format_size(room.floor_bytes)} of the disk stay free"
    kept = "all iterations are kept" if limits.keep_iterations is None else _kept_text(limits.keep_iterations)
    rows = [
        ("limits", f"{budget} ({BUDGET}); {floor} ({FLOOR}); {kept} ({KEEP})"),
        ("disk", f"{format_size(room.free_bytes)} free: the dump may write {format_size(room.room_bytes)}"),
    ]
    if room.buffer_bytes is not None:
        rows.append(("buffer", f"{format_size(room.buffer_bytes)} of memory for what waits ({ASYNC_BUFFER})"))
    return rows


def _kept_text(count: int) -> str:
    return f"the last {count} iterations are kept" if count > 1 else "the last iteration is kept"


def why_not_writable(path: Path) -> str:
    """Why a run cannot write below `path`, or ""."""
    probe = Path(os.path.abspath(path))
    while not os.path.lexists(probe) and probe != probe.parent:
        probe = probe.parent
    where = "it" if probe == Path(os.path.abspath(path)) else f"{probe} above it"
    try:
        if not probe.is_dir():
            return f"{path}: expected a folder that can be made, got none: {where} is a file. Choose another path."
        longest = os.pathconf(probe, "PC_NAME_MAX")
    except OSError as error:
        return f"{path}: expected a folder that can be made, got: {error.strerror}. Choose another path."
    if not os.access(probe, os.W_OK | os.X_OK):
        return f"{path}: expected a folder that can be made, got none: {where} is not writable. Choose another path."
    long = next((part for part in Path(path).parts if len(os.fsencode(part)) > longest), None)
    if long is not None:
        return f"{path}: expected names of at most {longest} bytes, got {long[:40]}... Choose a shorter path."
    return ""

"""What a dry run changes in the process that it measures. Nothing of it is set anywhere else.

`msdump plan --dry-run` redirects all that a script of ACL or TorchAir dumps, and looks at the counts of the dump
whenever a model begins to run.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from pathlib import Path
from typing import NamedTuple, Protocol


class Counts(NamedTuple):
    """What a dump has written up to now, and the seconds that its model has waited for it."""

    files: int = 0
    links: int = 0
    bytes_written: int = 0
    seconds: float = 0.0


class MeasuredDump(Protocol):
    """A dump whose runs are measured. `error` says why it is not complete, "" where it is."""

    @property
    def error(self) -> str: ...
    def counts(self) -> Counts: ...
    def flush(self) -> None:
        """Wait until everything that was dumped so far is on disk."""


# Folder that takes what is dumped, in place of the one that is configured; all iterations are dumped then.
folder: Path | None = None
# acl.json that is read in place of any that a script names.
acl_json: Path | None = None
# Called with the name of what begins to run, and its dump; what it raises ends the script.
on_run: Callable[[Hashable, MeasuredDump], None] | None = None


def redirected(path: Path) -> Path:
    """The folder that takes what is configured to go to this one."""
    return path if folder is None else folder


def note_run(name: Hashable, source: MeasuredDump) -> None:
    """Something that is dumped begins to run."""
    if on_run is not None:
        on_run(name, source)

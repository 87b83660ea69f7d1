"""Which process of a job this is, and the folder of its rank: one process at a time dumps into one.

Folders are called `worldsize{W}_global_rank{R}`.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from contextlib import suppress

from msdump.formats.folders import FolderHold
from msdump.process.sessions import warn_of_fork


def process_rank() -> tuple[int, int]:
    """(world size, rank) of this process; (1, 0) when it works alone.

    Edges: a script that has not imported torch works alone; this does not import it.
    """
    torch = sys.modules.get("torch")
    distributed = getattr(torch, "distributed", None)
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        world_size = distributed.get_world_size()
        if world_size > 1:
            return world_size, distributed.get_rank()
    return 1, 0


log = logging.getLogger("msdump")

_OTHER_RANKS = "Give each process a path of its own, or start torch.distributed, which gives each a rank."


class RankFolders:
    """The folders of ranks that this process dumps into, each held until the process ends. Any thread may call it.

    Numbers of graphs and steps begin anew in each process: files of two would lie in the same folders.
    """

    def __init__(self) -> None:
        self._holds: dict[str, FolderHold] = {}
        self._of_parents: set[str] = set()
        self._lock = threading.Lock()

    def enter(self, path: str, mode: int, clash: str) -> bool:
        """Make and hold a folder; False where the process that this one was forked from dumps into it.

        clash    what becomes of files of an earlier run, for a warning
        Raises: ConfigError when another process dumps into it now; WriteError when it cannot be made.
        """
        if path in self._holds:
            return True
        with self._lock:
            if path in self._holds:
                return True
            if path in self._of_parents:
                warn_of_fork("fork it before the first graph runs, as a rank of torch.distributed")
                return False
            self._holds[path] = FolderHold.make(path, _OTHER_RANKS, mode)
        _warn_of_earlier_files(path, clash)
        return True

    def leave_to_parent(self) -> None:
        """In a process that was forked."""
        self._lock = threading.Lock()
        self._of_parents |= self._holds.keys()
        for hold in self._holds.values():
            hold.leave_to_parent()
        self._holds.clear()

    def reset_for_tests(self) -> None:
        """Let go of all folders, so that one process can be two."""
        for hold in self._holds.values():
            hold.release()
        self._holds.clear()
        self._of_parents.clear()


def _warn_of_earlier_files(path: str, clash: str) -> None:
    with suppress(OSError):
        if os.listdir(path):
            log.warning(
                "%s: expected an empty folder, got files of an earlier dump. The new files are added%s; remove the "
                "folder first to have them alone.",
                path,
                clash,
            )


# Of all backends of this process.
rank_folders = RankFolders()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=rank_folders.leave_to_parent)

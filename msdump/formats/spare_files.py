"""Files whose content is not needed any more, kept for the next files of their sizes.

A filesystem in memory clears each page before it hands it out, which takes longer than the copy into it: writing over
pages that are there takes a third of the time. Steps of a program write files of the same sizes again and again.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
import threading
from collections import defaultdict
from pathlib import Path

from msdump.errors import WriteError
from msdump.formats.folders import make_dirs

# Making a smaller file is as fast as searching one.
SMALLEST_BYTES = 1 << 16
_MODE = 0o600


class SpareFiles:
    """Any thread may call it.

    folder   where they wait, on the filesystem of the dump; made with the first of them

    A file with a further name is not taken: that name shall keep its content.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = itertools.count()
        self._by_size: defaultdict[int, list[str]] = defaultdict(list)
        self._lock = threading.Lock()

    def adopt(self, folder_fd: int, name: str, status: os.stat_result) -> bool:
        """Take a file out of its open folder; False where it has to be removed as always.

        status   what `os.stat` says of it
        """
        if status.st_size < SMALLEST_BYTES or status.st_nlink != 1 or not stat.S_ISREG(status.st_mode):
            return False
        spare = str(self._folder / str(next(self._numbers)))
        try:
            try:
                os.rename(name, spare, src_dir_fd=folder_fd)
            except FileNotFoundError:
                make_dirs(self._folder)
                os.rename(name, spare, src_dir_fd=folder_fd)
            os.chmod(spare, _MODE)
            # It may have been linked at the last moment; in this folder it cannot be linked any more.
            is_free = os.stat(spare, follow_symlinks=False).st_nlink == 1
        except (OSError, WriteError):
            return False
        if not is_free:
            os.chmod(spare, stat.S_IMODE(status.st_mode))
            os.unlink(spare)
            return True
        with self._lock:
            self._by_size[status.st_size].append(spare)
        return True

    def take(self, size_bytes: int) -> str | None:
        """Path of a file of this size, which is the caller's from now on.

        None where there is none: then others are removed, so that what is written does not come on top of them.
        """
        if size_bytes < SMALLEST_BYTES:
            return None
        with self._lock:
            fitting = self._by_size.get(size_bytes)
            if fitting:
                return fitting.pop()
            removed = []
            missing = size_bytes
            while missing > 0 and self._by_size:
                size, spares = next(iter(self._by_size.items()))
                if spares:
                    removed.append(spares.pop())
                    missing -= size
                else:
                    del self._by_size[size]
        _remove(removed)
        return None

    def clear(self) -> None:
        """Remove all of them."""
        with self._lock:
            removed = [spare for spares in self._by_size.values() for spare in spares]
            self._by_size.clear()
        _remove(removed)


def _remove(paths: list[str]) -> None:
    for path in paths:
        with contextlib.suppress(OSError):  # the folder was removed with them
            os.unlink(path)

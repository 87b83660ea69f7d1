"""FolderHold: a folder that one process at a time dumps into."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os

from msdump.formats.system_errors import write_error

_BUSY = (errno.EWOULDBLOCK, errno.EACCES)


class FolderHold:
    """Holds a folder until `release`, or until the process ends, however it ends. Leaves nothing in the folder.

    Edges:   a file system that knows no locks on folders holds nothing, and no process is refused.
    Source:  flock(2): the lock belongs to the open folder, which a forked process shares.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @staticmethod
    def take(path: str | os.PathLike[str]) -> FolderHold | None:
        """Hold a folder that exists; None when another process, or another hold of this one, has it.

        Raises: WriteError when it cannot be opened.
        """
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise write_error(os.fspath(path), "a folder to dump into", error) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in _BUSY:
                FolderHold(descriptor).leave_to_parent()
                return None
        return FolderHold(descriptor)

    def release(self) -> None:
        """Let others have the folder. Idempotent."""
        if self._descriptor >= 0:
            with contextlib.suppress(OSError):
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            self.leave_to_parent()

    def leave_to_parent(self) -> None:
        """In a forked process: the parent keeps the folder, and alone decides how long."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            # The lock and the descriptor are gone also where a filesystem says so with an error; nothing was written.
            with contextlib.suppress(OSError):
                os.close(descriptor)

"""Folders of a dump: made one below the other by handles, so that no link can take their places meanwhile, and held by
one process at a time. What the system refuses becomes a WriteError with a fix.

Who writes into a dump holds a folder: a process that dumps, the one that all its files lie below (`FolderHold`); a
command that changes files which are there, each folder in which it does (`held_for_change`). A command is refused where
a process holds that folder or one above it, and a process where a command changes files below its folder.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
from collections import deque
from collections.abc import Iterable, Iterator

from msdump.errors import ConfigError, WriteError

_O_CLOEXEC = getattr(os, "O_CLOEXEC", 0)
_O_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
# A handle that only leads to names needs no permission to list them.
_FOLDER_HANDLE = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | _O_CLOEXEC
_BUSY = (errno.EWOULDBLOCK, errno.EACCES)
_MOST_HOLDS = 64
_FIXES = {
    errno.ENOSPC: "The disk is full: free space, or dump fewer iterations or operators.",
    errno.EDQUOT: "The quota is used up: free space, or dump fewer iterations or operators.",
    errno.EACCES: "The folder is not writable for this user: choose another path or change its mode.",
    errno.EPERM: "The system refuses it: choose another path.",
    errno.EROFS: "The filesystem is read-only: choose another path.",
    errno.ENOTDIR: "A file sits where a folder should be: move it away or choose another path.",
    errno.EEXIST: "It exists already: move it away or choose another path.",
    errno.ELOOP: "A symbolic link has this name: remove it, what is written could land anywhere.",
    errno.ENOENT: "The folder was removed: do not remove it while the dump runs.",
    errno.EMFILE: "Too many files are open: raise the limit (ulimit -n).",
    errno.ENFILE: "Too many files are open on this machine.",
    errno.ENAMETOOLONG: "The path is too long: choose a shorter one.",
    errno.EFBIG: "The file is larger than the filesystem or `ulimit -f` allows.",
    errno.EIO: "The device reports an error: look at the system log.",
}


def write_error(where: str, expected: str, error: OSError) -> WriteError:
    """What the system refused, with a fix where one is known."""
    reason = error.strerror or str(error)
    fix = _FIXES.get(error.errno or 0, "")
    return WriteError(f"{where}: expected {expected}, got {reason}. {fix}".rstrip())


def close_written(fd: int, where: str) -> None:
    """Close what was written to.   Raises: WriteError: some filesystems say only now that the data is lost."""
    try:
        os.close(fd)
    except OSError as error:
        raise write_error(where, "to close it after writing", error) from error


def make_dirs(path: str | os.PathLike[str], mode: int = 0o700) -> None:
    """Make a folder and its missing parents; new ones get exactly `mode`, independent of the umask.

    Edges:  links in the part of the path that is there are followed; one that takes a missing part's place meanwhile
            is not.
    Raises: WriteError when a file sits in the way, or the system refuses.
    """
    missing: list[str] = []
    probe = _without_slash(path)
    while not os.path.isdir(probe):
        missing.append(probe)
        parent = os.path.dirname(probe)
        if parent in ("", probe):
            break
        probe = parent
    if not missing:
        return
    parent_fd = _folder_handle(os.path.dirname(missing[-1]) or ".", missing[-1])
    try:
        for folder in reversed(missing):
            _make_dir(parent_fd, folder, mode)
            above, parent_fd = parent_fd, _folder_handle(os.path.basename(folder), folder, parent_fd)
            _close_handle(above)
    finally:
        _close_handle(parent_fd)


def claim_dir(path: str | os.PathLike[str], mode: int = 0o700) -> bool:
    """Make a folder exclusively, and its missing parents; False when it exists already, or was removed
    at once.

    Raises: WriteError when the system refuses, or a file sits above it.
    """
    folder = _without_slash(path)
    parent = os.path.dirname(folder) or "."
    make_dirs(parent, mode)
    parent_fd = _folder_handle(parent, folder)
    try:
        return _make_dir(parent_fd, folder, mode, is_claimed=True)
    finally:
        _close_handle(parent_fd)


def _close_handle(fd: int) -> None:
    with contextlib.suppress(OSError):  # nothing was written through it
        os.close(fd)


def _without_slash(path: str | os.PathLike[str]) -> str:
    """The path by which its last part has a name: a slash at the end names nothing in the folder."""
    text = os.fspath(path)
    return text.rstrip("/") or text[:1]


def _folder_handle(name: str, folder: str, parent_fd: int | None = None) -> int:
    """Descriptor of a folder, which stays valid when its path leads elsewhere later; below `parent_fd` no link is
    followed."""
    try:
        return os.open(name, _FOLDER_HANDLE | (0 if parent_fd is None else _O_NOFOLLOW), dir_fd=parent_fd)
    except OSError as error:
        raise write_error(folder, "to make this folder", error) from error


def _make_dir(parent_fd: int, folder: str, mode: int, is_claimed: bool = False) -> bool:
    """Make one folder with exactly this mode; False when it is there already."""
    name = os.path.basename(folder)
    try:
        os.mkdir(name, mode, dir_fd=parent_fd)
        try:
            status = os.stat(name, dir_fd=parent_fd, follow_symlinks=False)
            if stat.S_IMODE(status.st_mode) != mode:
                _set_folder_mode(parent_fd, name, mode)
        except FileNotFoundError:  # another process took it for a leftover
            if is_claimed:
                return False
            raise
    except FileExistsError as error:
        if is_claimed or _is_folder(parent_fd, name):
            return False  # another process was faster
        raise WriteError(f"{folder}: expected a folder, got a file. Move it away or choose another path.") from error
    except FileNotFoundError as error:
        raise WriteError(
            f"{folder}: expected to make this folder, got {error.strerror}. "
            "No folder can be made there, or the one above it was just removed: choose another path."
        ) from error
    except OSError as error:
        raise write_error(folder, "to make this folder", error) from error
    except ValueError as error:
        raise WriteError(f"{folder!r}: expected a path, got {error}. Choose another path.") from error
    return True


def _is_folder(parent_fd: int, name: str) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=parent_fd, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _set_folder_mode(parent_fd: int, name: str, mode: int) -> None:
    """Through a handle, as chmod by name would follow a link that took the folder's place."""
    fd = os.open(name, _FOLDER_HANDLE | _O_NOFOLLOW, dir_fd=parent_fd)
    try:
        os.chmod(f"/proc/self/fd/{fd}", mode)
    except FileNotFoundError:  # a sandbox without /proc
        os.chmod(name, mode, dir_fd=parent_fd)
    finally:
        _close_handle(fd)


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
        if not try_lock(descriptor):
            FolderHold(descriptor).leave_to_parent()
            return None
        return FolderHold(descriptor)

    @staticmethod
    def make(path: str | os.PathLike[str], advice: str, mode: int = 0o700) -> FolderHold:
        """Make a folder where it is missing, and hold it for this rank.   advice: how to have another folder

        Raises: ConfigError when another process has it; WriteError when it cannot be made or opened.
        """
        make_dirs(path, mode)
        hold = FolderHold.take(path)
        if hold is None:
            raise ConfigError(
                f"{os.fspath(path)}: expected one process for each rank, got another process that dumps into this "
                f"folder now, or a command that changes files in it. {advice}"
            )
        return hold

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


class FolderHolds:
    """Folders that belong to one process from the start, such as those of its time, held until `release`. Any thread
    may call it.

    Edges:  of many only the last ones: a dump that begins a folder for each step has left the older ones.
    """

    def __init__(self) -> None:
        self._holds: deque[FolderHold] = deque()

    def add(self, path: str | os.PathLike[str]) -> None:
        """Hold a folder that this process has just made.   Raises: WriteError when it cannot be opened."""
        hold = FolderHold.take(path)
        if hold is not None:
            self._holds.append(hold)
        while len(self._holds) > _MOST_HOLDS:
            self._holds.popleft().release()

    def release(self) -> None:
        """Let others have the folders. Idempotent."""
        while self._holds:
            self._holds.popleft().release()

    def leave_to_parent(self) -> None:
        """As of `FolderHold`."""
        while self._holds:
            self._holds.popleft().leave_to_parent()


@contextlib.contextmanager
def held_for_change(folders: Iterable[str | os.PathLike[str]]) -> Iterator[str]:
    """Hold folders in which files are changed. Gives "", or why they must not be: who else writes there.

    Edges:  folders that are not there are left out; what cannot be opened or locked holds nothing, as of `FolderHold`.
    """
    changed = {os.path.realpath(folder) for folder in folders}
    above = {parent for folder in changed for parent in _parents(folder)} - changed
    descriptors: list[int] = []
    busy = ""
    try:
        # Folders above are shared by all commands; a process that dumps has its own for itself.
        for folder in (*sorted(above), *sorted(changed)):
            with contextlib.suppress(OSError):
                descriptors.append(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | _O_CLOEXEC))
                if not try_lock(descriptors[-1], fcntl.LOCK_SH if folder in above else fcntl.LOCK_EX):
                    busy = f"another process writes into {folder} now"
                    break
        yield busy
    finally:
        for descriptor in descriptors:
            _close_handle(descriptor)


def try_lock(descriptor: int, kind: int = fcntl.LOCK_EX) -> bool:
    """Lock an open file or folder; False when another process has locked it. True on a file system without locks."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in _BUSY
    return True


def _parents(folder: str) -> Iterator[str]:
    while (parent := os.path.dirname(folder)) != folder:
        yield parent
        folder = parent

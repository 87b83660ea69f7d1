"""What the system refuses while a dump is written, as WriteError with a fix."""

from __future__ import annotations

import errno
import os

from msdump.errors import WriteError

_FIXES = {
    errno.ENOSPC: "The disk is full: free space, or dump fewer iterations or operators.",
    errno.EDQUOT: "The quota is used up: free space, or dump fewer iterations or operators.",
    errno.EACCES: "The folder is not writable for this user: choose another path or change its mode.",
    errno.EPERM: "The system refuses it: choose another path.",
    errno.EROFS: "The filesystem is read-only: choose another path.",
    errno.ENOTDIR: "A file sits where a folder should be: move it away or choose another path.",
    errno.EEXIST: "It is there already: move it away or choose another path.",
    errno.ELOOP: "A symbolic link has this name: remove it, what is written could land anywhere.",
    errno.ENOENT: "The folder is gone: do not remove it while the dump runs.",
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

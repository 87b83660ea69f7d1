"""Opening files where others may write: plain ones only, and no more of them than is bearable; and mapping them.

A dump may come from anywhere, so any name in it may be a pipe, a device, or a link to one: opening the first waits for
ever, reading the second never ends.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import stat
import sys
from collections.abc import Callable, Iterator
from typing import IO, Any

import numpy as np

from msdump.errors import FormatError
from msdump.tensors.arrays import Array

SIDE_BYTES = 100 << 20  # of the small files beside tensors; MindInsight's reader takes no more of them either
CONFIG_BYTES = 16 << 20  # of configurations, which are read while a job runs
GRAPH_BYTES = 1 << 30  # of graphs and tables of statistics
# A pipe without a writer answers at once, and a terminal does not become that of the process.
OPEN_FLAGS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_POPULATE_READ = 22  # MADV_POPULATE_READ of Linux 5.14; Python names it from 3.14 on
_FEW_BYTES = 256 << 10
_MANY_BYTES = 1 << 30
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
)


def kind_of(mode: int) -> str:
    """What a file is that is no plain one, by its `st_mode`."""
    return next((name for is_kind, name in _KINDS if is_kind(mode)), "a device")


def is_temporary(name: str) -> bool:
    """Whether a file or folder of this name has not got its own yet, and is no part of any dump."""
    return name.startswith(".") and name.endswith(".tmp")


def unreadable(path: str | os.PathLike[str], error: OSError) -> FormatError:
    """The error of a file that the system did not let us read."""
    return FormatError(f"{os.fspath(path)}: expected to read it, got: {error.strerror or error}.")


@contextlib.contextmanager
def readable(path: str | os.PathLike[str]) -> Iterator[None]:
    """Raise what the system says of a file as a FormatError."""
    try:
        yield
    except OSError as error:
        raise unreadable(path, error) from error


def open_plain(path: str | os.PathLike[str], max_bytes: int | None = None) -> IO[bytes]:
    """A plain file, opened to be read; links are followed.

    max_bytes   size from which it is refused; None for files that are only mapped or read in parts

    Raises: FormatError for anything but a plain file, and for one that is too large; OSError.
    """
    return open(path, "rb", opener=lambda name, _: open_descriptor(name, max_bytes)[0])


def read_start(path: str, count: int) -> tuple[bytes, os.stat_result]:
    """At most so many first bytes of a plain file, and what the system says of it.   Raises: as `open_plain`."""
    descriptor, status = open_descriptor(path)
    try:
        return os.read(descriptor, min(count, status.st_size)), status
    finally:
        os.close(descriptor)


def read_plain(path: str | os.PathLike[str], max_bytes: int = SIDE_BYTES) -> bytes:
    """Content of a plain file.   Raises: as `open_plain`."""
    with open_plain(path, max_bytes) as file:
        # Python takes memory for all bytes that a read may give, so none is asked for more than there are.
        size = os.fstat(file.fileno()).st_size
        data = file.read(size + 1)
        if len(data) > size:
            data += file.read(max(0, max_bytes - len(data)) + 1)
    if len(data) > max_bytes:  # it grew meanwhile
        raise FormatError(f"{os.fspath(path)}: expected at most {max_bytes} bytes, got more.")
    return data


def plain_opener(mode: int = 0o600) -> Callable[[str, int], int]:
    """Opener for `open` that writes to a plain file of its own name, or to none.

    mode   of a file that is new, less the umask

    Raises: OSError, when called, for a link or anything else under that name.
    """

    def opener(name: str, flags: int) -> int:
        fd = os.open(name, flags | os.O_NOFOLLOW | OPEN_FLAGS, mode)
        kind = os.fstat(fd).st_mode
        if not stat.S_ISREG(kind):
            os.close(fd)
            raise OSError(errno.EEXIST, f"{kind_of(kind)} has that name")
        return fd

    return opener


def open_descriptor(path: str, max_bytes: int | None = None) -> tuple[int, os.stat_result]:
    """An open plain file, which the caller closes, and what the system says of it.   Raises: as `open_plain`."""
    descriptor = os.open(path, os.O_RDONLY | OPEN_FLAGS)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise FormatError(f"{path}: expected a plain file, got {kind_of(status.st_mode)}.")
        if max_bytes is not None and status.st_size > max_bytes:
            raise FormatError(f"{path}: expected at most {max_bytes} bytes, got {status.st_size}.")
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor, status


# -- mapped files ------------------------------------------------------------------------------------------------------


def mapping(descriptor: int) -> mmap.mmap:
    """An open file that is not empty, mapped as a whole, read-only; it may be closed then."""
    return mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)


def populate(array: Array) -> None:
    """Make the pages of a mapped array ready to be read; nothing happens for others, or where the system cannot.

    Reading a mapped file of the page cache once is half the work when its pages come this way. More than a gigabyte is
    left alone: it would push out what others need.
    """
    if sys.platform != "linux" or not _FEW_BYTES <= array.nbytes <= _MANY_BYTES:
        return
    owner = _mapping(array)
    if owner is None:
        return
    # An address says where in the mapping the array lies; the mapping itself tells its own only through a buffer.
    start = array.__array_interface__["data"][0] - _address(owner)
    first = start // mmap.PAGESIZE * mmap.PAGESIZE
    with contextlib.suppress(OSError, ValueError):
        owner.madvise(_POPULATE_READ, first, min(start + array.nbytes, len(owner)) - first)


def _mapping(array: Array) -> mmap.mmap | None:
    """The mapping that an array shows, however many views are between them."""
    owner: Any = array
    while owner is not None and not isinstance(owner, mmap.mmap):
        owner = owner.obj if isinstance(owner, memoryview) else getattr(owner, "base", None)
    return owner


def _address(owner: mmap.mmap) -> int:
    address: int = np.frombuffer(owner, np.uint8, 1).__array_interface__["data"][0]
    return address

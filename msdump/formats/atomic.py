"""Atomic publishing: a file is complete or absent, also after the process was killed.

The bytes go to a file without a name, which is then linked under its own (O_TMPFILE + link). Where the system has no
such thing they go to a hidden sibling that is renamed. What other libraries write, and folders, come from a hidden
folder. Nothing is flushed to the device: a power cut is not covered.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import itertools
import mmap
import os
import re
import shutil
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from msdump.errors import WriteError
from msdump.formats import direct
from msdump.formats.direct import Buffer
from msdump.formats.folders import claim_dir, close_written, make_dirs, write_error
from msdump.formats.spare_files import SpareFiles
from msdump.storage.plain import OPEN_FLAGS

__all__ = [
    "Buffer", "Folder", "claim_dir", "link_or_copy", "make_dirs", "remove_leftovers", "scratch_folder",
    "set_mode", "write_file",
]  # fmt: skip

_O_CLOEXEC = getattr(os, "O_CLOEXEC", 0)
_O_TMPFILE = getattr(os, "O_TMPFILE", 0)
_O_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | _O_CLOEXEC
# Answers of filesystems (overlay, NFS, FUSE) and sandboxes that know no unnamed files, or no /proc to name them by.
_NO_UNNAMED = {errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT, errno.ENOSYS, errno.EPERM, errno.EXDEV}
_NO_LINKS = {errno.EPERM, errno.EXDEV, errno.EMLINK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EACCES}
_MAX_BUFFERS = 512  # writev takes 1024 on Linux; other systems less

_temporary_numbers = itertools.count()
SIBLING = re.compile(r"\.[0-9]+-[0-9]+-[0-9]+\.tmp")
# (path, device, inode) of folders without leftovers, so that each is listed once and not for each file. Filesystems
# give the inode of a folder that is gone to a new one.
_swept_folders: set[tuple[str, int, int]] = set()
_MAX_SWEPT_FOLDERS = 4096
_SCRATCH_LOCK = "lock"


class Folder:
    """An open folder that files are published in; owns its descriptor. Any thread may call it.

    Keeping the folder open spares each file the walk along the path. With `is_direct` big files are written past the
    page cache where the filesystem does such a thing: nearly free for the processor, and at the disk's full pace when
    more is written than the cache may hold; who writes little and waits for it is better served by the cache. Where it
    is not, files are written over `spares` of their sizes.
    """

    def __init__(self, path: str | os.PathLike[str], is_direct: bool = False, spares: SpareFiles | None = None) -> None:
        self.path = os.fspath(path)
        self._spares = spares
        try:
            self._fd = os.open(self.path, _OPEN_FOLDER)
        except OSError as error:
            raise write_error(self.path, "a folder to write to", error) from error
        self._has_unnamed = bool(_O_TMPFILE)
        self._is_direct = is_direct and direct.is_worthwhile(self._fd)

    def close(self) -> None:
        """Raises: WriteError."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            close_written(fd, self.path)

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def descriptor(self) -> int:
        """By which names in the folder are reached; it stays the folder's."""
        return self._fd

    def open_file(self, name: str, flags: int, mode: int = 0) -> int:
        """Descriptor of a file with this name; a link is not followed.   Raises: OSError."""
        return os.open(name, flags | _O_NOFOLLOW | OPEN_FLAGS, mode, dir_fd=self._fd)

    def open_with_head(self, name: str, head: bytes, mode: int) -> int | None:
        """Descriptor, to append to, of a new file that begins so and is never there without it; None where the name is
        taken or the filesystem has no unnamed files.   Raises: OSError."""
        if not self._has_unnamed:
            return None
        try:
            fd = os.open(".", _O_TMPFILE | os.O_RDWR | os.O_APPEND | _O_CLOEXEC, mode, dir_fd=self._fd)
        except OSError as error:
            if error.errno in _NO_UNNAMED:
                return None
            raise
        try:
            _write_all(fd, [head])
            set_mode(fd, mode)
            os.link(f"/proc/self/fd/{fd}", name, dst_dir_fd=self._fd, follow_symlinks=True)
        except OSError as error:
            os.close(fd)
            if error.errno in {*_NO_UNNAMED, errno.EEXIST}:
                return None
            raise
        return fd

    def has(self, name: str) -> bool:
        """Whether a file, folder or link, also a broken one, has this name."""
        try:
            os.stat(name, dir_fd=self._fd, follow_symlinks=False)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise write_error(self._where(name), "a name to look up", error) from error
        return True

    def write(
        self, name: str, chunks: Sequence[Buffer], mode: int, replace: bool = False, tensors_from: int = 0
    ) -> int:
        """Publish a file that holds the chunks one after the other; returns its size.

        tensors_from   a folder of the disk has no use for it

        Raises: WriteError; the name is then free or holds what it held before.
        """
        try:
            spare = None if self._spares is None or self._is_direct or replace else self._spares.take(_size(chunks))
            if spare is not None:
                return self._write_spare(spare, name, chunks, mode)
            if self._has_unnamed:
                try:
                    return self._write_unnamed(name, chunks, mode, replace)
                except OSError as error:
                    if error.errno not in _NO_UNNAMED:
                        raise
                # Another error occurs with the sibling as well, and is reported from there.
                size = self._write_sibling(name, chunks, mode, replace)
                self._has_unnamed = False
                return size
            return self._write_sibling(name, chunks, mode, replace)
        except FileExistsError as error:
            raise WriteError(
                f"{self._where(name)}: expected a free name, got an existing file. Move it away or choose another path."
            ) from error
        except OSError as error:
            raise write_error(self._where(name), f"to write {_size(chunks)} bytes", error) from error
        except UnicodeEncodeError as error:
            raise WriteError(
                f"{self._where(name)!a}: expected a name in the encoding of file names, {error.encoding}, got "
                f"{error.object[error.start : error.end]!a}. Set PYTHONUTF8=1, or a locale with UTF-8."
            ) from error

    def link(self, existing: str, name: str, existing_folder: Folder | None = None) -> bool:
        """Give a file a further name; False when links are refused and a copy was made.   Raises: WriteError."""
        source = existing_folder or self
        try:
            os.link(existing, name, src_dir_fd=source._fd, dst_dir_fd=self._fd)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise write_error(self._where(name), f"a second name of {source._where(existing)}", error) from error
        else:
            return True
        try:
            fd = os.open(existing, os.O_RDONLY | _O_CLOEXEC, dir_fd=source._fd)
            try:
                status = os.fstat(fd)
                chunks = [mmap.mmap(fd, 0, access=mmap.ACCESS_READ)] if status.st_size else []
            finally:
                os.close(fd)
        except OSError as error:
            raise write_error(source._where(existing), "to read it for a copy", error) from error
        self.write(name, chunks, stat.S_IMODE(status.st_mode))
        return False

    # -- parts ------------------------------------------------------------------------------------

    def _where(self, name: str) -> str:
        return os.path.join(self.path, name)

    def _write_unnamed(self, name: str, chunks: Sequence[Buffer], mode: int, replace: bool) -> int:
        if self._is_direct and _size(chunks) >= direct.DIRECT_BYTES:
            try:
                return self._publish_unnamed(name, chunks, mode, replace, direct.O_DIRECT, direct.write_direct)
            except OSError as error:
                if error.errno not in direct.NO_DIRECT:
                    raise
                self._is_direct = False
        return self._publish_unnamed(name, chunks, mode, replace, 0, _write_all)

    def _publish_unnamed(
        self,
        name: str,
        chunks: Sequence[Buffer],
        mode: int,
        replace: bool,
        flags: int,
        fill: Callable[[int, Sequence[Buffer]], int],
    ) -> int:
        fd = os.open(".", _O_TMPFILE | os.O_WRONLY | _O_CLOEXEC | flags, mode, dir_fd=self._fd)
        # A hidden name on the way, and the descriptor that holds its lock: one that was killed leaves it behind.
        sibling, lock = "", -1
        # Only with a folder descriptor does Python ask the kernel to follow the link in /proc.
        unnamed = f"/proc/self/fd/{fd}"
        try:
            try:
                size = fill(fd, chunks)
                set_mode(fd, mode)
                if replace:
                    self.remove_leftovers()
                try:
                    os.link(unnamed, name, dst_dir_fd=self._fd, follow_symlinks=True)
                except FileExistsError:
                    if not replace:
                        raise
                    lock, sibling = _lock(fd), _sibling_name()
                    os.link(unnamed, sibling, dst_dir_fd=self._fd, follow_symlinks=True)
            except BaseException:
                os.close(fd)
                raise
            try:
                os.close(fd)  # where some filesystems report what they could not write
            except OSError:
                self._discard(sibling or name)
                raise
            if sibling:
                self._rename(sibling, name)
        finally:
            if lock >= 0:
                os.close(lock)
        return size

    def _write_spare(self, spare: str, name: str, chunks: Sequence[Buffer], mode: int) -> int:
        """Over a file of the very size, which then gets its name."""
        try:
            fd = os.open(spare, os.O_WRONLY | _O_NOFOLLOW | _O_CLOEXEC)
            try:
                size = _write_all(fd, chunks)
                set_mode(fd, mode)
            finally:
                close_written(fd, self._where(name))
            os.link(spare, name, dst_dir_fd=self._fd)
        finally:
            os.unlink(spare)
        return size

    def _write_sibling(self, name: str, chunks: Sequence[Buffer], mode: int, replace: bool) -> int:
        self.remove_leftovers()
        sibling, fd, lock = self.open_sibling(mode)
        try:
            try:
                size = _write_all(fd, chunks)
                set_mode(fd, mode)
            finally:
                os.close(fd)
            if replace:
                os.rename(sibling, name, src_dir_fd=self._fd, dst_dir_fd=self._fd)
            else:
                self._name_sibling(sibling, name)
        except BaseException:
            self._discard(sibling)
            raise
        finally:
            os.close(lock)
        return size

    def open_sibling(self, mode: int) -> tuple[str, int, int]:
        """Name and descriptor of a new hidden file, and the descriptor that holds its lock.   Raises: OSError."""
        while True:
            sibling = _sibling_name()
            fd = self.open_file(sibling, os.O_CREAT | os.O_EXCL | os.O_RDWR, mode)
            lock = _lock(fd)
            if os.fstat(fd).st_nlink:
                return sibling, fd, lock
            # Another process took it for a leftover before it was locked.
            os.close(lock)
            os.close(fd)

    def _name_sibling(self, sibling: str, name: str) -> None:
        """Give a hidden file its name, which must be free."""
        try:
            os.link(sibling, name, src_dir_fd=self._fd, dst_dir_fd=self._fd)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            # No links here, so no way to rename without the small chance of another process's file.
            if self.has(name):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from error
            os.rename(sibling, name, src_dir_fd=self._fd, dst_dir_fd=self._fd)
        else:
            os.unlink(sibling, dir_fd=self._fd)

    def remove_leftovers(self) -> None:
        """Remove hidden files whose process was killed before they got their names; once a process and folder."""
        status = os.fstat(self._fd)
        folder_key = os.path.abspath(self.path), status.st_dev, status.st_ino
        if folder_key in _swept_folders:
            return
        if len(_swept_folders) >= _MAX_SWEPT_FOLDERS:
            _swept_folders.clear()
        _swept_folders.add(folder_key)
        for name in filter(SIBLING.fullmatch, os.listdir(self._fd)):
            with contextlib.suppress(OSError):  # not ours to read, in use, or gone
                fd = self.open_file(name, os.O_RDONLY)
                try:
                    if stat.S_ISDIR(os.fstat(fd).st_mode):
                        _remove_dead_scratch(os.path.join(self.path, name))
                        continue
                    # A living process, on this machine or another, holds the lock until its file has its name.
                    # A shared lock: network filesystems give only shared locks to read-only opens.
                    fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
                    os.unlink(name, dir_fd=self._fd)
                finally:
                    os.close(fd)

    def _rename(self, sibling: str, name: str) -> None:
        try:
            os.rename(sibling, name, src_dir_fd=self._fd, dst_dir_fd=self._fd)
        except BaseException:
            self._discard(sibling)
            raise

    def _discard(self, sibling: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(sibling, dir_fd=self._fd)


def write_file(path: str | os.PathLike[str], chunks: Sequence[Buffer], mode: int, replace: bool = False) -> int:
    """Publish one file; see `Folder.write`. Its folder must be there."""
    folder_name, name = os.path.split(os.fspath(path))
    with Folder(folder_name or ".") as folder:
        return folder.write(name, chunks, mode, replace)


def link_or_copy(existing: str | os.PathLike[str], new: str | os.PathLike[str]) -> bool:
    """Give a file a second name; True for a hard link, False for a copy because links are refused.

    Raises: WriteError.
    """
    existing_folder_name, existing_name = os.path.split(os.fspath(existing))
    new_folder_name, new_name = os.path.split(os.fspath(new))
    with Folder(existing_folder_name or ".") as source, Folder(new_folder_name or ".") as target:
        return target.link(existing_name, new_name, source)


def remove_leftovers(folder: str | os.PathLike[str]) -> None:
    """Remove what killed processes left in a folder; nothing happens where there is no such folder."""
    with contextlib.suppress(WriteError, OSError, ValueError), Folder(folder) as opened:
        opened.remove_leftovers()


@contextmanager
def scratch_folder(parent: str | os.PathLike[str]) -> Iterator[Path]:
    """A hidden folder in `parent` for what is renamed out of it when it is whole. It goes at the end, with what is left
    in it; where the process was killed, the next one that writes to `parent` removes it.

    Raises: WriteError when it cannot be made.
    """
    remove_leftovers(parent)
    path, lock = _open_scratch(parent)
    try:
        yield path
    finally:
        _remove_scratch(path)
        os.close(lock)


def _open_scratch(parent: str | os.PathLike[str]) -> tuple[Path, int]:
    """The folder, and the descriptor that holds its lock: a file in it, as network filesystems lock no folders."""
    while True:
        path = Path(parent, _sibling_name())
        if not claim_dir(path):
            continue
        try:
            lock = os.open(path / _SCRATCH_LOCK, os.O_CREAT | os.O_EXCL | os.O_RDWR | _O_CLOEXEC, 0o600)
        except FileNotFoundError:  # another process took it for a leftover
            continue
        except OSError as error:
            raise write_error(str(path), "to make this folder", error) from error
        with contextlib.suppress(OSError):  # no locks on this filesystem: then nobody removes leftovers either
            fcntl.flock(lock, fcntl.LOCK_EX)
        if os.fstat(lock).st_nlink:
            return path, lock
        os.close(lock)


def _remove_dead_scratch(path: str) -> None:
    """Raises: OSError for one that is in use."""
    try:
        lock = os.open(os.path.join(path, _SCRATCH_LOCK), os.O_RDONLY | _O_NOFOLLOW | OPEN_FLAGS)
    except FileNotFoundError:
        os.rmdir(path)  # killed, or about to be locked: that process then makes another
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        _remove_scratch(Path(path))
    finally:
        os.close(lock)


def _remove_scratch(path: Path) -> None:
    """The lock file is removed last: without it the owner of the rest would be unknown."""
    with contextlib.suppress(OSError):
        for name in os.listdir(path):
            if name != _SCRATCH_LOCK:
                shutil.rmtree(path / name, ignore_errors=True)
                with contextlib.suppress(OSError):
                    os.unlink(path / name)
        os.unlink(path / _SCRATCH_LOCK)
        os.rmdir(path)


def set_mode(fd: int, mode: int) -> None:
    """Give an open file this mode, independent of the umask."""
    if stat.S_IMODE(os.fstat(fd).st_mode) != mode:
        os.fchmod(fd, mode)


def _lock(fd: int) -> int:
    """A second descriptor of an open file that holds its lock until it is closed or the process ends."""
    lock = os.dup(fd)
    with contextlib.suppress(OSError):  # no locks on this filesystem: then nobody removes leftovers either
        fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def _sibling_name() -> str:
    return f".{os.getpid()}-{threading.get_ident()}-{next(_temporary_numbers)}.tmp"


def _size(chunks: Sequence[Buffer]) -> int:
    return sum(memoryview(chunk).nbytes for chunk in chunks)


def _write_all(fd: int, chunks: Sequence[Buffer]) -> int:
    """Write every byte without copying; one call may take less than all, 2 GiB at most on Linux."""
    views = [memoryview(chunk).cast("B") for chunk in chunks if memoryview(chunk).nbytes]
    size = sum([view.nbytes for view in views])
    left = size
    while left:
        written = os.writev(fd, views[:_MAX_BUFFERS])
        left -= written
        if not left:
            break
        if not written:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        while written >= views[0].nbytes:
            written -= views.pop(0).nbytes
        views[0] = views[0][written:]
    return size

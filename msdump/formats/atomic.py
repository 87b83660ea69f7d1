"""Publishing of files: a file is there as a whole or not at all, also after the process was killed.

The bytes go to a file without a name, which is then linked under its own (O_TMPFILE + link). Where the system has no
such thing they go to a hidden sibling that is renamed. Nothing is flushed to the device: a power cut is not covered.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import mmap
import os
import stat
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from msdump.errors import WriteError
from msdump.formats import direct
from msdump.formats.direct import Buffer

_O_CLOEXEC = getattr(os, "O_CLOEXEC", 0)
_O_TMPFILE = getattr(os, "O_TMPFILE", 0)
_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | _O_CLOEXEC
# Answers of filesystems (overlay, NFS, FUSE) and sandboxes that know no unnamed files, or no /proc to name them by.
_NO_UNNAMED = {errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT, errno.ENOSYS, errno.EPERM, errno.EXDEV}
_NO_LINKS = {errno.EPERM, errno.EXDEV, errno.EMLINK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EACCES}
_MAX_BUFFERS = 512  # writev takes 1024 on Linux; other systems less

_FIXES = {
    errno.ENOSPC: "The disk is full: free space, or dump fewer iterations or operators.",
    errno.EDQUOT: "The quota is used up: free space, or dump fewer iterations or operators.",
    errno.EACCES: "The folder is not writable for this user: choose another path or change its mode.",
    errno.EPERM: "The system refuses it: choose another path.",
    errno.EROFS: "The filesystem is read-only: choose another path.",
    errno.ENOTDIR: "A file sits where a folder should be: move it away or choose another path.",
    errno.EEXIST: "It is there already: move it away or choose another path.",
    errno.ENOENT: "The folder is gone: do not remove it while the dump runs.",
    errno.EMFILE: "Too many files are open: raise the limit (ulimit -n).",
    errno.ENFILE: "Too many files are open on this machine.",
    errno.ENAMETOOLONG: "The path is too long: choose a shorter one.",
    errno.EFBIG: "The file is larger than the filesystem or `ulimit -f` allows.",
    errno.EIO: "The device reports an error: look at the system log.",
}
_temporary_numbers = itertools.count()


def _write_error(where: str, expected: str, error: OSError) -> WriteError:
    reason = error.strerror or str(error)
    fix = _FIXES.get(error.errno or 0, "")
    return WriteError(f"{where}: expected {expected}, got {reason}. {fix}".rstrip())


def make_dirs(path: str | os.PathLike[str], mode: int = 0o700) -> None:
    """Make a folder and its missing parents; those made get exactly `mode`, whatever the umask is.

    Raises: WriteError when a file sits in the way, or the system refuses.
    """
    target = os.fspath(path)
    missing: list[str] = []
    probe = target
    while not os.path.isdir(probe):
        missing.append(probe)
        parent = os.path.dirname(probe)
        if parent in ("", probe):
            break
        probe = parent
    for folder in reversed(missing):
        try:
            os.mkdir(folder, mode)
        except FileExistsError as error:
            if os.path.isdir(folder):  # another process was faster
                continue
            raise WriteError(
                f"{folder}: expected a folder, got a file. Move it away or choose another path."
            ) from error
        except FileNotFoundError as error:
            raise WriteError(
                f"{folder}: expected to make this folder, got {error.strerror}. "
                "No folder can be made there, or the one above it was just removed: choose another path."
            ) from error
        except OSError as error:
            raise _write_error(folder, "to make this folder", error) from error
        except ValueError as error:
            raise WriteError(f"{folder!r}: expected a path, got {error}. Choose another path.") from error
        if stat.S_IMODE(os.stat(folder).st_mode) != mode:
            os.chmod(folder, mode)


def claim_dir(path: str | os.PathLike[str], mode: int = 0o700) -> bool:
    """Make a folder that nobody else has made, and its missing parents; False when it is there already.

    Raises: WriteError when the system refuses, or a file sits above it.
    """
    folder = os.fspath(path)
    make_dirs(os.path.dirname(folder) or ".", mode)
    try:
        os.mkdir(folder, mode)
    except FileExistsError:
        return False
    except OSError as error:
        raise _write_error(folder, "to make this folder", error) from error
    if stat.S_IMODE(os.stat(folder).st_mode) != mode:
        os.chmod(folder, mode)
    return True


class Folder:
    """An open folder that files are published in; owns its descriptor. Any thread may call it.

    Keeping the folder open spares each file the walk along the path. With `is_direct` big files are written past the
    page cache where the filesystem does such a thing: nearly free for the processor, and at the disk's full pace when
    more is written than the cache may hold; who writes little and waits for it is better served by the cache.
    """

    def __init__(self, path: str | os.PathLike[str], is_direct: bool = False) -> None:
        self.path = os.fspath(path)
        try:
            self._fd = os.open(self.path, _OPEN_FOLDER)
        except OSError as error:
            raise _write_error(self.path, "a folder to write to", error) from error
        self._has_unnamed = bool(_O_TMPFILE)
        self._is_direct = is_direct and direct.is_worthwhile(self._fd)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def has(self, name: str) -> bool:
        """Whether anything, a broken link included, has this name."""
        try:
            os.stat(name, dir_fd=self._fd, follow_symlinks=False)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise _write_error(self._where(name), "a name to look up", error) from error
        return True

    def write(self, name: str, chunks: Sequence[Buffer], mode: int, replace: bool = False) -> int:
        """Publish a file that holds the chunks one after the other; returns its size.

        Raises: WriteError; the name is then free or holds what it held before.
        """
        try:
            if self._has_unnamed:
                try:
                    return self._write_unnamed(name, chunks, mode, replace)
                except OSError as error:
                    if error.errno not in _NO_UNNAMED:
                        raise
                # If it was another trouble, the sibling meets it as well, and its error is the one to tell.
                size = self._write_sibling(name, chunks, mode, replace)
                self._has_unnamed = False
                return size
            return self._write_sibling(name, chunks, mode, replace)
        except FileExistsError as error:
            raise WriteError(
                f"{self._where(name)}: expected a free name, got a file that is there already. "
                "Move it away or choose another path."
            ) from error
        except OSError as error:
            raise _write_error(self._where(name), f"to write {_size(chunks)} bytes", error) from error

    def link(self, existing: str, name: str, existing_folder: Folder | None = None) -> bool:
        """Give a file a further name; False when links are refused and a copy was made.   Raises: WriteError."""
        source = existing_folder or self
        try:
            os.link(existing, name, src_dir_fd=source._fd, dst_dir_fd=self._fd)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise _write_error(self._where(name), f"a second name of {source._where(existing)}", error) from error
        else:
            return True
        try:
            fd = os.open(existing, os.O_RDONLY | _O_CLOEXEC, dir_fd=source._fd)
        except OSError as error:
            raise _write_error(source._where(existing), "to read it for a copy", error) from error
        try:
            status = os.fstat(fd)
            chunks = [mmap.mmap(fd, 0, access=mmap.ACCESS_READ)] if status.st_size else []
        finally:
            os.close(fd)
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
        try:
            size = fill(fd, chunks)
            _set_mode(fd, mode)
            source = f"/proc/self/fd/{fd}"
            if not replace:
                # Only with a folder descriptor does Python ask the kernel to follow the link in /proc.
                os.link(source, name, dst_dir_fd=self._fd, follow_symlinks=True)
                return size
            sibling = _sibling_name()
            os.link(source, sibling, dst_dir_fd=self._fd, follow_symlinks=True)
        finally:
            os.close(fd)
        self._rename(sibling, name)
        return size

    def _write_sibling(self, name: str, chunks: Sequence[Buffer], mode: int, replace: bool) -> int:
        sibling = _sibling_name()
        fd = os.open(sibling, os.O_CREAT | os.O_EXCL | os.O_WRONLY | _O_CLOEXEC, mode, dir_fd=self._fd)
        try:
            try:
                size = _write_all(fd, chunks)
                _set_mode(fd, mode)
            finally:
                os.close(fd)
            if not replace:
                try:
                    os.link(sibling, name, src_dir_fd=self._fd, dst_dir_fd=self._fd)
                except OSError as error:
                    if error.errno not in _NO_LINKS:
                        raise
                    # No links here, so no way to rename without the small chance of another process's file.
                    if self.has(name):
                        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from error
                    os.rename(sibling, name, src_dir_fd=self._fd, dst_dir_fd=self._fd)
                    return size
                os.unlink(sibling, dir_fd=self._fd)
                return size
        except BaseException:
            self._discard(sibling)
            raise
        self._rename(sibling, name)
        return size

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


class AppendFile:
    """A text file that only grows, line by line; owns its descriptor. Any thread may append.

    Each append is one write, so a killed process leaves whole lines as far as the system writes them whole; a line that
    an earlier process left cut is removed when the file is opened. The file has its final mode all the time.
    `is_new` says that it held nothing when it was opened.
    """

    def __init__(self, path: str | os.PathLike[str], mode: int) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        try:
            self._fd = _open_to_append(os.fspath(path), mode)
            try:
                _set_mode(self._fd, mode)
                self.is_new = _drop_cut_line(self._fd) == 0
            except BaseException:
                os.close(self._fd)
                raise
        except OSError as error:
            raise _write_error(os.fspath(path), "a text file to append to", error) from error

    def first_line(self) -> str:
        """First line without its end, "" for an empty file."""
        head = os.pread(self._fd, 1 << 16, 0)
        return head.split(b"\n", 1)[0].decode(errors="replace")

    def append(self, text: str) -> int:
        """Add whole lines; returns the bytes written.

        Raises: WriteError; the file then holds what it held before.
        """
        data = text.encode(errors="backslashreplace")
        with self._lock:
            try:
                written = os.write(self._fd, data)
                if written != len(data):
                    # Short only when the disk is full: take the part back.
                    os.ftruncate(self._fd, os.lseek(self._fd, 0, os.SEEK_CUR) - written)
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            except OSError as error:
                raise _write_error(os.fspath(self.path), f"to append {len(data)} bytes", error) from error
        return written

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> AppendFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def append_text(path: str | os.PathLike[str], text: str, mode: int) -> int:
    """Append whole lines to a file that may not be there yet; returns the bytes written.   Raises: WriteError."""
    with AppendFile(path, mode) as file:
        return file.append(text)


def _open_to_append(path: str, mode: int) -> int:
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | _O_CLOEXEC
    try:
        return os.open(path, flags, mode | stat.S_IWUSR)
    except PermissionError:
        # Finished files are read-only; their owner may take that back.
        os.chmod(path, mode | stat.S_IWUSR | stat.S_IRUSR)
        return os.open(path, flags, mode)


def _drop_cut_line(fd: int) -> int:
    """Cut the file after its last line end; returns its size then."""
    size = end = os.fstat(fd).st_size
    while end:
        start = max(0, end - 4096)
        last = os.pread(fd, end - start, start).rfind(b"\n")
        if last >= 0:
            end = start + last + 1
            break
        end = start
    if end != size:
        os.ftruncate(fd, end)
    return end


def _set_mode(fd: int, mode: int) -> None:
    if stat.S_IMODE(os.fstat(fd).st_mode) != mode:
        os.fchmod(fd, mode)


def _sibling_name() -> str:
    return f".{os.getpid()}-{threading.get_ident()}-{next(_temporary_numbers)}.tmp"


def _size(chunks: Sequence[Buffer]) -> int:
    return sum(memoryview(chunk).nbytes for chunk in chunks)


def _write_all(fd: int, chunks: Sequence[Buffer]) -> int:
    """Write every byte without copying; one call may take less than all, 2 GiB at most on Linux."""
    views = [memoryview(chunk).cast("B") for chunk in chunks if memoryview(chunk).nbytes]
    size = sum(view.nbytes for view in views)
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

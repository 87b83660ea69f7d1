"""Text files that grow line by line: `statistic.csv`, `mapping.csv`, the history of a graph."""

from __future__ import annotations

import errno
import os
import stat
import threading
from pathlib import Path

from msdump.errors import WriteError
from msdump.formats.atomic import Folder, set_mode
from msdump.formats.folders import close_written, write_error
from msdump.storage.plain import kind_of


class AppendFile:
    """A text file that only grows, line by line; owns its descriptor. Any thread may append.

    Each append is one write, so a killed process leaves whole lines as far as the system writes them whole; a line that
    an earlier process left cut is removed when the file is opened. The file has its final mode all the time.
    A link under its name is refused, as is anything but a plain file: what is appended, and the mode, would land
    elsewhere.

    head     whole lines that a new file begins with; where the system can, it is never there without them
    is_new   it was not there, or empty, when it was opened
    """

    def __init__(self, path: str | os.PathLike[str], mode: int, folder: Folder | None = None, head: str = "") -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        where = os.fspath(path)
        name = os.path.basename(where)
        if folder is None:
            with Folder(os.path.dirname(where) or ".") as opened:
                self._fd, self.is_new = _open_to_append(opened, name, mode, head.encode())
        else:
            self._fd, self.is_new = _open_to_append(folder, name, mode, head.encode())
        try:
            set_mode(self._fd, mode)
            if _drop_cut_line(self._fd) == 0:
                self.is_new = True
                if head:
                    self.append(head)
        except BaseException as error:
            os.close(self._fd)
            if isinstance(error, OSError):
                raise write_error(where, "a text file to append to", error) from error
            raise

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
                _append_all(self._fd, data)
            except OSError as error:
                raise write_error(os.fspath(self.path), f"to append {len(data)} bytes", error) from error
        return len(data)

    def close(self) -> None:
        """Raises: WriteError, also when the file was removed meanwhile: its lines are lost."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            is_gone = not os.fstat(fd).st_nlink
            close_written(fd, os.fspath(self.path))
            if is_gone:
                raise WriteError(
                    f"{self.path}: expected the file that was written, got none: it was removed, and its lines with "
                    "it. Do not change the folders while the dump runs."
                )

    def __enter__(self) -> AppendFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def append_text(path: str | os.PathLike[str], text: str, mode: int, folder: Folder | None = None) -> int:
    """Append whole lines to a file that may not be there yet; returns the bytes written.

    folder   the open folder that `path` lies in, where the caller has it

    Raises: WriteError, also for a link or anything but a plain file under that name.
    """
    with AppendFile(path, mode, folder) as file:
        return file.append(text)


def _append_all(fd: int, data: bytes) -> None:
    """Append in one write where the system takes all of it; a part is taken back when the rest is refused."""
    written = 0
    try:
        while written < len(data):
            count = os.write(fd, data[written:])
            if not count:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            written += count
    except OSError:
        if written:
            os.ftruncate(fd, os.lseek(fd, 0, os.SEEK_CUR) - written)
        raise


def _open_to_append(folder: Folder, name: str, mode: int, head: bytes) -> tuple[int, bool]:
    """Descriptor, and whether it is of a new file that begins with the head."""
    where = os.path.join(folder.path, name)
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT
    try:
        created = folder.open_with_head(name, head, mode) if head and not folder.has(name) else None
        if created is not None:
            return created, True
        try:
            return _checked(folder.open_file(name, flags, mode | stat.S_IWUSR), where), False
        except PermissionError as refusal:
            # Finished files are read-only; their owner may take that back.
            try:
                fd = _checked(folder.open_file(name, os.O_RDONLY), where)
            except FileNotFoundError:
                raise refusal from None  # it is the folder that takes no file
            try:
                os.fchmod(fd, mode | stat.S_IWUSR | stat.S_IRUSR)
            finally:
                os.close(fd)
            return _checked(folder.open_file(name, flags, mode), where), False
    except OSError as error:
        raise write_error(where, "a text file to append to", error) from error


def _checked(fd: int, where: str) -> int:
    """The descriptor when it is of a plain file.   Raises: WriteError; it is closed then."""
    mode = os.fstat(fd).st_mode
    if stat.S_ISREG(mode):
        return fd
    os.close(fd)
    raise WriteError(f"{where}: expected a plain file to append to, got {kind_of(mode)}. Remove it.")


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

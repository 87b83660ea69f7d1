"""Packs that are being written: one tar archive for each folder of an iteration, in the place of the folder.

See `msdump.storage.pack_format` for the bytes. A pack grows as `5.tar.part` and is named `5.tar` when it has its index,
so a file of that name is whole. Where a name is taken, by another run or another graph of the same iteration, the pack
is called `5.1.tar`: what is in it decides, not its name.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msdump.errors import WriteError
from msdump.formats.atomic import Folder, make_dirs, set_mode
from msdump.formats.direct import Buffer
from msdump.formats.folders import close_written, try_lock, write_error
from msdump.formats.npy import MAGIC
from msdump.formats.paths.sync import MAPPING_FILE
from msdump.formats.writer import Counter, LinkFolder, LongNames, WriteCounts, finish_all
from msdump.storage.pack_format import INDEX_NAME, PART_SUFFIX, SUFFIX, Member, end_of_pack, header, padding
from msdump.storage.packs import hash_of

if TYPE_CHECKING:
    from msdump.tensors.records import TensorRecord

_MAX_BUFFERS = 512
_JOINED_BYTES = 128 << 10
_ZEROS = bytes(512)


class PackFolder:
    """One pack that is being written, as a folder. Any thread may call it.

    path     of the folder that it stands for, whose last part is the folder of the members
    mode     of the archive when it is whole
    is_copy  of files that are there: until it is whole it is a hidden file, which goes when the process is killed
    """

    def __init__(self, path: Path, mode: int, dir_mode: int, is_copy: bool = False) -> None:
        make_dirs(path.parent, dir_mode)
        self.path = str(path)
        self._folder = path.name
        self._parent = Folder(path.parent)
        self._mode = mode
        self._lock = threading.Lock()
        self._members: dict[str, Member] = {}
        self._mapping: dict[str, str] = {}
        self._names = LongNames(self._members.__contains__, self._append_mapping)
        self._size = 0
        self._mtime = int(time.time())
        self._lock_fd = -1
        try:
            if is_copy:
                self._name = self._folder
                self._part, self._fd, self._lock_fd = self._open_hidden()
            else:
                self._name, self._fd = self._claim()
                self._part = f"{self._name}{PART_SUFFIX}"
        except BaseException:
            self._parent.close()
            raise

    # -- as writers use a folder ---------------------------------------------------------------------------------------

    def fitting_name(self, name: str, suffix: str) -> str:
        """The name itself, or digits that stand for it in mapping.csv: the members must have names on a disk."""
        return self._names.fitting(name, suffix)

    def write(
        self, name: str, chunks: Sequence[Buffer], mode: int, replace: bool = False, tensors_from: int = 0
    ) -> int:
        """Add a member; returns its size.

        tensors_from   number of the first chunk that is the data of a tensor; 0: none is
        Raises: WriteError; nothing of the member counts then.
        """
        views = [memoryview(chunk).cast("B") for chunk in chunks if memoryview(chunk).nbytes]
        size = sum(view.nbytes for view in views)
        head, hashes = described(views, tensors_from)
        full = f"{self._folder}/{name}"
        blocks = header(full, size, mode, self._mtime, original=self._mapping.get(name))
        with self._lock:
            self._check_free(name)
            offset = self._size + len(blocks)
            self._append([blocks, *views, _ZEROS[: padding(size)]], len(blocks) + size + padding(size), name)
            self._members[name] = Member(full, offset, size, head=head, hashes=hashes)
        return size

    def link(self, existing: str, name: str, existing_folder: LinkFolder | None = None) -> bool:
        """Give a member a further name; False when its bytes had to be copied from another pack.

        Raises: WriteError.
        """
        source = existing_folder if isinstance(existing_folder, PackFolder) else self
        if source is not self:
            self.write(name, [source.content(existing)], self._mode)
            return False
        with self._lock:
            self._check_free(name)
            origin = self._members[existing]
            full = f"{self._folder}/{name}"
            target = origin.name if not origin.is_link else self._first_name(origin)
            blocks = header(full, 0, self._mode, self._mtime, target, self._mapping.get(name))
            self._append([blocks], len(blocks), name)
            self._members[name] = Member(full, origin.offset, origin.size, True, origin.head, origin.hashes)
        return True

    def content(self, name: str) -> bytes:
        """Bytes of a member.   Raises: WriteError."""
        with self._lock:
            member = self._members[name]
            try:
                return os.pread(self._fd, member.size, member.offset)
            except OSError as error:
                raise write_error(f"{self.path}/{name}", "to read it for a copy", error) from error

    @property
    def overhead_bytes(self) -> int:
        """What the pack takes besides the bytes of its members."""
        return self._size - sum(member.size for member in self._members.values() if not member.is_link)

    def close(self) -> None:
        """Nothing: others write into the same pack. `finish` ends it."""

    # -- the whole pack ------------------------------------------------------------------------------------------------

    def finish(self) -> str:
        """Write the index, and give the pack its name; returns its path, "" for one without members, which is removed.

        Raises: WriteError; what was written stays as it is, without an index.
        """
        if self._fd < 0:
            return ""
        part = self._part
        where = os.path.join(os.path.dirname(self.path), part)
        try:
            try:
                if not self._members:
                    os.unlink(part, dir_fd=self._parent.descriptor)
                    return ""
                if self._mapping and MAPPING_FILE not in self._members:
                    lines = "".join(f"{mapped},{original}\n" for mapped, original in self._mapping.items())
                    self.write(MAPPING_FILE, [lines.encode(errors="backslashreplace")], self._mode)
                with self._lock:
                    members = list(self._members.values())
                    end = end_of_pack(self._folder, members, self._size, self._mode, self._mtime)
                    self._append([end], len(end), INDEX_NAME)
                set_mode(self._fd, self._mode)
            finally:
                fd, self._fd = self._fd, -1
                close_written(fd, where)
            return self._publish(part)
        except OSError as error:
            self._drop_copy()
            raise write_error(where, "to finish this pack", error) from error
        except BaseException:
            self._drop_copy()
            raise
        finally:
            if self._lock_fd >= 0:
                os.close(self._lock_fd)
            self._parent.close()

    def discard(self) -> None:
        """Remove what was written so far of a copy. Nothing after `finish`."""
        if self._fd >= 0:
            self._drop_copy()
            for fd in (self._fd, self._lock_fd):
                with contextlib.suppress(OSError):
                    os.close(fd)
            self._fd = -1
            self._parent.close()

    def _drop_copy(self) -> None:
        if self._lock_fd >= 0:
            with contextlib.suppress(OSError):
                os.unlink(self._part, dir_fd=self._parent.descriptor)

    # -- parts ---------------------------------------------------------------------------------------------------------

    def _claim(self) -> tuple[str, int]:
        """Stem of a free name, and the open file."""
        number = 0
        while True:
            stem = self._folder if number == 0 else f"{self._folder}.{number}"
            number += 1
            if self._parent.has(f"{stem}{SUFFIX}"):
                continue
            part = f"{stem}{PART_SUFFIX}"
            try:
                fd = self._parent.open_file(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
                try_lock(fd)  # commands do not touch a pack that is being written
            except FileExistsError:
                continue
            except OSError as error:
                raise write_error(os.path.join(self._parent.path, part), "to make this pack", error) from error
            return stem, fd

    def _open_hidden(self) -> tuple[str, int, int]:
        try:
            self._parent.remove_leftovers()
            return self._parent.open_sibling(0o600)
        except OSError as error:
            raise write_error(f"{self.path}{SUFFIX}", "to make this pack", error) from error

    def _publish(self, part: str) -> str:
        """Rename to a free name."""
        handle = self._parent.descriptor
        number = 0
        while True:
            stem = self._name if number == 0 else f"{self._name}.{number}"
            number += 1
            name = f"{stem}{SUFFIX}"
            try:
                os.link(part, name, src_dir_fd=handle, dst_dir_fd=handle)
            except FileExistsError:
                continue
            except OSError as error:
                if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK):
                    raise
                if self._parent.has(name):
                    continue
                os.rename(part, name, src_dir_fd=handle, dst_dir_fd=handle)
            else:
                os.unlink(part, dir_fd=handle)
            return os.path.join(self._parent.path, name)

    def _check_free(self, name: str) -> None:
        if name in self._members:
            raise WriteError(f"{self.path}/{name}: expected a free name, got an existing member. Choose another path.")

    def _first_name(self, link: Member) -> str:
        return next(
            member.name for member in self._members.values() if member.offset == link.offset and not member.is_link
        )

    def _append_mapping(self, mapped: str, original: str) -> None:
        self._mapping[mapped] = original

    def _append(self, chunks: Sequence[bytes | memoryview], size: int, name: str) -> None:
        """Add whole blocks at the end, which after a failure is where it was. The lock is held.

        One call to the system for a small member: a killed process leaves whole members, and the last one cut.
        """
        offset, end = self._size, self._size + size
        # Copying little is cheaper than telling the system of several pieces.
        pieces = (b"".join(chunks),) if size < _JOINED_BYTES else chunks
        views = [memoryview(piece) for piece in pieces if len(piece)]
        try:
            while offset < end:
                count = os.pwritev(self._fd, views[:_MAX_BUFFERS], offset)
                if not count:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                offset += count
                while views and count >= views[0].nbytes:
                    count -= views.pop(0).nbytes
                if count:
                    views[0] = views[0][count:]
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, self._size)
            raise write_error(f"{self.path}/{name}", f"to append {size} bytes", error) from error
        self._size = end


def described(views: Sequence[memoryview], tensors_from: int) -> tuple[bytes, tuple[str, ...]]:
    """What the index says of a member: its first bytes, of a .npy file, and the hashes of its tensors.

    tensors_from   as of `PackFolder.write`; chunks without bytes are left out
    """
    head = bytes(views[0]) if len(views) > 1 and bytes(views[0][:6]) == MAGIC else b""
    # Equal bytes in column-major order are other numbers.
    if not tensors_from or b"'fortran_order': True" in head:
        return head, ()
    offset = sum(view.nbytes for view in views[:tensors_from])
    hashes: list[str] = []
    for view in views[tensors_from:]:
        hashes.append(f"{offset}:{hash_of(view)}")
        offset += view.nbytes
    return head, tuple(hashes)


class MemberText:
    """A text file of a pack that grows until it is closed, which is when it becomes a member."""

    is_new = True

    def __init__(self, pack: PackFolder, name: str, mode: int, head: str) -> None:
        self.path = Path(pack.path, name)
        self._pack = pack
        self._mode = mode
        self._texts = [head]
        self._lock = threading.Lock()

    def first_line(self) -> str:
        """First line without its end."""
        return self._texts[0].split("\n", 1)[0]

    def append(self, text: str) -> int:
        """Add whole lines; returns their bytes."""
        with self._lock:
            self._texts.append(text)
        return len(text.encode(errors="backslashreplace"))

    def close(self) -> None:
        """Raises: WriteError."""
        texts, self._texts = self._texts, []
        if texts:
            self._pack.write(self.path.name, ["".join(texts).encode(errors="backslashreplace")], self._mode)


class Packs:
    """The packs of one dump. It stands behind the writers that fill them, and ends a pack when they have.

    directory    folder that a record belongs to, which only its graph and its iteration decide
    on_finished  called with the path of each whole pack, and the graph and the iteration that it is of
    """

    writes_once = True
    takes_empty = False

    def __init__(
        self,
        directory: Callable[[TensorRecord], Path],
        mode: int,
        dir_mode: int = 0o700,
        on_finished: Callable[[Path, int, int], None] = lambda *_: None,
    ) -> None:
        self._directory = directory
        self._mode = mode
        self._dir_mode = dir_mode
        self._on_finished = on_finished
        self._counter = Counter()
        self._open: dict[Path, PackFolder] = {}
        self._paths: dict[tuple[int, int], Path] = {}
        self._lock = threading.Lock()

    def open(self, path: Path) -> PackFolder:
        """The pack that stands for a folder.   Raises: WriteError."""
        with self._lock:
            pack = self._open.get(path)
            if pack is None:
                pack = self._open[path] = PackFolder(path, self._mode, self._dir_mode)
            return pack

    @property
    def counts(self) -> WriteCounts:
        """What packs take besides the bytes of the files in them."""
        return self._counter.total

    def write(self, records: Sequence[TensorRecord]) -> None:
        """Note where the records of an iteration lie."""
        for record in records:
            step = record.graph_id, record.iteration
            if step not in self._paths:
                self._paths[step] = self._directory(record)

    def end_iteration(self, graph_id: int, iteration: int) -> None:
        """Raises: WriteError."""
        with self._lock:
            path = self._paths.pop((graph_id, iteration), None)
            pack = None if path is None else self._open.pop(path, None)
        if pack is None:
            return
        name = pack.finish()
        self._counter.add(bytes_written=pack.overhead_bytes)
        if name:
            self._on_finished(Path(name), graph_id, iteration)

    def close(self) -> None:
        """Raises: WriteError."""
        finish_all([functools.partial(self.end_iteration, *step) for step in list(self._paths)])

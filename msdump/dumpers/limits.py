"""Disk limits of a dump: its budget, the free space that it leaves, the iterations that it keeps.

Dumps meet them as writers: a LimitedWriter around each writer, one DiskGuard for all. A limit that is reached is a
WriteError, and that is what ends a dump: the training goes on.
"""

from __future__ import annotations

import copy
import math
import os
import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from msdump.config.environment import ASYNC_BUFFER, FLOOR, KEEP, DiskLimits, disk_limits, format_size
from msdump.dumpers.rotation import Rotation, names_of
from msdump.dumpers.staging import staging_budget
from msdump.errors import FolderError, WriteError
from msdump.formats.npy import npy_header
from msdump.formats.statistic_csv import MeasuredRows, StatisticWriter
from msdump.formats.writer import WriteCounts, Writer
from msdump.process import dry_run
from msdump.tensors import device_layouts, dtypes
from msdump.tensors.records import AlreadyWritten, TensorRecord

# Space that is left for others unless the user says otherwise: this much, on small disks this part of them.
_DEFAULT_FLOOR, _DEFAULT_FLOOR_PART = 64 << 20, 0.05
# More than the protobuf header of an operator takes for one tensor, and more than a row of statistics.
_HEADER_BYTES, _ROW_BYTES = 512, 1024


class DiskUsage(Protocol):
    """Limits of a disk, in bytes."""

    @property
    def total(self) -> int: ...

    @property
    def free(self) -> int: ...


def disk_usage(path: Path) -> DiskUsage:
    """Of the disk that holds `path`, or will hold it once it is made."""
    while not os.path.exists(path) and path != path.parent:  # a name may be too long to look for
        path = path.parent
    return shutil.disk_usage(path)


def default_floor(usage: DiskUsage) -> int:
    """Bytes that a dump leaves free unless MSDUMP_DISK_FLOOR says otherwise."""
    return int(min(_DEFAULT_FLOOR, _DEFAULT_FLOOR_PART * usage.total))


class HasCounts(Protocol):
    """A writer that counts what it writes."""

    @property
    def counts(self) -> WriteCounts: ...


class _Used:
    """What a dump has of the disk: its writers, and bytes that are held for a write or were removed. See `lock`."""

    def __init__(self) -> None:
        self.writers: list[HasCounts] = []
        self.reserved = 0
        self.removed = 0
        self.lock = threading.Lock()


class DiskGuard:
    """The space left for a folder. Shared by all writers of a dump; any thread may call it.

    root    folder of the dump
    usage   asks the disk; injected by tests
    is_shared  as of Rotation
    make_room  called when a write does not fit, before it is refused; returns the bytes that it removed, 0: it cannot
    """

    def __init__(
        self,
        root: Path,
        limits: DiskLimits,
        usage: Callable[[Path], DiskUsage] = disk_usage,
        is_shared: bool = False,
        make_room: Callable[[], int] = lambda: 0,
    ) -> None:
        self._is_shared = is_shared
        self._make_room = make_room
        self._root = root
        self._limits = limits
        self._usage = usage
        self._used = _Used()
        self._home: Path | None = None
        self.rotation = self.new_rotation()

    def beside(self, root: Path) -> DiskGuard:
        """The guard of another folder of the same dump: the budget is for both, the iterations of each are its own."""
        guard = copy.copy(self)
        guard._root, guard._home = root, None
        guard.rotation = guard.new_rotation()
        return guard

    def new_rotation(self) -> Rotation | None:
        """For writers whose iterations are counted apart from those of others; None: all iterations are kept."""
        keep = self._limits.keep_iterations
        return None if keep is None else Rotation(self._root, keep, is_shared=self._is_shared)

    def watch(self, writer: HasCounts) -> None:
        """Count what this writer puts on the disk."""
        self._used.writers.append(writer)

    def expect_folder(self, home: Path) -> None:
        """From now on refuse writes once this folder is removed: its loss would go unnoticed otherwise."""
        self._home = home

    @property
    def used_bytes(self) -> int:
        """Bytes that the dump has on the disk now."""
        return sum(writer.counts.bytes_written for writer in self._used.writers) - self._used.removed

    def reserve(self, size_bytes: int) -> None:
        """Hold room for a write until `release`.

        Raises: WriteError when a limit would be passed, or the folder that all goes to was removed.
        """
        if self._home is not None and not self._home.is_dir():
            raise WriteError(
                f"{self._home}: expected the folder of this dump, got none: it was removed or renamed, and what it "
                "held with it. Do not change the folders while the dump runs."
            )
        while True:
            try:
                with self._used.lock:
                    self._check_budget(size_bytes)
                    self._check_floor(size_bytes)
                    self._used.reserved += size_bytes
                return
            except WriteError:
                freed = self._make_room()
                if not freed:
                    raise
                self.give_back(freed)

    def release(self, size_bytes: int) -> None:
        """The write is done, and counted by its writer, or has failed."""
        with self._used.lock:
            self._used.reserved -= size_bytes

    def give_back(self, size_bytes: int) -> None:
        """Bytes were removed from the disk."""
        with self._used.lock:
            self._used.removed += size_bytes

    def _check_budget(self, size_bytes: int) -> None:
        budget = self._limits.budget_bytes
        used = self.used_bytes + self._used.reserved
        # A further name of a file takes nothing, and rooms are held generously: they may be a little too large already.
        if budget is not None and size_bytes and used + size_bytes > budget:
            raise WriteError(
                f"{self._root}: expected at most {budget} bytes of dump ({self._limits.budget_name}), got {used} and "
                f"{size_bytes} more to write. Raise the budget, dump less, or set {KEEP}."
            )

    def _check_floor(self, size_bytes: int) -> None:
        floor = self._limits.floor_bytes
        if floor == 0:
            return
        usage = self._usage(self._root)
        if floor is None:
            floor = default_floor(usage)
        needed = self._used.reserved + size_bytes
        if usage.free - needed < floor:
            raise WriteError(
                f"{self._root}: expected at least {format_size(floor)} of the disk to stay free ({FLOOR}), got "
                f"{usage.free} bytes free and {needed} to write. Free space, dump less, or set "
                f"{FLOOR} or {KEEP}."
            )


@dataclass(frozen=True, slots=True)
class Footprint:
    """Disk space of a kind of writer.

    size_of      bytes of a record, never fewer than it takes; True for one whose tensor the iteration has on disk
    is_deferred  whether it is written when the iteration ends, not when the writer gets the record
    names        of the files in which a record may be
    are_repeats_alike  whether `size_of` says the same of both
    """

    size_of: Callable[[TensorRecord, bool], int]
    is_deferred: Callable[[TensorRecord], bool] = lambda _: False
    names: Callable[[TensorRecord], Sequence[str]] = names_of
    are_repeats_alike: bool = False


class LimitedWriter:
    """A writer that keeps within the limits: all records of an operator, or a WriteError before the first of them.

    directory  folder of a record when its iteration may be removed later; None: what is written stays (constants)
    rotation   whose iterations those are; None: the guard's
    """

    def __init__(
        self,
        writer: Writer,
        guard: DiskGuard,
        footprint: Footprint,
        directory: Callable[[TensorRecord], Path] | None = None,
        rotation: Rotation | None = None,
    ) -> None:
        self.writes_once = writer.writes_once
        self.takes_empty = writer.takes_empty
        self._writer = writer
        self._guard = guard
        self._footprint = footprint
        self._directory = directory
        self._open: dict[tuple[int, int], _OpenIteration] = {}
        self._lock = threading.Lock()
        guard.watch(writer)
        self._rotation = (rotation or guard.rotation) if directory is not None else None
        if self._rotation is not None:
            self._rotation.join(self)

    @property
    def counts(self) -> WriteCounts:
        return self._writer.counts

    def write(self, records: Sequence[TensorRecord]) -> None:
        """Raises: WriteError when a limit is reached, and what the writer raises."""
        if not records:
            return
        footprint = self._footprint
        with self._lock:
            iteration = self._open.setdefault((records[0].graph_id, records[0].iteration), _OpenIteration())
            if footprint.are_repeats_alike:
                sizes = [footprint.size_of(record, False) for record in records]
            else:
                sizes = [footprint.size_of(record, iteration.repeats(record)) for record in records]
        size = sum(sizes)
        self._guard.reserve(size)
        late = sum([size for record, size in zip(records, sizes, strict=True) if footprint.is_deferred(record)])
        if late:
            with self._lock:
                iteration.promised_bytes += late
        try:
            if self._rotation is not None and self._directory is not None:
                for record in records:
                    names = footprint.names(record)
                    self._rotation.expect(self._directory(record), names, record.graph_id, record.iteration)
            self._writer.write(records)
        finally:
            if size > late:
                self._guard.release(size - late)

    @property
    def measured_writer(self) -> StatisticWriter | None:
        """What writes rows of known statistics; None where files are written, or digests."""
        writer = self._writer
        return writer if isinstance(writer, StatisticWriter) and not writer.has_md5 else None

    def write_measured(self, rows: MeasuredRows) -> None:
        """As `write`, of `measured_writer`."""
        writer, sample = self.measured_writer, rows.sample
        assert writer is not None
        self._guard.reserve(rows.frames.size_bytes)
        with self._lock:
            iteration = self._open.setdefault((sample.graph_id, sample.iteration), _OpenIteration())
            iteration.promised_bytes += rows.frames.size_bytes
        if self._rotation is not None and self._directory is not None:
            names = self._footprint.names(sample)
            self._rotation.expect(self._directory(sample), names, sample.graph_id, sample.iteration)
        writer.write_measured(rows)

    def end_iteration(self, graph_id: int, iteration: int) -> None:
        """Finish the iteration, then remove the oldest if there are too many.   Raises: WriteError."""
        try:
            self._writer.end_iteration(graph_id, iteration)
        finally:
            with self._lock:
                ended = self._open.pop((graph_id, iteration), None)
            self._guard.release(ended.promised_bytes if ended is not None else 0)
        if self._rotation is not None:
            self._guard.give_back(self._rotation.end(self, graph_id, iteration))

    def close(self) -> None:
        try:
            self._writer.close()
        finally:
            self._guard.release(sum(iteration_state.promised_bytes for iteration_state in self._open.values()))
            self._open.clear()
            if self._rotation is not None:
                self._rotation.leave(self)


class _OpenIteration:
    """Tensors that an iteration has on disk, and bytes that are reserved for it but not written."""

    def __init__(self) -> None:
        self._written: AlreadyWritten[None] = AlreadyWritten()
        self.promised_bytes = 0

    def repeats(self, record: TensorRecord) -> bool:
        """Whether the tensor came before; it is known from now on."""
        return record.is_repeat or not self._written.is_new(record)


def npy_size(record: TensorRecord, is_repeat: bool = False) -> int:
    """Bytes of the npy file of a record; a repeated tensor is a further name of its file."""
    if is_repeat:
        return 0
    row = dtypes.dtype(record.dtype)
    return len(npy_header(record.dtype, record.shape)) + record.data.size * dtypes.dtype(row.npy_name).itemsize


def device_npy_size(record: TensorRecord, is_repeat: bool = False) -> int:
    """Bytes that a record takes at most in an npy file, padding of device formats included."""
    size = npy_size(record, is_repeat)
    if is_repeat or record.format not in device_layouts.DEVICE_FORMATS:
        return size
    itemsize = dtypes.dtype(dtypes.dtype(record.dtype).npy_name).itemsize
    # A shape of more dimensions may take another line of the header.
    return size + _HEADER_BYTES + (_device_elements(record) - record.data.size) * itemsize


def bin_size(record: TensorRecord, is_repeat: bool = False) -> int:
    """Bytes that a record takes at most in the dump file of its operator, padding of device formats included."""
    size = record.data.size
    if record.format in device_layouts.DEVICE_FORMATS:
        size = _device_elements(record)
    return _HEADER_BYTES + len(record.op_name) * 4 + size * dtypes.dtype(record.dtype).itemsize


def _device_elements(record: TensorRecord) -> int:
    c0 = device_layouts.cube_size(record.dtype)
    shape = device_layouts.device_shape(record.shape, record.format, c0, max(1, record.sub_format))
    return max(record.data.size, math.prod(shape))


def row_size(record: TensorRecord, is_repeat: bool = False) -> int:
    """Bytes that a record takes at most as a row of statistics."""
    return row_bytes(record.op_name)


def row_bytes(op_name: str) -> int:
    """Bytes that a row of statistics takes at most."""
    return _ROW_BYTES + 4 * len(op_name)


NPY_FOOTPRINT = Footprint(npy_size)
DEVICE_NPY_FOOTPRINT = Footprint(device_npy_size)
BIN_FOOTPRINT = Footprint(bin_size, are_repeats_alike=True)
ACL_STATS_FOOTPRINT = Footprint(row_size, are_repeats_alike=True)
STATISTIC_FOOTPRINT = Footprint(row_size, are_repeats_alike=True, is_deferred=lambda _: True)


@dataclass(frozen=True, slots=True)
class DiskSpace:
    """Disk space below a folder, as reported before a run. Nothing is written to find out.

    free_bytes   of the disk now
    floor_bytes  that the dump leaves free
    buffer_bytes  of the asynchronous engine; None for the other one
    problem      why the folder cannot be made or written, or that nothing fits into it; "" when neither holds
    """

    limits: DiskLimits
    free_bytes: int
    floor_bytes: int
    buffer_bytes: int | None
    problem: str

    @property
    def writable_bytes(self) -> int:
        """How much the dump may write."""
        space = max(0, self.free_bytes - self.floor_bytes) if self.floor_bytes else self.free_bytes
        return space if self.limits.budget_bytes is None else min(space, self.limits.budget_bytes)


def space_below(
    path: Path,
    is_async: bool,
    environ: Mapping[str, str] = os.environ,
    usage: Callable[[Path], DiskUsage] = disk_usage,
    budget_bytes: int | None = None,
) -> DiskSpace:
    """Look at the disk that holds `path`, or will.   budget_bytes: as of `disk_limits`

    Raises: ConfigError for a wrong variable.
    """
    limits = disk_limits(environ, budget_bytes)
    disk = usage(path)
    floor = default_floor(disk) if limits.floor_bytes is None else limits.floor_bytes
    buffer = staging_budget(environ) if is_async else None
    space = DiskSpace(limits, disk.free, floor, buffer, why_not_writable(path))
    return space if space.problem or space.writable_bytes else replace(space, problem=_no_space(path, space))


def check_folder(path: Path, what: str = "") -> None:
    """Refuse a folder in which no dump can begin: read-only, full, with a name too long or not in UTF-8, below a file.

    what    names it, for the message
    Edges:  nothing is made. A dry run has a folder of its own.
    Raises: FolderError; ConfigError for a wrong variable.
    """
    if dry_run.folder is None and (problem := space_below(path, is_async=False).problem):
        raise FolderError(f"{what}: {problem}" if what else problem)


def _no_space(path: Path, space: DiskSpace) -> str:
    """Also of a file system that holds no files, such as /proc: it has 0 bytes free."""
    reserve = f", and {format_size(space.floor_bytes)} are to stay free ({FLOOR})" if space.floor_bytes else ""
    return (
        f"{path}: expected room for files, got {format_size(space.free_bytes)} of free disk{reserve}. "
        "Free space or choose another path."
    )


def space_rows(space: DiskSpace) -> list[tuple[str, str]]:
    """Labels and texts of the limits, each with its variable."""
    limits = space.limits
    budget = "no budget" if limits.budget_bytes is None else f"at most {format_size(limits.budget_bytes)} in all"
    floor = (
        "the disk may fill up" if not space.floor_bytes else f"{format_size(space.floor_bytes)} of the disk stay free"
    )
    kept = "all iterations are kept" if limits.keep_iterations is None else _kept_text(limits.keep_iterations)
    rows = [
        ("limits", f"{budget} ({limits.budget_name}); {floor} ({FLOOR}); {kept} ({KEEP})"),
        ("disk", f"{format_size(space.free_bytes)} free: the dump may write {format_size(space.writable_bytes)}"),
    ]
    if space.buffer_bytes is not None:
        rows.append(("buffer", f"{format_size(space.buffer_bytes)} of memory for what waits ({ASYNC_BUFFER})"))
    return rows


def _kept_text(count: int) -> str:
    return f"the last {count} iterations are kept" if count > 1 else "the last iteration is kept"


def why_not_writable(path: Path) -> str:
    """Why a run cannot write below `path`, or ""."""
    probe = Path(os.path.abspath(path))
    while not os.path.lexists(probe) and probe != probe.parent:
        probe = probe.parent
    where = "it" if probe == Path(os.path.abspath(path)) else f"{probe} above it"
    encoded = os.fsencode(os.path.abspath(path))
    try:
        encoded.decode()
    except UnicodeDecodeError:
        shown = encoded.decode(errors="backslashreplace")
        return f"{shown}: expected a path in UTF-8, got other bytes. Choose another path."
    try:
        if not probe.is_dir():
            return f"{path}: expected a folder that can be made, got none: {where} is a file. Choose another path."
        longest = os.pathconf(probe, "PC_NAME_MAX")
    except OSError as error:
        return f"{path}: expected a folder that can be made, got: {error.strerror}. Choose another path."
    if not os.access(probe, os.W_OK | os.X_OK):
        return f"{path}: expected a folder that can be made, got none: {where} is not writable. Choose another path."
    long = next((part for part in Path(path).parts if len(os.fsencode(part)) > longest), None)
    if long is not None:
        return f"{path}: expected names of at most {longest} bytes, got {long[:40]}... Choose a shorter path."
    if len(encoded) > (most := os.pathconf("/", "PC_PATH_MAX") - 2 * longest):
        return f"{path}: expected a path of at most {most} bytes, got {len(encoded)}. Choose a shorter path."
    return ""

"""DumpedFile and DumpedTensor: one data file by its name alone, and one tensor in it by the file's header."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from msdump.errors import FormatError, LayoutError, TruncatedFileError, UnknownDtypeError
from msdump.formats.bin import BinTensor
from msdump.formats.dump_file import read_dump
from msdump.formats.npy_reader import SmallNpy, read_npy, scan_npy
from msdump.formats.other_tools.members import Member
from msdump.formats.paths import parse
from msdump.formats.paths.parse import DumpName, FolderLevels
from msdump.storage import files
from msdump.storage.plain import unreadable
from msdump.tables.frames import optional_package
from msdump.tensors import device_layouts, dtypes
from msdump.tensors.arrays import Array
from msdump.tensors.makers import maker
from msdump.tensors.packing import packed_size
from msdump.tensors.records import DEFAULT_FORMAT, INPUT, OUTPUT

_NO_BYTES = np.empty(0, np.uint8)


@dataclass(frozen=True, slots=True)
class DumpedFile:
    """A data file that has not been opened: what its path says.

    original_name    name of the file, restored where mapping.csv had shortened it
    position         in the execution order of its graph; None where no csv tells it
    known_full_name  full name with scope where the execution order tells it
    member           the one tensor that is meant of a file of another tool
    """

    path: str
    levels: FolderLevels
    name: DumpName
    original_name: str
    position: int | None = None
    known_full_name: str | None = None
    member: Member | None = None

    @property
    def form(self) -> str:
        """ "npy", "bin", "raw", "overflow", "pt" or "member"."""
        return self.name.form

    @property
    def op_type(self) -> str:
        return self.name.op_type

    @property
    def op_name(self) -> str:
        """As in the file's name: the last part of the full name, or the whole with `_`."""
        return self.name.op_name

    @property
    def task_id(self) -> int | None:
        return self.name.task_id

    @property
    def stream_id(self) -> int | None:
        return self.name.stream_id

    @property
    def timestamp_us(self) -> int | None:
        return self.name.timestamp_us

    @property
    def io(self) -> str | None:
        """None when the file holds a whole operator."""
        return self.name.io

    @property
    def slot(self) -> int | None:
        """None when the file holds a whole operator."""
        return self.name.slot

    def scan(self) -> tuple[list[DumpedTensor], list[FormatError]]:
        """Read the header: inputs and outputs in the file's order, and what is damaged. Never raises.

        Edges: text or an object in the place of a tensor, where names allow that, is neither.
        """
        try:
            if self.form == parse.NPY:
                return [_npy_tensor(self)], []
            if self.form == parse.RAW:
                return [_raw_tensor(self)], []
            if self.form == parse.PT:
                return [_pt_tensor(self)], []
            if self.member is not None:
                return [_member_tensor(self, self.member)], []
            return _bin_tensors(self)
        except UnknownDtypeError as error:
            return [], [] if self.name.is_argument else [error]
        except FormatError as error:
            return [], [error]
        except OSError as error:
            return [], [unreadable(self.path, error)]

    def tensors(self) -> list[DumpedTensor]:
        """Inputs and outputs in the file's order.   Raises: FormatError for the first thing that is damaged."""
        found, errors = self.scan()
        if errors:
            raise errors[0]
        return found


@dataclass(frozen=True, slots=True)
class DumpedTensor:
    """One tensor of a dump; its bytes stay on disk until `load`, but for those of a small file.

    full_name       with scope where the execution order or the file's header tells it, else None
    part            index in a list of tensors that is one argument, else None
    dtype           a name of the dtype table, of what `load` returns (bfloat16 in npy is float32)
    original_dtype  before the file stored it in a wider one; None where it did not, or does not tell
    shape           as stored; original_shape is the host's where the file tells it, else None
    format          as stored: "DefaultFormat", "ND", "NC1HWC0", ...
    offset          of the data in the file; -1 inside a 1.0 container
    small           the file as it was when its header was read, where it is so small that this was one reading
    """

    file: DumpedFile
    io: str
    slot: int
    dtype: str
    shape: tuple[int, ...]
    format: str
    offset: int
    size_bytes: int
    full_name: str | None = None
    part: int | None = None
    original_shape: tuple[int, ...] | None = None
    sub_format: int = 0
    block: BinTensor | None = None
    original_dtype: str | None = None
    small: SmallNpy | None = field(default=None, compare=False, repr=False)

    def __repr__(self) -> str:
        """One line: whose tensor it is, and of what kind."""
        return f"<{type(self).__name__} {self.op_name} {self.io} {self.slot}: {self.true_dtype} {list(self.shape)}>"

    @property
    def true_dtype(self) -> str:
        """Dtype that the operator's tensor had, as far as the file tells."""
        return self.original_dtype or self.dtype

    @property
    def path(self) -> str:
        return self.file.path

    @property
    def op_type(self) -> str:
        return self.file.op_type

    @property
    def op_name(self) -> str:
        return self.file.op_name

    @property
    def rank_id(self) -> int | None:
        return self.file.levels.rank_id

    @property
    def graph_id(self) -> int | None:
        """Graph id or model id."""
        return self.file.levels.graph_id

    @property
    def model(self) -> str | None:
        """Net name or model name."""
        return self.file.levels.model

    @property
    def iteration(self) -> int | None:
        """None for constants and where no folder tells it."""
        return self.file.levels.iteration

    @property
    def position(self) -> int | None:
        """In the execution order of its graph, where a csv tells it."""
        return self.file.position

    @property
    def task_id(self) -> int | None:
        return self.file.task_id

    @property
    def stream_id(self) -> int | None:
        return self.file.stream_id

    @property
    def timestamp_us(self) -> int | None:
        return self.file.timestamp_us

    @property
    def keyword(self) -> str | None:
        """Name of the keyword argument that the tensor is, else None."""
        return self.file.name.keyword

    @property
    def original(self) -> tuple[str, int] | None:
        """Of an output: name and output of the operator that it is in the program as the user wrote it, where the
        file tells."""
        return None if self.block is None else self.block.original

    @property
    def slot_text(self) -> str:
        """The slot as users know it: its number or keyword, and the index in a list."""
        return f"{self.keyword or self.slot}{f'.{self.part}' if self.part else ''}"

    @property
    def is_parameter(self) -> bool:
        """A graph input or constant, which no operator made."""
        return self.op_type == "Parameter"

    @property
    def content_id(self) -> tuple[int, int, int]:
        """(device, inode, offset): equal ids are the same bytes, hard links included.   Raises: OSError.

        Edges: views of one storage may begin at one offset and differ in more: a number that tells all of it stands
               for the offset then.
        """
        if self.small is not None:
            return self.small.device, self.small.inode, self.offset
        device, inode, offset, _, _ = files.content_id(self.path)
        place = offset + max(0, self.offset) if offset else self.offset
        member = self.file.member
        return device, inode, place if member is None else member.view_id(place)

    @property
    def claimed_hash(self) -> str | None:
        """Hash of the bytes that the index of a pack has, of which nothing is read; None where none has it."""
        return files.claimed_hash(self.path, self.offset) if self.offset >= 0 else None

    @property
    def content_hash(self) -> str | None:
        """As `claimed_hash`, once the bytes were found to have it: tensors of equal ones hold equal bytes.

        Raises: FormatError when they have another; OSError.
        """
        return files.content_hash(self.path, self.offset) if self.offset >= 0 else None

    @property
    def where(self) -> str:
        name = "" if self.file.member is None else f", {self.op_name}"
        return f"{self.path}{name}, {self.io} {self.slot_text}"

    def load(self) -> Array:
        """The tensor as it is stored, read-only and mapped from the file where no bits have to be unpacked.

        Raises:  FormatError when the file has changed or cannot be an array of that dtype; OSError.
        """
        try:
            if self.small is not None:
                return self.small.array(self.path)
            if self.file.form == parse.NPY:
                return read_npy(self.path)
            if self.file.member is not None:
                return self.file.member.array(self.path)
            if self.block is None:
                raise FormatError(f"{self.where}: expected a block of a dump file, got none.")
            return self._filled(self.block).array()
        except (ValueError, OverflowError, MemoryError) as error:
            if isinstance(error, FormatError):
                raise
            raise FormatError(f"{self.where}: expected an array of {self.dtype} {self.shape}, got: {error}.") from error

    def show(self) -> Any:
        """The elements as treescope draws them, which a notebook shows: a picture of any number of axes.

        Raises:  ConfigError when treescope is not installed; else as `load_host`.
        """
        treescope = optional_package("treescope", "show")
        array = np.asarray(self.load_host())
        # treescope draws what numpy itself knows.
        return treescope.render_array(array if array.dtype.kind in "biufc" else array.astype(np.float32))

    def load_host(self) -> Array:
        """The tensor as the host has it, in its original shape; for formats without an index rule as `load`.

        Raises:  as `load`.
        """
        array = self.load()
        if self.format not in device_layouts.DEVICE_FORMATS or self.original_shape is None:
            return array
        try:
            return device_layouts.from_device(array, self.format, self.original_shape, max(1, self.sub_format))
        except (LayoutError, ZeroDivisionError) as error:
            raise FormatError(f"{self.where}: {error}") from error

    def _filled(self, block: BinTensor) -> BinTensor:
        """The block with its bytes."""
        if self.offset >= 0:
            return replace(block, payload=_mapped(self.path, self.offset, self.size_bytes))
        for tensor in read_dump(self.path).tensors:
            if (tensor.io, tensor.slot) == (self.io, self.slot):
                return tensor
        raise FormatError(f"{self.where}: expected the tensor that was there a moment ago, got none.")


_dumped_tensor = maker(DumpedTensor)


def _npy_tensor(file: DumpedFile) -> DumpedTensor:
    header, small = scan_npy(file.path)
    name = file.name
    assert name.io is not None and name.slot is not None  # npy names without them get output 0
    return _dumped_tensor(
        file,
        name.io,
        name.slot,
        header.name,
        header.shape,
        name.format or DEFAULT_FORMAT,
        header.offset,
        header.size_bytes,
        file.known_full_name,
        name.part,
        original_dtype=header.original,
        small=small,
    )


def _raw_tensor(file: DumpedFile) -> DumpedTensor:
    name = file.name
    assert name.io is not None and name.slot is not None and name.dtype is not None and name.shape is not None
    row = dtypes.dtype(name.dtype)
    needed = packed_size(name.dtype, math.prod(name.shape))
    with files.open_file(file.path) as opened:
        actual = opened.size
    if row.acl_number is None or needed != actual:
        raise FormatError(f"{file.path}: expected {needed} bytes for {name.dtype} {name.shape}, got {actual}.")
    format_name = name.format or "ND"
    block = BinTensor(
        name.io, name.slot, row.acl_number, format_name, name.shape, None, 0, _NO_BYTES, 0, f"{file.path}, {name.io}"
    )
    return DumpedTensor(file, name.io, name.slot, row.name, name.shape, format_name, 0, actual, block=block)


def _pt_tensor(file: DumpedFile) -> DumpedTensor:
    from msdump.formats.pt_tensor import read_pt_tensor  # few dumps have such files

    name, tensor = file.name, read_pt_tensor(file.path)
    assert name.io is not None and name.slot is not None
    row = dtypes.dtype(tensor.dtype)
    assert row.acl_number is not None  # each dtype of torch's storages has one
    where = f"{file.path}, {name.io}"
    block = BinTensor(name.io, name.slot, row.acl_number, DEFAULT_FORMAT, tensor.shape, None, 0, _NO_BYTES, 0, where)
    return DumpedTensor(
        file,
        name.io,
        name.slot,
        tensor.dtype,
        tensor.shape,
        DEFAULT_FORMAT,
        tensor.offset,
        tensor.size_bytes,
        file.known_full_name,
        name.part,
        block=block,
    )


def _member_tensor(file: DumpedFile, member: Member) -> DumpedTensor:
    name = file.name
    assert name.io is not None and name.slot is not None
    return _dumped_tensor(
        file, name.io, name.slot, member.dtype, member.shape, DEFAULT_FORMAT, member.offset, member.size_bytes
    )


def _bin_tensors(file: DumpedFile) -> tuple[list[DumpedTensor], list[FormatError]]:
    found: list[DumpedTensor] = []
    errors: list[FormatError] = []
    content = read_dump(file.path)
    full_name = content.op_name if "/" in content.op_name else file.known_full_name
    for tensor in content.tensors:
        if tensor.io not in (INPUT, OUTPUT):
            continue
        row = dtypes.BY_ACL_NUMBER.get(tensor.dtype_number)
        size = tensor.payload.size
        shape: tuple[int, ...]
        if tensor.dtype_number == 0:
            name, shape = "uint8", tensor.bytes_shape
        elif row is None:
            name, shape = f"acl_{tensor.dtype_number}", tensor.shape or ()
        else:
            name = row.name
            shape = (size * 8 // row.bits,) if tensor.shape is None else tensor.shape
            needed = packed_size(name, math.prod(shape))
            if needed > size:
                errors.append(
                    TruncatedFileError(f"{tensor.where}: expected {needed} data bytes for {name} {shape}, got {size}.")
                )
                continue
        found.append(
            DumpedTensor(
                file,
                tensor.io,
                tensor.slot,
                name,
                shape,
                tensor.format,
                tensor.offset,
                size,
                full_name,
                original_shape=tensor.original_shape,
                sub_format=tensor.sub_format,
                block=replace(tensor, payload=_NO_BYTES),
            )
        )
    return found, errors


def _mapped(path: str, offset: int, size: int) -> Array:
    """Bytes of a file, mapped.   Raises: TruncatedFileError when the file has become shorter."""
    if size == 0:
        return _NO_BYTES
    with files.open_file(path) as file:
        if offset + size > file.size:
            raise TruncatedFileError(
                f"{path} at offset {offset}: expected {size} bytes, got {max(0, file.size - offset)}."
            )
        return file.array(offset, size)

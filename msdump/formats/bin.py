"""Ascend dump files: one file per operator, its inputs and outputs together; writer and reader.

Bytes of container 2.0: u64 little-endian header length L; L bytes of a serialized DumpData whose data fields are empty;
then the raw data of inputs, outputs, buffers and workspaces, in this order, without padding. Container 1.0, which is
only read, has everything inside the protobuf. Nothing is copied: the raw blocks go to disk as they lie in memory, and
tensors that are read show the mapped file.   Source: CANN dump_data.proto and container 2.0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from msdump.errors import DtypeError, FormatError, LayoutError, TruncatedFileError, UnknownDtypeError
from msdump.formats.direct import Buffer
from msdump.formats.paths.acl import bin_file_name
from msdump.formats.writer import OpenFolder, OperatorFileWriter
from msdump.statistics.stats import raw_bytes
from msdump.storage.files import map_file
from msdump.tensors import device_layouts, dtypes
from msdump.tensors.arrays import Array
from msdump.tensors.packing import pack, packed_size, unpack
from msdump.tensors.records import DEFAULT_FORMAT, INPUT, MAX_NDIM, OUTPUT, TensorRecord

CONTAINER_VERSION = "2.0"


class BinWriter(OperatorFileWriter):
    """Writer of one dump file per operator.

    is_host_format   True: every tensor is written in the host's format, not in that of its record
    """

    tensors_from = 2  # behind the length of the header, and the header

    def __init__(
        self,
        directory: Callable[[TensorRecord], Path],
        mode: int = 0o400,
        is_host_format: bool = False,
        is_direct: bool = False,
        open_folder: OpenFolder | None = None,
    ) -> None:
        super().__init__(directory, mode, is_direct, open_folder)
        self._is_host_format = is_host_format

    def file_name(self, record: TensorRecord) -> str:
        return bin_file_name(record)

    def content(self, records: Sequence[TensorRecord]) -> list[Buffer]:
        return bin_chunks(records, self._is_host_format)


def bin_chunks(records: Sequence[TensorRecord], is_host_format: bool = False) -> list[Buffer]:
    """Bytes of the dump file of one operator: header length, header, then one block per tensor.

    Edges:   a slot that no record has becomes a block without type, shape and bytes, so that later ones keep theirs.
    Raises:  DtypeError for strings, or when an array is not of its record's dtype; LayoutError when a format is
             unknown or does not fit the shape.
    Source:  CANN container 2.0.
    """
    return container_chunks(*described(records, is_host_format))


def described(records: Sequence[TensorRecord], is_host_format: bool = False) -> tuple[Any, list[memoryview]]:
    """The DumpData of one operator's records, for who has more to say in it, and the blocks of their data.

    Raises:  as `bin_chunks`.
    """
    message, blocks = _message(records, is_host_format)
    return message, [_payload(block.record, block.format) for block in blocks]


def container_chunks(message: Any, payloads: Sequence[Buffer]) -> list[Buffer]:
    """Bytes of a file of container 2.0."""
    header = message.SerializeToString()
    return [len(header).to_bytes(8, "little"), header, *payloads]


def data_offsets(records: Sequence[TensorRecord], is_host_format: bool = False) -> list[int]:
    """Where in its file the data of each record of one operator begins; the same for each run of that operator."""
    header, blocks = _header(records, is_host_format)
    offset = 8 + len(header)
    offset_by_slot: dict[tuple[str, int], int] = {}
    for block in blocks:
        offset_by_slot[block.record.io, block.record.slot] = offset
        offset += block.size_bytes
    return [offset_by_slot[record.io, record.slot] for record in records]


@dataclass(frozen=True, slots=True)
class _TensorBlock:
    """One tensor as the header describes it."""

    record: TensorRecord
    format: str
    shape: tuple[int, ...]
    size_bytes: int


def _header(records: Sequence[TensorRecord], is_host_format: bool) -> tuple[bytes, list[_TensorBlock]]:
    """The serialized header, and its tensors in the order of their data. Looks at no data."""
    message, blocks = _message(records, is_host_format)
    return message.SerializeToString(), blocks


def _message(records: Sequence[TensorRecord], is_host_format: bool) -> tuple[Any, list[_TensorBlock]]:
    from msdump.formats._proto import dump_data_pb2

    first = records[0]
    message = dump_data_pb2.DumpData(
        version=CONTAINER_VERSION,
        dump_time=first.timestamp_us,
        op_name=first.op_name.encode(errors="replace").decode(),
    )
    blocks: list[_TensorBlock] = []
    for is_input, entries in ((True, message.input), (False, message.output)):
        of_side = sorted((r for r in records if (r.io == INPUT) is is_input), key=lambda record: record.slot)
        for record in of_side:
            while len(entries) < record.slot:
                entries.add()
            blocks.append(_block(record, is_host_format))
            _describe(blocks[-1], entries.add())
    return message, blocks


def _block(record: TensorRecord, is_host_format: bool) -> _TensorBlock:
    row = dtypes.dtype(record.dtype)
    if not row.is_dumped:
        raise DtypeError(f"bin: expected a dtype that CANN has a number of, got {row.name}.")
    if record.data.dtype.newbyteorder("=") != row.numpy:
        raise DtypeError(f"bin: expected an array of {row.name}, got one of {record.data.dtype}.")
    shape = record.data.shape
    is_host = is_host_format or record.format == DEFAULT_FORMAT
    name = device_layouts.host_format(shape) if is_host else record.format
    if name not in device_layouts.FORMAT_NUMBER:
        raise LayoutError(f"{record.op_name}, {record.io} {record.slot}: no device format is called {name}.")
    if name in device_layouts.DEVICE_FORMATS:
        shape = device_layouts.device_shape(
            shape, name, device_layouts.cube_size(record.dtype), max(1, record.sub_format)
        )
    return _TensorBlock(record, name, shape, packed_size(row.name, math.prod(shape)))


def _describe(block: _TensorBlock, entry: Any) -> None:
    """Fill the header's entry of one tensor."""
    entry.data_type = dtypes.dtype(block.record.dtype).acl_number
    entry.format = device_layouts.FORMAT_NUMBER[block.format]
    entry.sub_format = block.record.sub_format
    entry.size = block.size_bytes
    # A scalar has a shape without dimensions, which is not the same as no shape.
    entry.shape.SetInParent()
    entry.shape.dim.extend(block.shape)
    entry.original_shape.SetInParent()
    entry.original_shape.dim.extend(block.record.data.shape)
    original = block.record.original
    if original is not None and block.record.io != INPUT:
        entry.original_op.name, entry.original_op.output_index = (
            original[0].encode(errors="replace").decode(),
            original[1],
        )
        entry.original_op.data_type = entry.data_type
        entry.original_op.format = device_layouts.FORMAT_NUMBER[device_layouts.host_format(block.record.data.shape)]


def _payload(record: TensorRecord, format_name: str) -> memoryview:
    array = record.data
    if format_name in device_layouts.DEVICE_FORMATS:
        c0 = device_layouts.cube_size(record.dtype)
        array = device_layouts.to_device(array, format_name, c0, max(1, record.sub_format))
    row = dtypes.dtype(record.dtype)
    return raw_bytes(array) if row.bits >= 8 else pack(array, row.name).data


# -- reader ------------------------------------------------------------------------------------------------------------

BUFFER, SPACE = "l1buffer", "space"
# First attribute of a file that has attributes: msaccucmp takes the first one for the JSON of an operator that ran in
# slices, and ends with 1 when it is neither that nor empty JSON.
NOT_SLICED = ("slicing", "{}")
_MAX_ELEMENTS = 2**48
_MAX_MESSAGE_BYTES = 2**31 - 1  # protobuf takes no more, so a 1.0 file or a header of 2.0 has no more


@dataclass(frozen=True, slots=True)
class BinTensor:
    """One block of a dump file.

    io             "input", "output", "l1buffer" or "space"
    dtype_number   OutputDataType; 0 for blocks that are plain bytes; a GE dtype that has none, as a negative number
    shape, original_shape   None when the file gives none
    payload        the raw bytes, (n,) uint8, mapped from the file
    offset         of the payload in the file; -1 inside a 1.0 container
    address        in the device's memory; 0 when the file gives none
    original       of an output: name and output of the operator that it is in the program as the user wrote it; None
                   when the file gives none
    """

    io: str
    slot: int
    dtype_number: int
    format: str
    shape: tuple[int, ...] | None
    original_shape: tuple[int, ...] | None
    sub_format: int
    payload: Array
    offset: int
    where: str
    address: int = 0
    original: tuple[str, int] | None = None

    @property
    def bytes_shape(self) -> tuple[int, ...]:
        """Shape of a tensor whose dtype is UNDEFINED: the file's where it accounts for all bytes, else one axis.

        The shape of an exception dump counts elements of a dtype that the file does not tell.
        """
        shape = self.shape
        return (self.payload.size,) if shape is None or math.prod(shape) != self.payload.size else shape

    @property
    def dtype_text(self) -> str:
        """The dtype for messages: its name, else its number."""
        row = dtypes.BY_ACL_NUMBER.get(self.dtype_number)
        if row is not None:
            return row.name
        return f"number {self.dtype_number}" if self.dtype_number >= 0 else f"GE number {-self.dtype_number}"

    def array(self) -> Array:
        """The tensor in the format in which the device wrote it.

        Shapes:  as in the file; without a shape, one axis of all elements (of bytes for plain blocks).
        Dtypes:  the table's; HiFloat8 as float32.
        Raises:  UnknownDtypeError for a number without an array form, TruncatedFileError for a short block.
        """
        if self.dtype_number == 0:
            return self.payload.reshape(self.bytes_shape)
        row = dtypes.BY_ACL_NUMBER.get(self.dtype_number)
        if row is None or row.numpy_type is None:
            raise UnknownDtypeError(f"{self.where}: data_type {self.dtype_text} has no array form.")
        shape = self.shape
        if shape is None:
            shape = (self.payload.size * 8 // row.bits,)
        try:
            return unpack(self.payload, row.name, shape)
        except TruncatedFileError as error:
            raise TruncatedFileError(f"{self.where}: {error}") from error

    def host_array(self) -> Array:
        """The tensor as the host has it, in its original shape.

        Edges:   formats without an index rule, and files that tell no original shape, give `array()`.
        Raises:  as `array`, and FormatError when the block cannot hold a tensor of that shape.
        """
        array = self.array()
        if self.format not in device_layouts.DEVICE_FORMATS or self.original_shape is None:
            return array
        try:
            return device_layouts.from_device(array, self.format, self.original_shape, max(1, self.sub_format))
        except (LayoutError, ZeroDivisionError) as error:
            raise FormatError(f"{self.where}: {error}") from error


@dataclass(frozen=True, slots=True)
class BinFile:
    """One parsed dump file. `container` is "2.0" or "1.0"; slots that the file leaves out are not in `tensors`.

    attributes  (name, value) of the operator's, where the file tells them
    message     text beside the data: what an exception dump says of the failure
    """

    path: str
    container: str
    version: str
    dump_time_us: int
    op_name: str
    tensors: tuple[BinTensor, ...]
    attributes: tuple[tuple[str, str], ...] = ()
    message: str = ""

    def of(self, io: str) -> list[BinTensor]:
        return [tensor for tensor in self.tensors if tensor.io == io]


def read_bin(path: str | Path, container: str | None = None) -> BinFile:
    """Parse a dump file; `container` forces "2.0" or "1.0", else the bytes decide.

    Raises:  FormatError naming file and offset when neither container fits; TruncatedFileError when the header
             is whole but blocks are missing. Trailing bytes are an error too: the sizes must account for all.
    """
    path = Path(path)
    raw = map_file(path)
    if container == "1.0" and raw.size:
        return _read_v1(path, raw)
    length = int.from_bytes(raw[:8].tobytes(), "little") if raw.size >= 8 else 0
    is_message = 0 < length <= min(raw.size - 8, _MAX_MESSAGE_BYTES)
    message = _parse(raw[8 : 8 + length].tobytes()) if is_message else None
    if message is not None:
        return _read_v2(path, raw, length, message)
    if container is None:
        whole = _parse(raw.tobytes()) if 0 < raw.size <= _MAX_MESSAGE_BYTES else None
        if whole is not None and (whole.input or whole.output or whole.buffer or whole.space):
            return _read_v1(path, raw)
    if raw.size < 8:
        raise TruncatedFileError(f"{path} at offset 0: expected an 8-byte header length, the file has {raw.size}.")
    if not 0 < length <= raw.size - 8:
        raise FormatError(
            f"{path} at offset 0: expected a header length of 1 to {raw.size - 8}, got {length}. "
            "The file is damaged or is not an Ascend dump file."
        )
    raise FormatError(f"{path} at offset 8: the {length} header bytes are no DumpData message.")


def _parse(data: bytes) -> Any:
    from google.protobuf.message import DecodeError

    from msdump.formats._proto import dump_data_pb2

    message = dump_data_pb2.DumpData()
    try:
        message.ParseFromString(data)
    except (DecodeError, UnicodeDecodeError):
        return None
    return message


def _read_v2(path: Path, raw: Array, length: int, message: Any) -> BinFile:
    offset = 8 + length
    expected = offset + sum(int(block.size) for _, _, block in _blocks(message))
    tensors: list[BinTensor] = []
    for io, slot, block in _blocks(message):
        size = int(block.size)
        if offset + size > raw.size:
            raise TruncatedFileError(
                f"{path} at offset {offset}: expected {size} bytes of {io} {slot}, the file ends after "
                f"{raw.size - offset} (it should have {expected} bytes, it has {raw.size})."
            )
        if not _is_left_out(io, block):
            tensors.append(_tensor(path, io, slot, block, raw[offset : offset + size], offset))
        offset += size
    if offset != raw.size:
        more = raw.size - offset
        raise FormatError(f"{path} at offset {offset}: expected the end of the file, got {more} bytes more.")
    return _bin_file(path, "2.0", message, tuple(tensors))


def _read_v1(path: Path, raw: Array) -> BinFile:
    message = _parse(raw.tobytes()) if raw.size <= _MAX_MESSAGE_BYTES else None
    if message is None:
        raise FormatError(f"{path} at offset 0: the {raw.size} bytes are no DumpData message.")
    tensors = tuple(
        _tensor(path, io, slot, block, np.frombuffer(block.data, np.uint8), -1)
        for io, slot, block in _blocks(message)
        if not _is_left_out(io, block)
    )
    return _bin_file(path, "1.0", message, tensors)


def _bin_file(path: Path, container: str, message: Any, tensors: tuple[BinTensor, ...]) -> BinFile:
    attributes = tuple((str(entry.name), str(entry.value)) for entry in message.attr)
    if attributes[:1] == (NOT_SLICED,):
        attributes = attributes[1:]
    text = message.dfx_message
    return BinFile(str(path), container, message.version, message.dump_time, message.op_name, tensors, attributes, text)


def _blocks(message: Any) -> Iterator[tuple[str, int, Any]]:
    """(io, slot, message) in the order of their data in the file."""
    for io, blocks in (
        (INPUT, message.input),
        (OUTPUT, message.output),
        (BUFFER, message.buffer),
        (SPACE, message.space),
    ):
        for slot, block in enumerate(blocks):
            yield io, slot, block


def _is_left_out(io: str, block: Any) -> bool:
    """True for an entry that only keeps its slot: nothing was dumped there."""
    return io in (INPUT, OUTPUT) and not (block.size or block.data_type or block.HasField("shape") or block.data)


def _tensor(path: Path, io: str, slot: int, block: Any, payload: Array, offset: int) -> BinTensor:
    where = f"{path}, {io} {slot} at offset {offset}" if offset >= 0 else f"{path}, {io} {slot}"
    if io in (BUFFER, SPACE):
        return BinTensor(io, slot, 0, "ND", None, None, 0, payload, offset, where)
    shape = _shape(block.shape.dim, where) if block.HasField("shape") else None
    name = device_layouts.FORMAT_NAME.get(block.format, str(block.format))
    original = _shape(block.original_shape.dim, where) if block.HasField("original_shape") else None
    address = int(block.address)
    written = _original_op(block) if io == OUTPUT else None
    return BinTensor(
        io, slot, block.data_type, name, shape, original, block.sub_format, payload, offset, where, address, written
    )


def _original_op(block: Any) -> tuple[str, int] | None:
    """Edges: a device also fills it in with nothing."""
    found = block.original_op
    return (str(found.name), int(found.output_index)) if found.name else None


def _shape(dims: Sequence[int], where: str) -> tuple[int, ...]:
    """Validate a shape before memory is allocated for it: no file could fill some."""
    shape = tuple(int(dim) for dim in dims)
    if len(shape) > MAX_NDIM or math.prod(filter(None, shape)) > _MAX_ELEMENTS:
        raise FormatError(f"{where}: expected a shape that an array can have, got {len(shape)} axes {shape[:8]}.")
    return shape

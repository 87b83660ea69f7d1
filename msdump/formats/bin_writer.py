"""Writer of Ascend dump files: one file per operator, its inputs and outputs together, container 2.0.

The bytes are described beside the reader. The protobuf header and the raw blocks go to disk as they lie in memory:
nothing is ever copied into a protobuf field.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msdump import dtypes, layouts
from msdump.errors import DtypeError, LayoutError
from msdump.formats.direct import Buffer
from msdump.formats.operator_files import OpenFolder, OperatorFileWriter
from msdump.formats.paths.acl import bin_file_name
from msdump.packing import pack, packed_size
from msdump.records import DEFAULT_FORMAT, INPUT, TensorRecord
from msdump.stats import raw_bytes

CONTAINER_VERSION = "2.0"


class BinWriter(OperatorFileWriter):
    """Writer of one dump file per operator.

    is_host_format   True: every tensor is written as the host has it, whatever format its record names
    """

    def __init__(
        self,
        directory: Callable[[TensorRecord], Path],
        mode: int = 0o400,
        dir_mode: int = 0o700,
        is_host_format: bool = False,
        is_direct: bool = False,
        open_folder: OpenFolder | None = None,
    ) -> None:
        super().__init__(directory, mode, dir_mode, is_direct, open_folder)
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
    offset_by_place: dict[tuple[str, int], int] = {}
    for block in blocks:
        offset_by_place[block.record.io, block.record.slot] = offset
        offset += block.size_bytes
    return [offset_by_place[record.io, record.slot] for record in records]


@dataclass(frozen=True, slots=True)
class _Block:
    """One tensor as the header describes it."""

    record: TensorRecord
    format: str
    shape: tuple[int, ...]
    size_bytes: int


def _header(records: Sequence[TensorRecord], is_host_format: bool) -> tuple[bytes, list[_Block]]:
    """The serialized header, and its tensors in the order of their data. Looks at no data."""
    message, blocks = _message(records, is_host_format)
    return message.SerializeToString(), blocks


def _message(records: Sequence[TensorRecord], is_host_format: bool) -> tuple[Any, list[_Block]]:
    from msdump._proto import dump_data_pb2

    first = records[0]
    message = dump_data_pb2.DumpData(
        version=CONTAINER_VERSION,
        dump_time=first.timestamp_us,
        op_name=first.op_name.encode(errors="replace").decode(),
    )
    blocks: list[_Block] = []
    for is_input, entries in ((True, message.input), (False, message.output)):
        of_side = sorted((r for r in records if (r.io == INPUT) is is_input), key=lambda record: record.slot)
        for record in of_side:
            while len(entries) < record.slot:
                entries.add()
            blocks.append(_block(record, is_host_format))
            _describe(blocks[-1], entries.add())
    return message, blocks


def _block(record: TensorRecord, is_host_format: bool) -> _Block:
    row = dtypes.dtype(record.dtype)
    if not row.is_dumped:
        raise DtypeError(f"bin: expected a dtype that CANN has a number of, got {row.name}.")
    if record.data.dtype.newbyteorder("=") != row.numpy:
        raise DtypeError(f"bin: expected an array of {row.name}, got one of {record.data.dtype}.")
    shape = record.data.shape
    is_host = is_host_format or record.format == DEFAULT_FORMAT
    name = layouts.host_format(shape) if is_host else record.format
    if name not in layouts.FORMAT_NUMBER:
        raise LayoutError(f"{record.op_name}, {record.io} {record.slot}: no device format is called {name}.")
    if name in layouts.DEVICE_FORMATS:
        shape = layouts.device_shape(shape, name, layouts.cube_size(record.dtype), max(1, record.sub_format))
    return _Block(record, name, shape, packed_size(row.name, math.prod(shape)))


def _describe(block: _Block, entry: Any) -> None:
    """Fill the header's entry of one tensor."""
    entry.data_type = dtypes.dtype(block.record.dtype).acl_number
    entry.format = layouts.FORMAT_NUMBER[block.format]
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
        entry.original_op.format = layouts.FORMAT_NUMBER[layouts.host_format(block.record.data.shape)]


def _payload(record: TensorRecord, format_name: str) -> memoryview:
    array = record.data
    if format_name in layouts.DEVICE_FORMATS:
        c0 = layouts.cube_size(record.dtype)
        array = layouts.to_device(array, format_name, c0, max(1, record.sub_format))
    row = dtypes.dtype(record.dtype)
    return raw_bytes(array) if row.bits >= 8 else pack(array, row.name).data

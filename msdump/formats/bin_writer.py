"""Writer of Ascend dump files: one file per operator, its inputs and outputs together, container 2.0.

The bytes are described beside the reader. The protobuf header and the raw blocks go to disk as they lie in memory:
nothing is ever copied into a protobuf field.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msdump import dtypes, layouts
from msdump.errors import DtypeError, LayoutError
from msdump.formats.async_layout import bin_file_name
from msdump.formats.dump_folder import OpenFolders
from msdump.formats.writer import Counter, WriteCounts
from msdump.packing import pack, packed_size
from msdump.records import DEFAULT_FORMAT, INPUT, TensorRecord
from msdump.stats import raw_bytes

CONTAINER_VERSION = "2.0"


class BinWriter:
    """Writer of one dump file per operator.

    directory        folder that a record belongs to; made when its first record comes
    mode             of files; `dir_mode` of the folders it makes
    is_host_format   True: every tensor is written as the host has it, whatever format its record names
    is_direct        write big files past the page cache, see `Folder`

    Records that follow one another and name the same operator share a file, until an input or output comes again.
    Arrays are not kept. Any thread may call it: files are written outside all locks.
    """

    writes_once = False
    takes_empty = False

    def __init__(
        self,
        directory: Callable[[TensorRecord], Path],
        mode: int = 0o400,
        dir_mode: int = 0o700,
        is_host_format: bool = False,
        is_direct: bool = False,
    ) -> None:
        self._directory = directory
        self._mode = mode
        self._dir_mode = dir_mode
        self._is_host_format = is_host_format
        self._is_direct = is_direct
        self._iterations: dict[tuple[int, int], OpenFolders] = {}
        self._lock = threading.Lock()
        self._counter = Counter()

    @property
    def counts(self) -> WriteCounts:
        return self._counter.total

    def write(self, records: Sequence[TensorRecord]) -> None:
        """Raises: WriteError, DtypeError, LayoutError; operators before the one that failed are on disk."""
        for operator in _operators(records):
            first = operator[0]
            chunks = bin_chunks(operator, self._is_host_format)
            folder = self._folders_of(first).of(first)
            name = folder.fitting_name(bin_file_name(first), "")
            self._counter.file(folder.write(name, chunks, self._mode))

    def end_iteration(self, graph_id: int, iteration: int) -> None:
        with self._lock:
            folders = self._iterations.pop((graph_id, iteration), None)
        if folders is not None:
            folders.close()

    def close(self) -> None:
        for graph_id, iteration in list(self._iterations):
            self.end_iteration(graph_id, iteration)

    def _folders_of(self, record: TensorRecord) -> OpenFolders:
        with self._lock:
            name = (record.graph_id, record.iteration)
            found = self._iterations.get(name)
            if found is None:
                folders = OpenFolders(self._directory, self._mode, self._dir_mode, self._is_direct)
                found = self._iterations[name] = folders
            return found


def bin_chunks(records: Sequence[TensorRecord], is_host_format: bool = False) -> list[bytes | memoryview]:
    """Bytes of the dump file of one operator: header length, header, then one block per tensor.

    Edges:   a slot that no record has becomes a block without type, shape and bytes, so that later ones keep theirs.
    Raises:  DtypeError for strings, or when an array is not of its record's dtype; LayoutError when a format is
             unknown or does not fit the shape.
    Source:  CANN container 2.0.
    """
    header, blocks = _header(records, is_host_format)
    payloads = [_payload(block.record, block.format) for block in blocks]
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
    return message.SerializeToString(), blocks


def _block(record: TensorRecord, is_host_format: bool) -> _Block:
    row = dtypes.dtype(record.dtype)
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


def _payload(record: TensorRecord, format_name: str) -> memoryview:
    array = record.data
    if format_name in layouts.DEVICE_FORMATS:
        c0 = layouts.cube_size(record.dtype)
        array = layouts.to_device(array, format_name, c0, max(1, record.sub_format))
    row = dtypes.dtype(record.dtype)
    return raw_bytes(array) if row.bits >= 8 else pack(array, row.name).data


def _operators(records: Sequence[TensorRecord]) -> Iterator[list[TensorRecord]]:
    """Records in the groups that share a file."""
    group: list[TensorRecord] = []
    taken: set[tuple[str, int]] = set()
    for record in records:
        if group and (_operator(record) != _operator(group[0]) or (record.io, record.slot) in taken):
            yield group
            group, taken = [], set()
        group.append(record)
        taken.add((record.io, record.slot))
    if group:
        yield group


def _operator(record: TensorRecord) -> tuple[object, ...]:
    identity = (record.op_type, record.op_name, record.task_id, record.stream_id)
    return (*identity, record.graph_id, record.iteration, record.is_parameter)

"""Writer of Ascend dump files: one file per operator, its inputs and outputs together, container 2.0.

The bytes are described beside the reader. The protobuf header and the raw blocks go to disk as they lie in memory:
nothing is ever copied into a protobuf field.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from msdump import dtypes, layouts
from msdump.errors import DtypeError, LayoutError
from msdump.events import Array
from msdump.formats.async_layout import bin_file_name
from msdump.formats.dump_folder import OpenFolders
from msdump.formats.writer import Counter, WriteCounts
from msdump.packing import pack
from msdump.records import DEFAULT_FORMAT, INPUT, TensorRecord
from msdump.stats import raw_bytes

CONTAINER_VERSION = "2.0"


class BinWriter:
    """Writer of one dump file per operator.

    directory        folder that a record belongs to; made when its first record comes
    mode             of files; `dir_mode` of the folders it makes
    is_host_format   True: every tensor is written as the host has it, whatever format its record names

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
    ) -> None:
        self._directory = directory
        self._mode = mode
        self._dir_mode = dir_mode
        self._is_host_format = is_host_format
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
                found = self._iterations[name] = OpenFolders(self._directory, self._mode, self._dir_mode)
            return found


def bin_chunks(records: Sequence[TensorRecord], is_host_format: bool = False) -> list[bytes | memoryview]:
    """Bytes of the dump file of one operator: header length, header, then one block per tensor.

    Edges:   a slot that no record has becomes a block without type, shape and bytes, so that later ones keep theirs.
    Raises:  DtypeError for strings, or when an array is not of its record's dtype; LayoutError when a format is
             unknown or does not fit the shape.
    Source:  CANN container 2.0.
    """
    from msdump._proto import dump_data_pb2

    first = records[0]
    message = dump_data_pb2.DumpData(
        version=CONTAINER_VERSION,
        dump_time=first.timestamp_us,
        op_name=first.op_name.encode(errors="replace").decode(),
    )
    payloads: list[memoryview] = []
    for is_input, blocks in ((True, message.input), (False, message.output)):
        of_side = sorted((r for r in records if (r.io == INPUT) is is_input), key=lambda record: record.slot)
        for record in of_side:
            while len(blocks) < record.slot:
                blocks.add()
            payloads.append(_describe(record, blocks.add(), is_host_format))
    header = message.SerializeToString()
    return [len(header).to_bytes(8, "little"), header, *payloads]


def _describe(record: TensorRecord, block: Any, is_host_format: bool) -> memoryview:
    """Fill the header entry of one tensor; returns its bytes on disk."""
    row = dtypes.dtype(record.dtype)
    if record.data.dtype.newbyteorder("=") != row.numpy:
        raise DtypeError(f"bin: expected an array of {row.name}, got one of {record.data.dtype}.")
    host = layouts.host_format(record.data.shape)
    format_name = host if is_host_format or record.format == DEFAULT_FORMAT else record.format
    array = _in_format(record, format_name)
    payload = raw_bytes(array) if row.bits >= 8 else pack(array, row.name).data
    block.data_type = row.acl_number
    block.format = layouts.FORMAT_NUMBER[format_name]
    block.sub_format = record.sub_format
    block.size = payload.nbytes
    # A scalar has a shape without dimensions, which is not the same as no shape.
    block.shape.SetInParent()
    block.shape.dim.extend(array.shape)
    block.original_shape.SetInParent()
    block.original_shape.dim.extend(record.data.shape)
    return payload


def _in_format(record: TensorRecord, format_name: str) -> Array:
    if format_name not in layouts.FORMAT_NUMBER:
        raise LayoutError(f"{record.op_name}, {record.io} {record.slot}: no device format is called {format_name}.")
    if format_name not in layouts.DEVICE_FORMATS:
        return record.data
    c0 = layouts.cube_size(record.dtype)
    return layouts.to_device(record.data, format_name, c0, max(1, record.sub_format))


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

"""Files of an exception dump: operands of the operator that raised, in three degrees of detail.

    brief    exception_info.{stream}.{task}.{stamp}      dump file of plain bytes: no dtypes, no shapes
    norm     {op_type}.{op_name}.{task}.{stamp}          dump file with dtypes, shapes, formats, attributes, log text
    detail   {kernel}.{stream}.{task}.{stamp}.core       text, the core of a host

all below `{base}/extra-info/data-dump/{device_id}/`; `stamp` is `YYYYmmddHHMMSS` and three digits of milliseconds, in
local time. Dump files are containers 2.0 whose entries also tell address, `arg_index` and, for inputs, `input_type`.
Source: CANN, exception dump; container 2.0.

The core of a host:

    msdump core 1 {length of the JSON, ten digits}\n
    {JSON, indented: operator, error, stack, traceback, attributes, operands, process}\n
    zero bytes up to a multiple of 64, then the data of the operands, each beginning at such a multiple

Offsets of operands count from the beginning of the file. A device writes an ELF core with the registers and memories
of its AI Core under the same kind of name; a host has none of these, but has the call stack and the traceback.
"""

from __future__ import annotations

import datetime
import json
import math
import os
import platform
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msdump.errors import FormatError, TruncatedFileError
from msdump.formats.bin import CONTAINER_VERSION, NOT_SLICED, BinTensor, container_chunks, described
from msdump.formats.direct import Buffer
from msdump.formats.paths.acl import safe_piece
from msdump.formats.paths.sync import NUMBER
from msdump.storage.files import map_file
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array
from msdump.tensors.device_layouts import FORMAT_NAME, FORMAT_NUMBER
from msdump.tensors.packing import packed_size
from msdump.tensors.records import INPUT, MAX_NDIM, OUTPUT, TensorRecord

EXCEPTION_INFO, CORE_SUFFIX = "exception_info", ".core"
_LONGEST_CORE_NAME = 255
CORE_MAGIC = b"msdump core 1 "
ELF_MAGIC = b"\x7fELF"
_DIGITS = 10
_HEAD_BYTES = len(CORE_MAGIC) + _DIGITS + 1
_ALIGNMENT = 64
_MAX_JSON_BYTES = 64 << 20
# Source: CANN, `input_type`.
_INPUT_TYPE = 2
_CORE_NAME = re.compile(
    rf"(?P<kernel>.*)\.(?P<stream>{NUMBER})\.(?P<task>{NUMBER})\.(?P<stamp>{NUMBER})\{CORE_SUFFIX}", re.DOTALL
)


@dataclass(frozen=True)
class FailedOperand:
    """One operand of the operator that raised, as far as it exists.

    shape    as it was; for one that was not made, as it was foreseen
    address  in the memory of the process; 0 when there is none
    record   None: it was not made
    """

    io: str
    slot: int
    dtype: str
    shape: tuple[int, ...]
    format: str
    address: int = 0
    record: TensorRecord | None = None

    def __str__(self) -> str:
        text = f"{self.io} {self.slot}: {self.dtype}{list(self.shape)} {self.format}"
        if self.record is not None:
            return f"{text}, {self.record.size_bytes} bytes at {self.address:#x}"
        return f"{text}, not made"


@dataclass(frozen=True)
class OperatorFailure:
    """Data of an operator that raised.

    moment      when, in local time
    attributes  of the operator, as text
    error       its class and its message
    stack       lines of the call stack that led to the operator, outermost first
    traceback   of what it raised, with its causes
    """

    op_type: str
    op_name: str
    task_id: int
    stream_id: int
    device_id: int
    iteration: int
    timestamp_us: int
    operands: tuple[FailedOperand, ...]
    attributes: tuple[tuple[str, str], ...] = ()
    error_type: str = ""
    message: str = ""
    stack: tuple[str, ...] = ()
    traceback: tuple[str, ...] = ()

    @property
    def records(self) -> list[TensorRecord]:
        return [operand.record for operand in self.operands if operand.record is not None]

    @property
    def kernel_name(self) -> str:
        return f"{safe_piece(self.op_type)}_{safe_piece(self.op_name)}"

    @property
    def log_text(self) -> str:
        """What happened, then one line per operand."""
        head = (
            f"device {self.device_id}, stream {self.stream_id}, task {self.task_id}, iteration {self.iteration}: "
            f"{self.op_type} {self.op_name} raised {self.error_type}: {self.message}"
        )
        return "\n".join([head, *map(str, self.operands)])


# -- names -------------------------------------------------------------------------------------------------------


def exception_dir(base: Path, device_id: int) -> Path:
    """Folder of the files of exceptions on a device."""
    return base / "extra-info" / "data-dump" / str(device_id)


def format_stamp(timestamp_us: int) -> str:
    """Microseconds since the epoch as `YYYYmmddHHMMSSmmm`, local time."""
    seconds, rest = divmod(timestamp_us, 1_000_000)
    return f"{datetime.datetime.fromtimestamp(seconds):%Y%m%d%H%M%S}{rest // 1000:03d}"


def brief_file_name(failure: OperatorFailure, stamp: str) -> str:
    return f"{EXCEPTION_INFO}.{failure.stream_id}.{failure.task_id}.{stamp}"


def norm_file_name(failure: OperatorFailure, stamp: str) -> str:
    """An ordinary dump file's name in its oldest form, without the stream."""
    return f"{safe_piece(failure.op_type)}.{safe_piece(failure.op_name)}.{failure.task_id}.{stamp}"


def core_file_name(failure: OperatorFailure, stamp: str) -> str:
    """Edges:  of a name that is too long the end counts.   Source: CANN, the last 255 characters are kept."""
    name = f"{failure.kernel_name}.{failure.stream_id}.{failure.task_id}.{stamp}{CORE_SUFFIX}"
    return name[-_LONGEST_CORE_NAME:]


def parse_core_file_name(text: str) -> tuple[str, int, int, int] | None:
    """(kernel, stream, task, stamp) of a core's name; None when it is not one."""
    match = _CORE_NAME.fullmatch(text)
    return None if match is None else (match["kernel"], int(match["stream"]), int(match["task"]), int(match["stamp"]))


# -- bytes of the brief and the norm file ------------------------------------------------------------------------------


def brief_chunks(failure: OperatorFailure) -> list[Buffer]:
    """Bytes of the brief file: arguments of the kernel as they lay in memory, each with its size and address.

    Source: CANN: data_type UNDEFINED; no shape, as readers would take its elements for bytes.
    """
    message, payloads = _described(failure)
    for entry in (*message.input, *message.output):
        entry.data_type, entry.format, entry.sub_format = 0, FORMAT_NUMBER["ND"], 0
        entry.ClearField("shape")
        entry.ClearField("original_shape")
    return container_chunks(message, payloads)


def norm_chunks(failure: OperatorFailure) -> list[Buffer]:
    """Bytes of the norm file: an ordinary dump file that tells addresses, attributes and the log as well.

    Raises:  as `bin.bin_chunks`.
    """
    message, payloads = _described(failure)
    for name, value in (NOT_SLICED, *failure.attributes) if failure.attributes else ():
        message.attr.add(name=_text(name), value=_text(value))
    message.dfx_message = _text(failure.log_text)
    return container_chunks(message, payloads)


def _described(failure: OperatorFailure) -> tuple[Any, list[memoryview]]:
    """The DumpData with each argument's index among those of the kernel, and the blocks of data."""
    from msdump.formats._proto import dump_data_pb2

    if failure.records:
        message, payloads = described(failure.records)
    else:
        message, payloads = dump_data_pb2.DumpData(version=CONTAINER_VERSION), []
    message.op_name = _text(failure.op_name)
    message.dump_time = failure.timestamp_us
    input_count = sum(operand.io == INPUT for operand in failure.operands)
    for operand in failure.operands:
        if operand.record is None:
            continue
        entry = (message.input if operand.io == INPUT else message.output)[operand.slot]
        entry.address = operand.address
        entry.arg_index = operand.slot if operand.io == INPUT else input_count + operand.slot
        if operand.io == INPUT:
            entry.input_type = _INPUT_TYPE
    return message, payloads


def _text(text: str) -> str:
    """As protobuf can hold it."""
    return text.encode(errors="replace").decode()


# -- the core of a host ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CoreFile:
    """One core.

    attributes  of the operator, as text
    stack       the calls that led to the operator, outermost first, a line each
    log         what happened, and each operand, also those that were not made
    process     pid, python, system of the process that the operator raised in
    tensors     operands that were there, in the order of the operator's
    """

    path: str
    op_type: str
    op_name: str
    task_id: int
    stream_id: int
    device_id: int
    iteration: int
    time_us: int
    error_type: str
    message: str
    attributes: dict[str, str]
    stack: tuple[str, ...]
    traceback: tuple[str, ...]
    log: str
    process: dict[str, Any]
    tensors: tuple[BinTensor, ...]


def core_chunks(failure: OperatorFailure) -> list[Buffer]:
    """Bytes of a core.   Raises: as `bin.bin_chunks`."""
    operands, blocks = described_operands(failure)
    content = {
        "op_type": failure.op_type,
        "op_name": failure.op_name,
        "device_id": failure.device_id,
        "stream_id": failure.stream_id,
        "task_id": failure.task_id,
        "iteration": failure.iteration,
        "time_us": failure.timestamp_us,
        "error": {"type": failure.error_type, "message": failure.message},
        "log": failure.log_text.splitlines(),
        "attributes": dict(failure.attributes),
        "operands": operands,
        "stack": list(failure.stack),
        "traceback": list(failure.traceback),
        "process": {"pid": os.getpid(), "python": platform.python_version(), "system": sys.platform},
    }
    text = _json(content)
    # The offsets are part of the text whose length they depend on; digits may be added to them, and then again.
    start = 0
    while (needed := _rounded(_HEAD_BYTES + len(text) + 1)) != start:
        for entry in operands:
            entry["offset"] += needed - start
        start = needed
        text = _json(content)
    head = CORE_MAGIC + f"{len(text):0{_DIGITS}d}\n".encode() + text + b"\n"
    chunks: list[Buffer] = [head, bytes(start - len(head))]
    for block in blocks:
        chunks += [block, bytes(_rounded(block.nbytes) - block.nbytes)]
    return chunks


def read_core(path: str | os.PathLike[str]) -> CoreFile:
    """Parse a core; its tensors show the mapped file.

    Raises:  FormatError naming file and offset for one that is no core of msdump's, TruncatedFileError when data is
             missing; OSError.
    """
    path = Path(path)
    raw = map_file(path)
    head = raw[:_HEAD_BYTES].tobytes()
    if head[:4] == ELF_MAGIC:
        raise FormatError(f"{path}: it is the core of a device. Read it with msDebug.")
    digits = head[len(CORE_MAGIC) : -1]
    if not (head.startswith(CORE_MAGIC) and len(head) == _HEAD_BYTES and digits.isdigit() and head[-1:] == b"\n"):
        raise FormatError(f"{path} at offset 0: expected {CORE_MAGIC.decode()!r} and ten digits, got {head[:24]!r}.")
    length = int(digits)
    if length > _MAX_JSON_BYTES or _HEAD_BYTES + length > raw.size:
        raise TruncatedFileError(
            f"{path} at offset {_HEAD_BYTES}: expected {length} bytes of JSON, got {raw.size - _HEAD_BYTES}."
        )
    try:
        content = json.loads(raw[_HEAD_BYTES : _HEAD_BYTES + length].tobytes().decode())
        return _core(path, raw, content)
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"{path} at offset {_HEAD_BYTES}: expected the JSON of a core, got {error!r}.") from error


def _core(path: Path, raw: Array, content: Any) -> CoreFile:
    return CoreFile(
        str(path),
        str(content["op_type"]),
        str(content["op_name"]),
        int(content["task_id"]),
        int(content["stream_id"]),
        int(content["device_id"]),
        int(content["iteration"]),
        int(content["time_us"]),
        str(content["error"]["type"]),
        str(content["error"]["message"]),
        {str(name): str(value) for name, value in content["attributes"].items()},
        tuple(map(str, content["stack"])),
        tuple(map(str, content["traceback"])),
        "\n".join(map(str, content["log"])),
        dict(content["process"]),
        tuple(_tensor(path, raw, entry) for entry in content["operands"]),
    )


def _tensor(path: Path, raw: Array, entry: Any) -> BinTensor:
    io, slot, size, offset = str(entry["io"]), int(entry["slot"]), int(entry["size"]), int(entry["offset"])
    where = f"{path}, {io} {slot} at offset {offset}"
    row = dtypes.BY_NAME.get(entry["dtype"])
    shape, original = _shape(entry["shape"], where), _shape(entry["original_shape"], where)
    if io not in (INPUT, OUTPUT) or slot < 0 or offset < 0 or row is None or row.acl_number is None:
        raise FormatError(f"{where}: expected an input or output of a known dtype, got {entry!r:.200}.")
    if size != packed_size(row.name, math.prod(shape)):
        raise FormatError(f"{where}: expected the bytes of {row.name} {shape}, got {size}.")
    if offset + size > raw.size:
        raise TruncatedFileError(f"{where}: expected {size} bytes, got {max(0, raw.size - offset)}.")
    payload = raw[offset : offset + size]
    return BinTensor(
        io,
        slot,
        row.acl_number,
        str(entry["format"]),
        shape,
        original,
        int(entry["sub_format"]),
        payload,
        offset,
        where,
        int(str(entry["address"]), 16),
    )


def _shape(sizes: Any, where: str) -> tuple[int, ...]:
    shape = tuple(int(size) for size in sizes)
    if len(shape) > MAX_NDIM or min(shape, default=0) < 0 or math.prod(filter(None, shape)) > 2**48:
        raise FormatError(f"{where}: expected a shape that an array can have, got {len(shape)} axes {shape[:8]}.")
    return shape


def described_operands(failure: OperatorFailure) -> tuple[list[dict[str, Any]], list[memoryview]]:
    """Operands that are there, with offsets from the first one's, and their data; inputs first, by slots."""
    present = {(operand.io, operand.slot): operand for operand in failure.operands if operand.record is not None}
    if not present:
        return [], []
    message, blocks = described(failure.records)
    entries = [(INPUT, slot, entry) for slot, entry in enumerate(message.input) if (INPUT, slot) in present] + [
        (OUTPUT, slot, entry) for slot, entry in enumerate(message.output) if (OUTPUT, slot) in present
    ]
    operands = []
    offset = 0
    for (io, slot, entry), block in zip(entries, blocks, strict=True):
        operand = present[io, slot]
        operands.append(
            {
                "io": io,
                "slot": slot,
                "dtype": operand.dtype,
                "shape": list(entry.shape.dim),
                "original_shape": list(entry.original_shape.dim),
                "format": FORMAT_NAME[entry.format],
                "sub_format": entry.sub_format,
                "address": f"{operand.address:#x}",
                "size": block.nbytes,
                "offset": offset,
            }
        )
        offset += _rounded(block.nbytes)
    return operands, blocks


def _json(content: Any) -> bytes:
    return json.dumps(content, indent=1, ensure_ascii=False).encode(errors="replace")


def _rounded(size: int) -> int:
    return size + -size % _ALIGNMENT

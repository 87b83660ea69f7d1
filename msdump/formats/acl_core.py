"""Core: the text file that stands for the core of an AI Core, and all that it says of an operator that raised.

    msdump core 1 {length of the JSON, ten digits}\n
    {JSON, indented: operator, error, stack, traceback, attributes, operands, process}\n
    zero bytes up to a multiple of 64, then the data of the operands, each beginning at such a multiple

Offsets of operands count from the beginning of the file. A device writes an ELF core with the registers and memories
of its AI Core under the same kind of name; a host has none of these, but has the call stack and the traceback.
"""

from __future__ import annotations

import json
import math
import os
import platform
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msdump import dtypes
from msdump.arrays import Array
from msdump.errors import FormatError, TruncatedFileError
from msdump.formats.acl_exception import OperatorFailure
from msdump.formats.bin_reader import BinTensor
from msdump.formats.bin_writer import described
from msdump.formats.direct import Buffer
from msdump.formats.mapped import map_file
from msdump.layouts import FORMAT_NAME
from msdump.packing import packed_size
from msdump.records import INPUT, MAX_NDIM, OUTPUT

CORE_MAGIC = b"msdump core 1 "
ELF_MAGIC = b"\x7fELF"
_DIGITS = 10
_HEAD_BYTES = len(CORE_MAGIC) + _DIGITS + 1
_ALIGNMENT = 64
_MAX_JSON_BYTES = 64 << 20


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
    """Bytes of a core.   Raises: as `bin_writer.bin_chunks`."""
    operands, blocks = _described_operands(failure)
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


def _described_operands(failure: OperatorFailure) -> tuple[list[dict[str, Any]], list[memoryview]]:
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

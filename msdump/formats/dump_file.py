"""One dump file of any container: Ascend 2.0 and 1.0, the Nano form, a core, or an .npy that stands for one output.

Nano, all little-endian: u64 length of the head; the head: u32 magic, u32 version, then two blocks of u32 tag and u32
size, tag 4 for inputs and 5 for outputs, each a u32 count and that many descriptions; then the data of inputs and
outputs, without padding. Its dtype numbers are GE's.   Source: CANN, Nano dump; container 2.0.
"""

from __future__ import annotations

import math
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np

from msdump.errors import FormatError, TruncatedFileError
from msdump.formats.bin import BinFile, BinTensor, read_bin
from msdump.formats.exception import CORE_MAGIC, CORE_SUFFIX, ELF_MAGIC, read_core
from msdump.formats.npy import MAGIC
from msdump.formats.npy_reader import read_npy
from msdump.storage.files import open_file
from msdump.storage.plain import SIDE_BYTES
from msdump.tensors import device_layouts, dtypes
from msdump.tensors.arrays import Array
from msdump.tensors.records import INPUT, MAX_NDIM, OUTPUT

NANO_MAGIC = 0x5A5A5A5A
NANO, NPY_CONTAINER, CORE, ELF = "nano", "npy", "core", "elf"
_INPUTS, _OUTPUTS = 4, 5
_INPUT_HEAD = struct.Struct("<3i3QI")
_OUTPUT_HEAD = struct.Struct("<6i3QI")
_PAIR = struct.Struct("<2I")
_MAX_TENSORS = 1 << 16
_UNDEFINED = 28
_ACL_BY_GE = {number: row.acl_number for number, row in dtypes.BY_GE_NUMBER.items()} | {
    _UNDEFINED: 0,
    dtypes.RESOURCE_NUMBER: dtypes.RESOURCE_NUMBER,
}


def read_dump(path: str | os.PathLike[str], container: str | None = None) -> BinFile:
    """Parse a dump file; its first bytes decide, `container` forces "2.0" or "1.0" where they do not.

    Edges:   the ELF core of a device, which only msDebug reads, has no tensors.
    Raises:  FormatError naming file and offset, TruncatedFileError when data is missing; OSError.
    """
    with open_file(path) as file:
        head = file.read(0, len(CORE_MAGIC))
        if head[:6] == MAGIC:
            return _read_npy(Path(path), file.size)
        if len(head) >= 12 and int.from_bytes(head[8:12], "little") == NANO_MAGIC:
            return _read_nano(Path(path), file.array(0, file.size))
    if head == CORE_MAGIC:
        return _read_core(Path(path))
    if head[:4] == ELF_MAGIC and os.fspath(path).endswith(CORE_SUFFIX):
        return BinFile(os.fspath(path), ELF, "", 0, "", ())
    return read_bin(Path(path), container)


def _read_core(path: Path) -> BinFile:
    core = read_core(path)
    text = "\n".join([core.log, *core.stack, *core.traceback])
    return BinFile(core.path, CORE, "1", core.time_us, core.op_name, core.tensors, tuple(core.attributes.items()), text)


def _read_npy(path: Path, size: int) -> BinFile:
    array = read_npy(path)
    if array.size and not array.flags.c_contiguous:
        array = np.ascontiguousarray(array)
    number = dtypes.dtype_from_numpy(array.dtype).acl_number
    assert number is not None  # every dtype that an npy file can have is in that table
    native = array.astype(array.dtype.newbyteorder("<"), copy=False)
    payload = native.reshape(-1).view(np.uint8)
    shape = tuple(array.shape)
    offset = size - array.nbytes
    tensor = BinTensor(OUTPUT, 0, number, "RESERVED", shape, None, 0, payload, offset, f"{path}, output 0")
    return BinFile(str(path), NPY_CONTAINER, "", 0, "", (tensor,))


class _Cursor:
    """Reads numbers off the head of a Nano file; every step is checked against its end."""

    def __init__(self, path: Path, raw: bytes, offset: int) -> None:
        self.path = path
        self.raw = raw
        self.at = 0
        self.offset = offset

    def take(self, size: int) -> bytes:
        if size > len(self.raw) - self.at:
            raise TruncatedFileError(
                f"{self.path} at offset {self.offset + self.at}: expected {size} more bytes of the head, "
                f"got {len(self.raw) - self.at}."
            )
        self.at += size
        return self.raw[self.at - size : self.at]

    def numbers(self, layout: struct.Struct) -> tuple[Any, ...]:
        return layout.unpack(self.take(layout.size))

    def block(self, tag: int) -> _Cursor:
        """The block that must come next."""
        found, size = self.numbers(_PAIR)
        if found != tag:
            at = self.offset + self.at - _PAIR.size
            raise FormatError(f"{self.path} at offset {at}: expected tag {tag}, got {found}.")
        start = self.offset + self.at
        return _Cursor(self.path, self.take(size), start)


def _read_nano(path: Path, raw: Array) -> BinFile:
    length = int.from_bytes(raw[:8].tobytes(), "little")
    longest = min(raw.size - 8, SIDE_BYTES)
    if not 8 <= length <= longest:
        raise FormatError(f"{path} at offset 0: expected a head of 8 to {longest} bytes, got {length}.")
    head = _Cursor(path, raw[8 : 8 + length].tobytes(), 8)
    _, version = head.numbers(_PAIR)
    described = [
        *_descriptions(head.block(_INPUTS), INPUT, _INPUT_HEAD),
        *_descriptions(head.block(_OUTPUTS), OUTPUT, _OUTPUT_HEAD),
    ]
    offset = 8 + length
    expected = offset + sum(size for _, _, size, _, _, _, _ in described)
    if expected != raw.size:
        problem = TruncatedFileError if expected > raw.size else FormatError
        raise problem(f"{path}: expected {expected} bytes by its head, got {raw.size}.")
    tensors = []
    for io, slot, size, ge_number, ge_format, shape, original in described:
        number = _acl_number(ge_number)
        name = device_layouts.FORMAT_NAME.get(ge_format & 0xFF, str(ge_format))
        sub_format = ge_format >> 8 & 0xFFFF
        where = f"{path}, {io} {slot} at offset {offset}"
        payload = raw[offset : offset + size]
        tensors.append(BinTensor(io, slot, number, name, shape, original, sub_format, payload, offset, where))
        offset += size
    return BinFile(str(path), NANO, str(version), 0, _nano_op_name(path), tuple(tensors))


def _acl_number(ge_number: int) -> int:
    """OutputDataType of a GE dtype: 0 for UNDEFINED, the negative number for one that has none."""
    number = _ACL_BY_GE.get(ge_number)
    return -ge_number if number is None else number


def _descriptions(
    block: _Cursor, io: str, layout: struct.Struct
) -> list[tuple[str, int, int, int, int, tuple[int, ...] | None, tuple[int, ...] | None]]:
    (count,) = block.numbers(struct.Struct("<I"))
    if count > _MAX_TENSORS:
        raise FormatError(f"{block.path} at offset {block.offset}: expected at most {_MAX_TENSORS} {io}s, got {count}.")
    found = []
    for slot in range(count):
        numbers = block.numbers(layout)
        size, rest = numbers[-2], numbers[-1]
        more = _Cursor(block.path, block.take(rest), block.offset + block.at - rest)
        shapes: dict[int, tuple[int, ...]] = {}
        while more.at < len(more.raw):
            tag, length = more.numbers(_PAIR)
            value = more.take(length)
            if tag in (0, 1):
                shapes[tag] = _shape(block.path, f"{io} {slot}", value)
        found.append((io, slot, size, numbers[0], numbers[1], shapes.get(0), shapes.get(1)))
    return found


def _shape(path: Path, where: str, value: bytes) -> tuple[int, ...]:
    shape = struct.unpack(f"<{len(value) // 8}Q", value[: len(value) // 8 * 8])
    if len(shape) > MAX_NDIM or math.prod(filter(None, shape)) > 2**60:
        raise FormatError(f"{path}, {where}: expected a shape that an array can have, got {shape[:8]}.")
    return shape


def _nano_op_name(path: Path) -> str:
    parts = path.name.split(".")
    return parts[1] if len(parts) >= 5 else ""

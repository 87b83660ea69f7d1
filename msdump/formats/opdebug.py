"""Overflow files: which task overflowed, as 2048 bytes in a dump file or as JSON, and a reader of both.

A dump file is what BinWriter makes of an `opdebug_record`; the writer of the JSON is here.

Bytes, all fields u64 little-endian, rest zero: DHA info at 0, L2 info at 128, AI Core info at 256, each model_id,
stream_id, task_id, task_type, pc_start, para_base; DHA status at 512; L2 status at 768; AI Core kernel_code, block_idx,
status at 1024. Newer tools write a record that begins with a magic number instead; it is read, not written. A model id
may be that number too: `is_new_content` tells the two apart.
Source: CANN overflow dump; MindSpore dump guide, overflow file of `file_format` npy.
"""

from __future__ import annotations

import json
import os
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from msdump.errors import FormatError, TruncatedFileError
from msdump.formats.bin import read_bin
from msdump.formats.paths.acl import OVERFLOW_NAME, OVERFLOW_TYPE, overflow_json_name
from msdump.formats.writer import Chunks, OperatorFileWriter
from msdump.storage.files import read_file
from msdump.tensors.arrays import Array
from msdump.tensors.records import OUTPUT, TensorRecord

CONTENT_BYTES = 2048
DHA, L2, AI_CORE = "DHA Atomic Add", "L2 Atomic Add", "AI Core"
NEW_MAGIC = 0x5A5A5A5A

_INFO = ("model_id", "stream_id", "task_id", "task_type", "pc_start", "para_base")
# Area -> (offset of its info, offset of its status, fields of its status).
_AREAS: dict[str, tuple[int, int, tuple[str, ...]]] = {
    DHA: (0, 512, ("status",)),
    L2: (128, 768, ("status",)),
    AI_CORE: (256, 1024, ("kernel_code", "block_idx", "status")),
}
# Bytes of the older form that are zero: (start, end).
_USED = sorted(
    (at, at + 8 * count)
    for info_at, status_at, fields in _AREAS.values()
    for at, count in ((info_at, len(_INFO)), (status_at, len(fields)))
)
_UNUSED = tuple(zip((end for _, end in _USED), (*(start for start, _ in _USED[1:]), CONTENT_BYTES), strict=True))
_NEW_HEAD = struct.Struct("<6I")
_TASK = ("model_id", "stream_id", "task_id", "task_type", "context_id")
_CORE = (*_TASK, "thread_id", "pc_start", "para_base", "core_id", "block_id", "status")
# acc_type -> (name, fields of its record).
_NEW_AREAS: dict[int, tuple[str, tuple[str, ...]]] = {
    0: ("AIC", _CORE),
    1: ("AIV", _CORE),
    2: ("AICPU", (*_TASK, "cpu_id", "thread_id", "status")),
    3: ("SDMA", (*_TASK, "thread_id", "src_addr", "dst_addr", "channel_id", "status")),
}
_HEX = frozenset({"pc_start", "para_base", "kernel_code", "src_addr", "dst_addr"})


@dataclass(frozen=True, slots=True)
class TaskStatus:
    """Status of a unit of the device. `status` is not 0 when it met an overflow; its bits have no public meaning.

    kernel_code, block_idx   of the AI Core only
    """

    model_id: int = 0
    stream_id: int = 0
    task_id: int = 0
    task_type: int = 0
    pc_start: int = 0
    para_base: int = 0
    status: int = 0
    kernel_code: int = 0
    block_idx: int = 0


@dataclass(frozen=True, slots=True)
class Opdebug:
    """Content of an overflow file: the units that add in memory, in the second-level cache, and that compute."""

    dha: TaskStatus = TaskStatus()
    l2: TaskStatus = TaskStatus()
    ai_core: TaskStatus = TaskStatus()

    @property
    def areas(self) -> dict[str, TaskStatus]:
        return {DHA: self.dha, L2: self.l2, AI_CORE: self.ai_core}


@dataclass(frozen=True, slots=True)
class AcceleratorRecord:
    """Content of a newer overflow file. `values` by the names of its fields, in the file's order."""

    version: int
    valid: int
    acc_type: str
    rsv: int
    data_len: int
    values: Mapping[str, int]


def opdebug_content(opdebug: Opdebug) -> Array:
    """The 2048 bytes, (2048,) uint8."""
    content = bytearray(CONTENT_BYTES)
    for name, task in opdebug.areas.items():
        info_at, status_at, fields = _AREAS[name]
        struct.pack_into("<6Q", content, info_at, *(getattr(task, field) for field in _INFO))
        struct.pack_into(f"<{len(fields)}Q", content, status_at, *(getattr(task, field) for field in fields))
    return np.frombuffer(bytes(content), np.uint8)


def parse_opdebug_content(content: bytes, where: str) -> Opdebug | AcceleratorRecord:
    """Inverse of `opdebug_content`, and the newer form.   Raises: FormatError naming `where`."""
    if is_new_content(content):
        return _parse_new(content, where)
    if len(content) != CONTENT_BYTES:
        raise FormatError(f"{where}: expected {CONTENT_BYTES} bytes of overflow data, got {len(content)}.")
    tasks = []
    for info_at, status_at, fields in _AREAS.values():
        found = dict(zip(_INFO, struct.unpack_from("<6Q", content, info_at), strict=True))
        found.update(zip(fields, struct.unpack_from(f"<{len(fields)}Q", content, status_at), strict=True))
        tasks.append(TaskStatus(**found))
    return Opdebug(*tasks)


def is_new_content(content: bytes) -> bool:
    """Whether this is the newer form: its magic number, and bytes that the older form does not have.

    The older form begins with a model id, which may be that number. It has exactly 2048 bytes and zeros between its
    areas, where a newer record that tells of an overflow has its status.
    Edges: 2048 bytes whose head is right in every field and whose values end before these zeros are the newer form;
    as the older one they would name a task id of 2**38 and more.
    """
    if int.from_bytes(content[:4], "little") != NEW_MAGIC:
        return False
    if len(content) != CONTENT_BYTES or any(any(content[start:end]) for start, end in _UNUSED):
        return True
    _, _, valid, acc_type, _, data_len = _NEW_HEAD.unpack_from(content)
    return valid == 1 and acc_type in _NEW_AREAS and data_len == 8 * len(_NEW_AREAS[acc_type][1])


def _parse_new(content: bytes, where: str) -> AcceleratorRecord:
    if len(content) < _NEW_HEAD.size:
        raise TruncatedFileError(f"{where}: expected a head of {_NEW_HEAD.size} bytes, got {len(content)}.")
    _, version, valid, acc_type, rsv, data_len = _NEW_HEAD.unpack_from(content)
    if acc_type not in _NEW_AREAS:
        raise FormatError(f"{where} at offset 12: expected acc_type 0 to {max(_NEW_AREAS)}, got {acc_type}.")
    name, fields = _NEW_AREAS[acc_type]
    if len(content) < _NEW_HEAD.size + 8 * len(fields):
        raise TruncatedFileError(
            f"{where} at offset {_NEW_HEAD.size}: expected {8 * len(fields)} bytes of {name} data, "
            f"got {len(content) - _NEW_HEAD.size}."
        )
    values = struct.unpack_from(f"<{len(fields)}Q", content, _NEW_HEAD.size)
    return AcceleratorRecord(version, valid, name, rsv, data_len, dict(zip(fields, values, strict=True)))


# -- JSON ----------------------------------------------------------------------------------------------------------


def opdebug_json(opdebug: Opdebug | AcceleratorRecord) -> dict[str, Any]:
    """As converters show it, keys in the order of the bytes; addresses as hexadecimal text."""
    if isinstance(opdebug, AcceleratorRecord):
        record = {"valid": opdebug.valid, "acc_type": opdebug.acc_type, "rsv": opdebug.rsv}
        data = {name: _shown(name, value) for name, value in opdebug.values.items()}
        content = {**record, "data_len": opdebug.data_len, "data": data}
        return {"magic": hex(NEW_MAGIC), "version": opdebug.version, "acc_list": content}
    return {
        name: {field: _shown(field, getattr(task, field)) for field in (*_INFO, *_AREAS[name][2])}
        for name, task in opdebug.areas.items()
    }


def opdebug_text(opdebug: Opdebug) -> str:
    """As MindSpore writes it: no blanks, keys in alphabetical order."""
    return json.dumps(opdebug_json(opdebug), separators=(",", ":"), sort_keys=True)


def parse_opdebug_json(text: str, where: str) -> Opdebug | AcceleratorRecord:
    """Inverse of `opdebug_json` and `opdebug_text`.   Raises: FormatError naming `where`."""
    try:
        shown = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{where}: expected JSON, got {text[:80]!r}: {error}.") from error
    if isinstance(shown, dict) and "acc_list" in shown:
        return _parse_new_json(shown, where)
    tasks = []
    for name, (_, _, fields) in _AREAS.items():
        area = _member(shown, name, where)
        tasks.append(TaskStatus(**{field: _number(area, field, f"{where}, {name}") for field in (*_INFO, *fields)}))
    return Opdebug(*tasks)


def _parse_new_json(shown: Mapping[str, Any], where: str) -> AcceleratorRecord:
    record = _member(shown, "acc_list", where)
    by_name = dict(_NEW_AREAS.values())
    acc_type = record.get("acc_type")
    if not isinstance(acc_type, str) or acc_type not in by_name:
        raise FormatError(f"{where}, acc_type: expected one of {', '.join(by_name)}, got {acc_type!r}.")
    data = _member(record, "data", where)
    return AcceleratorRecord(
        _number(shown, "version", where),
        _number(record, "valid", where),
        acc_type,
        _number(record, "rsv", where),
        _number(record, "data_len", where),
        {field: _number(data, field, f"{where}, data") for field in by_name[acc_type]},
    )


def _member(shown: Any, name: str, where: str) -> Mapping[str, Any]:
    found = shown.get(name) if isinstance(shown, dict) else None
    if not isinstance(found, dict):
        raise FormatError(f'{where}: expected an object "{name}", got {str(found)[:80]}.')
    return found


def _number(shown: Mapping[str, Any], field: str, where: str) -> int:
    value = shown.get(field)
    if field in _HEX and isinstance(value, str) and re.fullmatch("0[xX][0-9a-fA-F]{1,16}", value):
        return int(value, 16)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**64:
        return value
    raise FormatError(f"{where}, {field}: expected a number of 64 bits, got {str(value)[:80]!r}.")


def _shown(field: str, value: int) -> int | str:
    return hex(value) if field in _HEX else value


# -- files ---------------------------------------------------------------------------------------------------------


def opdebug_record(
    opdebug: Opdebug, task_id: int, stream_id: int, timestamp_us: int, iteration: int = 0, graph_id: int = 0
) -> TensorRecord:
    """An overflow file as what it is on a device: the only output of the debug task, which is no operator."""
    return TensorRecord(
        OVERFLOW_TYPE,
        OVERFLOW_NAME,
        task_id,
        stream_id,
        timestamp_us,
        OUTPUT,
        0,
        "uint8",
        opdebug_content(opdebug),
        "ND",
        iteration,
        graph_id,
    )


class OpdebugJsonWriter(OperatorFileWriter):
    """Writer of overflow records as MindSpore's JSON."""

    def file_name(self, record: TensorRecord) -> str:
        return overflow_json_name(record.task_id, record.stream_id, record.timestamp_us)

    def content(self, records: Sequence[TensorRecord]) -> Chunks:
        """Raises: FormatError for a record that `opdebug_record` did not make."""
        (record,) = records
        where = f"{record.op_name} of task {record.task_id}"
        content = parse_opdebug_content(record.data.tobytes(), where)
        if not isinstance(content, Opdebug):
            raise FormatError(f"{where}: expected plain overflow data.")
        return [opdebug_text(content).encode()]


def read_opdebug(path: str | os.PathLike[str]) -> Opdebug | AcceleratorRecord:
    """Content of an overflow file: a dump file, MindSpore's JSON, or a converter's JSON.

    Raises: FormatError naming the file; OSError when it cannot be opened.
    """
    path = Path(path)
    if path.suffix == ".json":
        try:
            return parse_opdebug_json(read_file(path).decode(), str(path))
        except UnicodeDecodeError as error:
            raise FormatError(f"{path}: expected UTF-8 text, got other bytes at offset {error.start}.") from error
    outputs = read_bin(path).of(OUTPUT)
    if len(outputs) != 1:
        raise FormatError(f"{path}: expected one output with overflow data, got {len(outputs)}.")
    return parse_opdebug_content(outputs[0].payload.tobytes(), str(path))

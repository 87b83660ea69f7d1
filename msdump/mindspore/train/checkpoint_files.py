"""Files of parameters: MindSpore's `Checkpoint` messages, and safetensors.

Source: files that real 2.7 wrote; the layout of safetensors: length of the header (uint64), header as JSON, data.
"""

from __future__ import annotations

import binascii
import json
import math
import os
import threading
from collections.abc import Mapping
from typing import Any

import numpy as np

from msdump.errors import FormatError
from msdump.mindspore.protobuf import parsed
from msdump.storage.plain import plain_opener
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array

# A bigger tensor is cut into several entries of one tag, as protobuf messages must stay below 2 GiB.
_SLICE_BYTES = 512 * 1024 * 1024
_BY_IR_NAME = {row.ir_name: row for row in dtypes.TABLE}
_TEXT = "str"
_CHECKSUM = b"crc_num"
_CHECKSUM_BYTES = 10
# Names of dtypes, in the order in which safetensors lays tensors out.
_SAFE_ORDER = (
    *("uint64", "int64", "float64", "float32", "uint32", "int32", "bfloat16", "float16", "uint16", "int16"),
    *("int8", "uint8", "bool"),
)
_SAFE_NAMES = {name: str(dtypes.dtype(name).safetensors_name) for name in _SAFE_ORDER}
_FROM_SAFE = {safe: name for name, safe in _SAFE_NAMES.items()}

Values = Mapping[str, "Array | str"]


def write(path: str, content: bytes) -> None:
    """Write a file that appears whole or not at all."""
    sibling = f"{path}.{os.getpid()}.tmp"
    with open(sibling, "wb", opener=plain_opener(0o666)) as file:
        file.write(content)
    os.replace(sibling, path)


# -- writing in the background -----------------------------------------------------------------------------------------

_writers: list[threading.Thread] = []
_failures: list[BaseException] = []


def write_later(path: str, content: bytes) -> None:
    """Write a file on a thread of its own, after those that were begun before."""
    before = list(_writers)

    def run() -> None:
        for writer in before:
            writer.join()
        try:
            write(path, content)
        except (OSError, MemoryError) as error:
            _failures.append(error)

    thread = threading.Thread(target=run, name="msdump-checkpoint")
    _writers.append(thread)
    thread.start()


def is_writing() -> bool:
    """Is a file still being written in the background?"""
    return any(writer.is_alive() for writer in _writers)


def wait_for_saving() -> None:
    """Until no file is being written.   Raises: what a background writer met."""
    while _writers:
        _writers.pop(0).join()
    if _failures:
        failure = _failures[0]
        _failures.clear()
        raise failure


# -- MindSpore's checkpoint --------------------------------------------------------------------------------------------


def to_checkpoint(values: Values, has_checksum: bool = False) -> bytes:
    """Values by name, in order, as a `Checkpoint` message; `has_checksum` appends its CRC-32."""
    from msdump.mindspore._proto.checkpoint_pb2 import Checkpoint

    checkpoint = Checkpoint()
    for name, value in values.items():
        _add_entries(checkpoint, name, value)
    content: bytes = checkpoint.SerializeToString()
    if not has_checksum:
        return content
    return content + _CHECKSUM + binascii.crc32(content).to_bytes(_CHECKSUM_BYTES, "big")


def _add_entries(checkpoint: Any, name: str, value: Array | str) -> None:
    if isinstance(value, str):
        content, dims, type_name = np.array(value).astype(f"<U{max(len(value), 1)}").tobytes(), (0,), _TEXT
    else:
        # Source: MindSpore 2.0 writes the dims of a 0-d tensor as one zero.
        content, dims, type_name = little_endian(value), value.shape or (0,), _row(value).ir_name
    for start in range(0, max(len(content), 1), _SLICE_BYTES):
        entry = checkpoint.value.add()
        entry.tag = name
        entry.tensor.dims.extend(dims)
        entry.tensor.tensor_type = type_name
        entry.tensor.tensor_content = content[start : start + _SLICE_BYTES]


def little_endian(array: Array) -> bytes:
    """An array's elements in C order, the lowest byte first."""
    return np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False).tobytes()


def _row(array: Array) -> dtypes.Dtype:
    return dtypes.dtype_from_numpy(array.dtype)


def without_checksum(content: bytes, path: str, is_checked: bool) -> bytes:
    """The message of a file.   Raises: ValueError when its CRC-32 is checked and differs."""
    at = len(content) - _CHECKSUM_BYTES - len(_CHECKSUM)
    if at < 0 or content[at : at + len(_CHECKSUM)] != _CHECKSUM:
        return content
    expected = int.from_bytes(content[-_CHECKSUM_BYTES:], "big")
    if is_checked and binascii.crc32(content[:at]) != expected:
        raise ValueError(f"For 'load_checkpoint', the crc check is failed, {path} has changed since it was written.")
    return content[:at]


def from_checkpoint(content: bytes, path: str) -> dict[str, Array | str]:
    """Values by name.   Raises: FormatError for anything but a `Checkpoint` message."""
    from msdump.mindspore._proto.checkpoint_pb2 import Checkpoint

    checkpoint = parsed(Checkpoint, content, path, "a MindSpore checkpoint")
    parts: dict[str, list[bytes]] = {}
    heads: dict[str, tuple[tuple[int, ...], str]] = {}
    for entry in checkpoint.value:
        parts.setdefault(entry.tag, []).append(entry.tensor.tensor_content)
        heads.setdefault(entry.tag, (tuple(entry.tensor.dims), entry.tensor.tensor_type))
    return {name: _value(path, name, b"".join(parts[name]), *head) for name, head in heads.items()}


def _value(path: str, name: str, content: bytes, dims: tuple[int, ...], ir_name: str) -> Array | str:
    if ir_name == _TEXT:
        try:
            return str(np.frombuffer(content, f"<U{len(content) // 4}")[0])
        except ValueError as error:
            raise FormatError(
                f"{path}: {name}: expected a text of 4 bytes a character, got {content[:16]!r}."
            ) from error
    row = _BY_IR_NAME.get(ir_name)
    if row is None or row.numpy_type is None:
        raise FormatError(f"{path}: {name}: dtype {ir_name!r} is not in the table.")
    shape = () if dims == (0,) and len(content) == row.itemsize else dims
    return _array(path, name, content, shape, row)


def _array(path: str, name: str, content: bytes, shape: tuple[int, ...], row: dtypes.Dtype) -> Array:
    expected = math.prod(shape) * row.itemsize
    if len(content) != expected or min(shape, default=0) < 0:
        raise FormatError(f"{path}: {name}: expected {expected} bytes for {row.name}{list(shape)}, got {len(content)}.")
    return np.frombuffer(content, row.numpy.newbyteorder("<")).astype(row.numpy).reshape(shape)


# -- safetensors -------------------------------------------------------------------------------------------------------


def to_safetensors(values: Values) -> bytes:
    """Values by name as a safetensors file.   Raises: ValueError for a text or a dtype that the format has not."""
    order = list(_SAFE_NAMES)
    header: dict[str, Any] = {"__metadata__": {"format": "ms"}}
    data: list[bytes] = []
    end = 0
    names = {name: "str" if isinstance(value, str) else _row(value).name for name, value in values.items()}
    for name, dtype in names.items():
        if dtype not in _SAFE_NAMES:
            raise ValueError(f"{name}: expected a dtype that safetensors has, got {dtype}. Save with format='ckpt'.")
    for name in sorted(names, key=lambda name: (order.index(names[name]), name)):
        value = np.asarray(values[name])
        data.append(little_endian(value))
        start, end = end, end + len(data[-1])
        header[name] = {"dtype": _SAFE_NAMES[names[name]], "shape": list(value.shape), "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([len(text).to_bytes(8, "little"), text, *data])


def from_safetensors(content: bytes, path: str) -> dict[str, Array | str]:
    """Values by name.   Raises: FormatError for anything but a whole safetensors file."""
    length = int.from_bytes(content[:8], "little")
    try:
        header = json.loads(content[8 : 8 + length])
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path}: expected a safetensors file, got something else. Is the file whole?") from error
    if not isinstance(header, dict):
        raise FormatError(f"{path}: expected a safetensors file, got {type(header).__name__} in place of its table.")
    data = content[8 + length :]
    return {name: _safe_array(path, name, entry, data) for name, entry in header.items() if name != "__metadata__"}


def _safe_array(path: str, name: str, entry: Any, data: bytes) -> Array:
    match entry:
        case {"dtype": str(dtype), "shape": list(shape), "data_offsets": [int(begin), int(end)]} if (
            0 <= begin <= end and all(type(size) is int for size in shape)
        ):
            pass
        case _:
            raise FormatError(
                f"{path}: {name}: expected dtype, shape and two data_offsets, got {entry!r:.200}. Is the file whole?"
            )
    if dtype not in _FROM_SAFE:
        raise FormatError(f"{path}: {name}: dtype {dtype!r} is not in the table.")
    return _array(path, name, data[begin:end], tuple(shape), dtypes.dtype(_FROM_SAFE[dtype]))

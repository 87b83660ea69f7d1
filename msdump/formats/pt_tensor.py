"""A tensor in a file of `torch.save`, read without PyTorch and without running what the file says.

The file is a zip archive, stored without compression: `NAME/data.pkl` says which storage, offset, size and strides, and
`NAME/data/0` holds the bytes. Of the pickle only calls that rebuild a tensor are carried out, by functions below;
anything else is refused.

Source: torch.serialization, format of the zip file.
"""

from __future__ import annotations

import io
import math
import os
import pickle
import struct
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from msdump import dtypes
from msdump.errors import FormatError
from msdump.storage.files import open_file

_PICKLE_BYTES = 1 << 20
_LOCAL_HEADER = struct.Struct("<4s5H3I2H")
_LOCAL_SIGNATURE = b"PK\x03\x04"
# Source: torch, storage types by the dtypes of tensors.
_DTYPE_BY_STORAGE = {
    "DoubleStorage": "float64",
    "FloatStorage": "float32",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
    "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128",
}


@dataclass(frozen=True, slots=True)
class PtTensor:
    """Where the bytes of a tensor lie.   dtype: a name of the dtype table; offset: in the file, in bytes"""

    dtype: str
    shape: tuple[int, ...]
    offset: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class _Storage:
    dtype: str
    key: str
    count: int


@dataclass(frozen=True, slots=True)
class _View:
    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def _rebuild_tensor(storage: Any, offset: Any, shape: Any, strides: Any, *_: Any) -> _View:
    numbers = (offset, *shape, *strides)
    is_sound = isinstance(storage, _Storage) and len(shape) == len(strides) and len(shape) <= 64
    if not is_sound or not all(type(number) is int and 0 <= number < 1 << 62 for number in numbers):
        raise ValueError("a tensor with offset, shape and strides")
    return _View(storage, offset, tuple(shape), tuple(strides))


def _rebuild_parameter(data: Any, *_: Any) -> Any:
    return data


_CALLS: dict[tuple[str, str], Callable[..., Any]] = {
    ("torch._utils", "_rebuild_tensor_v2"): _rebuild_tensor,
    ("torch._utils", "_rebuild_parameter"): _rebuild_parameter,
    ("collections", "OrderedDict"): dict,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module == "torch" and name in _DTYPE_BY_STORAGE:
            return _DTYPE_BY_STORAGE[name]
        call = _CALLS.get((module, name))
        if call is None:
            raise ValueError(f"{module[:80]}.{name[:80]}")
        return call

    def persistent_load(self, pid: Any) -> _Storage:
        kind, dtype, key, _, count = pid
        if kind != "storage" or not isinstance(dtype, str) or not isinstance(key, str) or type(count) is not int:
            raise ValueError("a storage")
        return _Storage(dtype, key, count)


def read_pt_tensor(path: str | os.PathLike[str]) -> PtTensor:
    """The tensor that a file of `torch.save` holds.

    Raises: FormatError for a file that is damaged, holds something else than one dense tensor, or asks for
            any other call; OSError.
    """
    where = os.fspath(path)
    with open_file(path) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                root = _root(archive)
                view = _unpickled(archive, f"{root}/data.pkl")
                byte_order = f"{root}/byteorder"
                if byte_order in archive.namelist() and archive.read(byte_order)[:10] != b"little":
                    raise ValueError("the bytes of another machine's order")
                place, size = _data(archive, file, f"{root}/data/{view.storage.key}")
        except (zipfile.BadZipFile, pickle.UnpicklingError, struct.error, EOFError, NotImplementedError) as error:
            raise FormatError(f"{where}: expected a file of torch.save, got a damaged one: {error}.") from error
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, MemoryError) as error:
            raise FormatError(
                f"{where}: expected a file of torch.save with one tensor, got something else: {error}."
            ) from error
    return _located(where, view, place, size)


def _root(archive: zipfile.ZipFile) -> str:
    names = [name for name in archive.namelist() if name.endswith("/data.pkl")]
    if len(names) != 1:
        raise ValueError(f"{len(names)} members data.pkl")
    return names[0].removesuffix("/data.pkl")


def _unpickled(archive: zipfile.ZipFile, name: str) -> _View:
    if archive.getinfo(name).file_size > _PICKLE_BYTES:
        raise ValueError("more than a tensor")
    value = _Unpickler(io.BytesIO(archive.read(name))).load()
    if not isinstance(value, _View):
        raise ValueError(f"{type(value).__name__}")
    return value


def _data(archive: zipfile.ZipFile, file: Any, name: str) -> tuple[int, int]:
    """Offset and size of a member."""
    info = archive.getinfo(name)
    if info.compress_type != zipfile.ZIP_STORED:
        raise ValueError("compressed data")
    file.seek(info.header_offset)
    signature, *_, name_size, extra_size = _LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size))
    if signature != _LOCAL_SIGNATURE:
        raise ValueError("no member where the directory says")
    return info.header_offset + _LOCAL_HEADER.size + name_size + extra_size, info.file_size


def _located(where: str, view: _View, place: int, size: int) -> PtTensor:
    item = dtypes.dtype(view.storage.dtype).bits // 8
    count = math.prod(view.shape)
    dense = [math.prod(view.shape[axis + 1 :]) for axis in range(len(view.shape))]
    axes = zip(view.strides, dense, view.shape, strict=True)
    is_dense = all(stride == own or length == 1 for stride, own, length in axes)
    if count and not is_dense:
        raise FormatError(
            f"{where}: expected a tensor whose elements follow each other, got strides {view.strides} of shape "
            f"{view.shape}. Save `tensor.contiguous()`."
        )
    start, needed = view.offset * item, count * item
    if start + needed > size:
        raise FormatError(f"{where}: expected {start + needed} data bytes, got {size}.")
    return PtTensor(view.storage.dtype, view.shape, place + start, needed)

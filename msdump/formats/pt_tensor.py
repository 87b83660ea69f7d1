"""A tensor in a file of `torch.save`, read without PyTorch and without running what the file says.

The file is a zip archive, stored without compression: `NAME/data.pkl` says which storage, offset, size and strides, and
`NAME/data/0` holds the bytes. Of the pickle only calls that rebuild a tensor are carried out, by functions below;
anything else is refused. Sizes are checked before anything of that size is read: a file costs no more memory than some
megabytes, whatever it claims.

Source: torch.serialization, format of the zip file.
"""

from __future__ import annotations

import io
import math
import os
import pickle
import pickletools
import struct
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, Any, cast

from msdump.errors import FormatError
from msdump.formats.zip_members import LimitedFile, small_member, stored_place
from msdump.storage.files import OpenFile, open_file
from msdump.tensors import dtypes

_PICKLE_BYTES = 1 << 16
_MAX_OPCODES = 1 << 10  # a tensor of 64 axes has some 200; a chain of many more would exhaust the stack of the process
_ORDER_BYTES = 16
_SHOWN_CHARACTERS = 200
# Source: torch, storage types by the dtypes of tensors.
STORAGE_DTYPES = {
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
# All that torch.save writes for a tensor or a parameter, in every protocol that it takes. None of them changes an
# object that is already there, except SETITEM, which fills the dictionary of a view's marks.
_OPCODES = frozenset(
    (
        *("PROTO", "FRAME", "STOP", "MARK", "GLOBAL", "STACK_GLOBAL", "BINPERSID", "REDUCE"),
        *("BINUNICODE", "SHORT_BINUNICODE", "BININT", "BININT1", "BININT2", "LONG1", "NONE", "NEWTRUE", "NEWFALSE"),
        *("EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "EMPTY_DICT", "SETITEM"),
        *("BINPUT", "LONG_BINPUT", "MEMOIZE", "BINGET", "LONG_BINGET"),
    )
)
_PUTS = ("BINPUT", "LONG_BINPUT")


@dataclass(frozen=True, slots=True)
class PtTensor:
    """Where the bytes of a tensor lie.   dtype: a name of the dtype table; offset: in the file, in bytes"""

    dtype: str
    shape: tuple[int, ...]
    offset: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class _StorageType:
    """A class of torch as a file names it, which no text in a file can be."""

    dtype: str


@dataclass(frozen=True, slots=True)
class _Storage:
    dtype: str
    key: str


@dataclass(frozen=True, slots=True)
class _View:
    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def _rebuild_tensor(
    storage: Any, offset: Any, shape: Any, strides: Any, _requires_grad: Any = None, _hooks: Any = None, marks: Any = ()
) -> _View:
    is_sound = isinstance(storage, _Storage) and type(shape) is type(strides) is tuple
    if not is_sound or not len(shape) == len(strides) <= 64:
        raise ValueError("a tensor without storage, shape or strides")
    if not all(type(number) is int and 0 <= number < 1 << 62 for number in (offset, *shape, *strides)):
        raise ValueError("a tensor with offset, shape or strides that are no sizes")
    if marks:
        raise ValueError("a conjugate or negative view. Save `tensor.resolve_conj().resolve_neg()`")
    return _View(storage, offset, shape, strides)


def _rebuild_parameter(data: Any, *_: Any) -> Any:
    return data


def _no_hooks(*entries: Any) -> None:
    if entries:
        raise ValueError("a dictionary")


_CALLS: dict[tuple[str, str], Callable[..., Any]] = {
    ("torch._utils", "_rebuild_tensor_v2"): _rebuild_tensor,
    ("torch._utils", "_rebuild_parameter"): _rebuild_parameter,
    ("collections", "OrderedDict"): _no_hooks,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module == "torch" and name in STORAGE_DTYPES:
            return _StorageType(STORAGE_DTYPES[name])
        call = _CALLS.get((module, name))
        if call is None:
            raise ValueError(f"{module[:80]}.{name[:80]}")
        return call

    def persistent_load(self, pid: Any) -> _Storage:
        kind, storage_type, key, *_ = pid if type(pid) is tuple else ()
        if kind != "storage" or not isinstance(storage_type, _StorageType) or not isinstance(key, str):
            raise ValueError("a storage of unknown type")
        return _Storage(storage_type.dtype, key)


def read_pt_tensor(path: str | os.PathLike[str]) -> PtTensor:
    """The tensor that a file of `torch.save` holds.

    Raises: FormatError for a file that is damaged, holds something else than one dense tensor, or asks for
            any other call; OSError.
    """
    where = os.fspath(path)
    with open_file(path) as file:
        try:
            with zipfile.ZipFile(cast("IO[bytes]", LimitedFile(file))) as archive:
                root = _root(archive)
                view = _unpickled(small_member(archive, file, f"{root}/data.pkl", _PICKLE_BYTES))
                _check_order(archive, file, f"{root}/byteorder")
                place, size = stored_place(archive, file, f"{root}/data/{view.storage.key}")
        except (zipfile.BadZipFile, pickle.UnpicklingError, struct.error, EOFError, NotImplementedError) as error:
            raise FormatError(f"{where}: expected a file of torch.save, got a damaged one: {_shown(error)}.") from error
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, MemoryError) as error:
            raise FormatError(
                f"{where}: expected a file of torch.save with one tensor, got something else: {_shown(error)}."
            ) from error
    return _located(where, view, place, size)


def _shown(error: Exception) -> str:
    return str(error)[:_SHOWN_CHARACTERS]


def _root(archive: zipfile.ZipFile) -> str:
    names = [name for name in archive.namelist() if name.endswith("/data.pkl")]
    if len(names) != 1:
        raise ValueError(f"{len(names)} members data.pkl")
    return names[0].removesuffix("/data.pkl")


def _check_order(archive: zipfile.ZipFile, file: OpenFile, name: str) -> None:
    """Raises: ValueError for bytes of another order; files of older versions do not tell theirs."""
    if name in archive.namelist() and small_member(archive, file, name, _ORDER_BYTES) != b"little":
        raise ValueError("the bytes of another machine's order")


def _unpickled(content: bytes) -> _View:
    """Raises: pickle.UnpicklingError; any error that a call above, or Python's reader, raises."""
    with warnings.catch_warnings():
        # Python warns of what it finds in damaged names.
        warnings.simplefilter("ignore")
        return _read_pickle(content)


def _read_pickle(content: bytes) -> _View:
    for number, (opcode, argument, _) in enumerate(pickletools.genops(content)):
        if number >= _MAX_OPCODES:
            raise ValueError("more than a tensor: a pickle of many instructions")
        if opcode.name not in _OPCODES:
            raise ValueError(f"a pickle with {opcode.name}")
        # Python's reader takes memory for all entries up to the largest.
        if opcode.name in _PUTS and int(argument or 0) >= len(content):
            raise ValueError(f"a pickle of {len(content)} bytes with {argument} entries")
    value = _Unpickler(io.BytesIO(content)).load()
    if not isinstance(value, _View):
        raise ValueError(f"{type(value).__name__}")
    return value


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

"""A strict reader of .npy files, which reads a small file once for its header and its data.

Nothing in a file is ever executed.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from msdump.errors import FormatError, TruncatedFileError, UnknownDtypeError
from msdump.formats.npy import MAGIC, PREFIX_BYTES, dtype_of_mark
from msdump.storage.files import OpenFile, open_file
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array
from msdump.tensors.makers import maker
from msdump.tensors.records import MAX_NDIM

_MAX_HEADER_BYTES = 1 << 16
_SMALL_BYTES = 2048  # of a file that takes hardly more memory than what its name says
_MANY_AXES = 32  # one more than this is more than numpy before 2.0 can have
_KNOWN_CONTENTS = 16384  # of at most _SMALL_BYTES each
_KNOWN_HEADERS = 4096  # in the cache
# Blanks are those of Python's source: other characters that Unicode calls blank part no numbers.
_HEADER = re.compile(
    r"\s*\{\s*(['\"])descr\1\s*:\s*(['\"])(?P<descr>[^'\"]*)\2\s*,"
    r"\s*(['\"])fortran_order\4\s*:\s*(?P<order>True|False)\s*,"
    r"\s*(['\"])shape\6\s*:\s*\((?P<shape>[0-9,\s]*)\)\s*,?\s*\}(?P<padding>\s*)",
    re.ASCII,
)
_SHAPE = re.compile(r"\s*(?:[0-9]{1,19}\s*(?:,\s*[0-9]{1,19}\s*)*,?\s*)?", re.ASCII)
_DESCR = re.compile(r"[<>|=]?[?biufc][0-9]{0,2}")
# MindSpore 2.7 on CPU writes bfloat16 under a name that numpy does not know.
_FOREIGN_DESCR: dict[str, np.dtype[Any]] = {"<E2": dtypes.dtype("bfloat16").numpy}


def read_npy(path: str | os.PathLike[str], mmap: bool = True) -> Array:
    """Array of a .npy file that MindSpore, msdump or numpy wrote; nothing in it is ever executed.

    mmap    map the file, read-only, instead of reading it: only what is looked at comes from disk
    Raises: FormatError; TruncatedFileError when bytes are missing; UnknownDtypeError for a dtype outside the table;
            OSError when the file cannot be opened.
    """
    where = os.fspath(path)
    with open_file(path) as file:
        return _data(where, file, _header(where, file), mmap)


def npy_header_in(where: str, file: OpenFile) -> NpyHeader:
    """Header of an npy file that is open; `where` names it in errors.   Raises: as `read_npy`"""
    return _header(where, file)


def npy_array_in(where: str, file: OpenFile) -> Array:
    """As `read_npy`, of an npy file that is open."""
    return _data(where, file, _header(where, file), mmap=True)


@dataclass(frozen=True, slots=True)
class NpyHeader:
    """Header of a file.

    offset    bytes before the first element
    name      of the dtype in the dtype table
    original  the dtype before the file stored the tensor in a wider one; None where it does not tell
    size_bytes  of the data
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    is_fortran: bool
    offset: int
    name: str
    original: str | None
    size_bytes: int


@dataclass(frozen=True, slots=True)
class SmallNpy:
    """A small file, read completely: the tensor does not keep the file open.

    device, inode   of the file
    """

    header: NpyHeader
    content: bytes
    device: int
    inode: int

    def array(self, where: str) -> Array:
        """Read-only, of the header's shape."""
        header = self.header
        if not header.size_bytes:
            return _empty(where, header)
        flat = np.frombuffer(self.content, header.dtype, offset=header.offset)
        return flat.reshape(header.shape, order="F" if header.is_fortran else "C")


_small_npy = maker(SmallNpy)


def small_arrays(small_files: Mapping[int, SmallNpy]) -> dict[int, Array]:
    """What `array` gives of small files, those of one header by a few calls for all of them; by the same keys.

    Edges:  left out are scalars, tensors that are empty, in Fortran order, or of very many axes.
    """
    keys_by_header: dict[int, list[int]] = {}
    for key, file in small_files.items():
        header = file.header
        if header.size_bytes and not header.is_fortran and 0 < len(header.shape) < _MANY_AXES:
            # Files of equal headers share one object.
            keys_by_header.setdefault(id(header), []).append(key)
    arrays: dict[int, Array] = {}
    for keys in keys_by_header.values():
        header = small_files[keys[0]].header
        whole = np.frombuffer(b"".join([small_files[key].content for key in keys]), np.uint8).reshape(len(keys), -1)
        rows = whole[:, header.offset :].view(header.dtype)
        arrays.update(zip(keys, rows.reshape(len(keys), *header.shape), strict=True))
    return arrays


def scan_npy(path: str) -> tuple[NpyHeader, SmallNpy | None]:
    """What a file of the right length says; a small one on the disk as a whole.   Raises: as `read_npy`."""
    file = open_file(path, head_bytes=_SMALL_BYTES)
    try:
        header = _header(path, file)
    finally:
        file.close()
    identity = file.identity
    if identity is None or file.size > len(file.head):
        return header, None
    return header, _small_npy(header, _shared(file.head), *identity)


# What small files hold: those of the tensors that an operator hands on, one of which is the link of the other.
_contents: dict[bytes, bytes] = {}


def _shared(content: bytes) -> bytes:
    """Equal bytes that were read before, where they are still known."""
    if len(_contents) >= _KNOWN_CONTENTS:
        _contents.clear()
    return _contents.setdefault(content, content)


# By the bytes before the data, of version 1.0: most files of a dump share a few headers.
_headers: dict[bytes, NpyHeader] = {}


def _remember(text: bytes, header: NpyHeader) -> None:
    if header.offset == len(text):
        if len(_headers) >= _KNOWN_HEADERS:
            _headers.clear()
        _headers[text] = header


def _header(where: str, file: OpenFile) -> NpyHeader:
    """As `_checked_header`; nothing is parsed again where the first bytes of the file are known."""
    start = file.head
    text = start[: PREFIX_BYTES + int.from_bytes(start[8:PREFIX_BYTES], "little")]
    header = _headers.get(text)
    if header is not None and file.size == header.offset + header.size_bytes:
        return header
    header = _checked_header(where, file)
    _remember(text, header)
    return header


def _checked_header(where: str, file: OpenFile) -> NpyHeader:
    header = parse_header(where, file)
    dtype, shape = header.dtype, header.shape
    expected, actual = header.size_bytes, file.size - header.offset
    if actual != expected:
        text = (
            f"{where}: expected {expected} data bytes at offset {header.offset} for {dtype.name} {shape}, got {actual}."
        )
        if actual < expected:
            raise TruncatedFileError(f"{text} The file is cut short.")
        raise FormatError(f"{text} Something was added, or the header is wrong.")
    if not expected:
        _empty(where, header)
    return header


def _empty(where: str, header: NpyHeader) -> Array:
    # No byte of data bounds the other dimensions of an empty tensor.
    try:
        return np.empty(header.shape, header.dtype)
    except (ValueError, OverflowError) as error:
        raise FormatError(f"{where}: expected a shape that an array can have, got {header.shape}: {error}.") from error


def _data(where: str, file: OpenFile, header: NpyHeader, mmap: bool) -> Array:
    count = math.prod(header.shape)
    if not header.size_bytes:
        return _empty(where, header)
    try:
        if mmap:
            flat = file.array(header.offset, header.size_bytes).view(header.dtype)
        else:
            # Writable, as what numpy reads itself.
            data = bytearray(file.read(header.offset, header.size_bytes))
            if len(data) != header.size_bytes:
                raise TruncatedFileError(f"{where}: expected {header.size_bytes} data bytes, got {len(data)}.")
            flat = np.frombuffer(data, header.dtype, count)
        return flat.reshape(header.shape, order="F" if header.is_fortran else "C")
    except (ValueError, OverflowError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"{where}: expected a shape that an array can have, got {header.shape}: {error}.") from error


def parse_header(where: str, file: OpenFile) -> NpyHeader:
    """What the file says, whatever its length."""
    prefix = file.read(0, 8)
    if prefix[:6] != MAGIC[: len(prefix)]:
        raise FormatError(f"{where}: expected the magic bytes {MAGIC!r} at offset 0, got {prefix[:6]!r}.")
    if len(prefix) < 8:
        raise TruncatedFileError(f"{where}: expected 8 bytes of magic and version, got {len(prefix)} bytes in all.")
    if tuple(prefix[6:]) not in ((1, 0), (2, 0), (3, 0)):
        raise FormatError(f"{where}: expected npy version 1.0, 2.0 or 3.0 at offset 6, got {prefix[6]}.{prefix[7]}.")
    width = 2 if prefix[6] == 1 else 4
    length_bytes = file.read(8, width)
    if len(length_bytes) < width:
        raise TruncatedFileError(f"{where}: expected {width} bytes of header length, got {len(length_bytes)}.")
    length = int.from_bytes(length_bytes, "little")
    if length > _MAX_HEADER_BYTES:
        raise FormatError(f"{where}: expected a header of at most {_MAX_HEADER_BYTES} bytes, got {length}.")
    header = file.read(8 + width, length)
    if len(header) < length:
        raise TruncatedFileError(f"{where}: expected {length} header bytes at offset {8 + width}, got {len(header)}.")
    match = _HEADER.fullmatch(header.decode("latin-1"))
    if match is None or not _SHAPE.fullmatch(match["shape"]):
        raise FormatError(f"{where}: expected a header with descr, fortran_order and shape, got {header[:120]!r}.")
    shape = tuple(int(size) for size in match["shape"].split(",") if size.strip())
    if len(shape) > MAX_NDIM:
        raise FormatError(f"{where}: expected at most {MAX_NDIM} dimensions, got {len(shape)}.")
    dtype = _dtype_from_descr(where, match["descr"])
    original, offset = dtype_of_mark(match["padding"], dtype), 8 + width + length
    size_bytes, name = math.prod(shape) * dtype.itemsize, dtypes.dtype_from_numpy(dtype).name
    return NpyHeader(dtype, shape, match["order"] == "True", offset, name, original, size_bytes)


def _dtype_from_descr(where: str, descr: str) -> np.dtype[Any]:
    if descr in _FOREIGN_DESCR:
        return _FOREIGN_DESCR[descr]
    try:
        if not _DESCR.fullmatch(descr):
            raise TypeError(descr)
        dtype: np.dtype[Any] = np.dtype(descr)
        dtypes.dtype_from_numpy(dtype)
        return dtype
    except TypeError as error:
        raise UnknownDtypeError(f"{where}: expected the descr of a dtype of the table, got {descr!r}.") from error

"""Member: one tensor of a file of another tool, which may hold many; and its bytes as an array.

A member says where in the file its bytes lie and how they are stored. What is behind that place is only read when the
tensor is asked for.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from msdump.errors import FormatError
from msdump.formats.npy_reader import npy_array_in
from msdump.storage.files import OpenFile, open_file
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array
from msdump.tensors.packing import packed_size, unpack

PLAIN, NPY, BASE64_NPY, DEFLATED_NPY = "plain", "npy", "base64 npy", "deflated npy"
MAX_PARTS = 1 << 20  # tensors of one file
_HEADER_BYTES = 1 << 17  # more than the header of an npy file can have
_VIEW_BITS = (1 << 62) - 1
_DIGITS = re.compile(r"([0-9]{1,18})")


@dataclass(frozen=True, slots=True)
class Member:
    """One tensor of a file.

    name        as the file has it, its parts joined by "/"; "" where the file holds one tensor without a name
    dtype       a name of the dtype table
    offset      of the stored bytes in the file
    stored      how many they are
    encoding    PLAIN (the elements), or an npy file as it is, in base64 or deflated
    strides     in elements, where they do not follow each other
    size_bytes  of the elements
    run, iteration   numbers of the run and the iteration that it is of, where the file tells them
    run_name    name of that run
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int
    stored: int
    encoding: str = PLAIN
    strides: tuple[int, ...] | None = None
    size_bytes: int = 0
    run: int | None = None
    iteration: int | None = None
    run_name: str | None = None

    def view_id(self, place: int) -> int:
        """A number, not negative, that views of other bytes, or of the same in another way, do not have."""
        return hash((place, self.dtype, self.shape, self.strides)) & _VIEW_BITS

    def array(self, path: str) -> Array:
        """The tensor, read-only, mapped where it is stored as plain bytes; of `shape` and the dtype's numpy type.

        Raises: FormatError when the file has changed or its data is damaged; OSError.
        """
        where = f"{path}, {self.name}" if self.name else path
        with open_file(path) as file:
            if self.encoding != PLAIN:
                array = npy_array_in(where, npy_inside(where, file, self))
            else:
                array = self._elements(where, file)
        if array.shape != self.shape or dtypes.dtype_from_numpy(array.dtype).name != self.dtype:
            raise FormatError(f"{where}: expected the tensor that was there a moment ago, got another.")
        return array

    def _elements(self, where: str, file: OpenFile) -> Array:
        row = dtypes.dtype(self.dtype)
        try:
            raw = file.array(self.offset, self.stored)
        except ValueError as error:
            raise FormatError(f"{where}: expected {self.stored} bytes at {self.offset}, got fewer.") from error
        if row.bits < 8:
            return unpack(raw, row.name, self.shape)
        if not raw.size:
            return np.empty(self.shape, row.numpy)
        if self.strides is None:
            return raw.view(row.numpy).reshape(self.shape)
        # The constructor holds shape and strides against the bytes that there are.
        steps = tuple(step * row.itemsize for step in self.strides)
        return np.ndarray(self.shape, row.numpy, raw, strides=steps)


@dataclass(frozen=True, slots=True)
class Members:
    """What a file holds, in its order, and what of it could not be understood."""

    members: tuple[Member, ...]
    problems: tuple[FormatError, ...] = ()


def plain_size(dtype: str, shape: Iterable[int]) -> int:
    """Bytes of the elements, four-bit ones packed."""
    return packed_size(dtype, math.prod(shape))


def natural_key(text: str) -> tuple[str | int, ...]:
    """A key that sorts "layer.2" before "layer.10"."""
    return tuple(int(part) if index % 2 else part for index, part in enumerate(_DIGITS.split(text)))


def npy_inside(where: str, file: OpenFile, member: Member) -> OpenFile:
    """The npy file that is a member, to be read as one of its own.

    Raises: FormatError when it is damaged, or longer than what the file says of it.
    """
    if member.encoding == NPY:
        return OpenFile(member.stored, b"", lambda offset, size: file.array(member.offset + offset, size))
    content = file.read(member.offset, member.stored)
    try:
        if member.encoding == BASE64_NPY:
            data = base64.b64decode(content, validate=True)
        else:
            inflate = zlib.decompressobj(-zlib.MAX_WBITS)
            most = member.size_bytes + _HEADER_BYTES
            data = inflate.decompress(content, most)
            if inflate.unconsumed_tail:
                raise ValueError(f"more than {most} bytes")
    except (binascii.Error, zlib.error, ValueError) as error:
        raise FormatError(f"{where}: expected an npy file in the file, got damaged data: {error}.") from error
    return OpenFile(len(data), data, _reader(data))


def beginning(size: int, head: bytes) -> OpenFile:
    """An npy file of so many bytes of which the first ones are known.   Raises when read: ValueError for later ones"""

    def no_more(offset: int, count: int) -> Array:
        raise ValueError(f"a header that is longer than {len(head)} bytes")

    return OpenFile(size, head, no_more)


def _reader(data: bytes) -> Callable[[int, int], Array]:
    return lambda offset, size: np.frombuffer(data, np.uint8, size, offset)

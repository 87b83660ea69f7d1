"""Files of safetensors: u64 little-endian length of the header; the header, JSON with dtype, shape and the first and
last byte of each tensor; then the tensors.

The header has its tensors in the order of their sizes, which tells nothing, so they come sorted by name.
Source: the safetensors format; files that safetensors 0.8 wrote.
"""

from __future__ import annotations

import json
import math
from typing import Any

from msdump.errors import FormatError, TruncatedFileError
from msdump.formats.other_tools.members import Member, Members, natural_key, plain_size
from msdump.storage.files import open_file
from msdump.tensors import dtypes
from msdump.tensors.records import MAX_NDIM

_HEAD_BYTES = 8
_MAX_HEADER = 100_000_000  # of the format itself
_METADATA = "__metadata__"
_BY_NAME = {row.safetensors_name: row.name for row in dtypes.TABLE if row.safetensors_name} | {
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "F8_E8M0": "float8_e8m0",
    "F4": "float4_e2m1",
}


def read_safetensors(path: str) -> Members:
    """Tensors of a file by their names, sorted; those of a dtype that no array can have are problems.

    Raises: FormatError, TruncatedFileError when bytes are missing; OSError.
    """
    with open_file(path) as file:
        size = file.size
        length = int.from_bytes(file.read(0, _HEAD_BYTES), "little")
        if size < _HEAD_BYTES or length > min(size - _HEAD_BYTES, _MAX_HEADER):
            raise TruncatedFileError(
                f"{path}: expected a header of safetensors of at most {max(0, size - _HEAD_BYTES)} bytes, got {length}."
                " Was the file cut off?"
            )
        text = file.read(_HEAD_BYTES, length)
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path} at offset 8: expected the JSON header of safetensors, got: {error}.") from error
    if not isinstance(header, dict):
        raise FormatError(f"{path} at offset 8: expected an object of tensors, got {text[:80]!r}.")
    begin = _HEAD_BYTES + length
    found: list[Member] = []
    problems: list[FormatError] = []
    for name in sorted(header, key=natural_key):
        if name == _METADATA:
            continue
        try:
            found.append(_member(path, name, header[name], begin, size))
        except TruncatedFileError:
            raise
        except FormatError as error:
            problems.append(error)
    return Members(tuple(found), tuple(problems))


def _member(path: str, name: str, entry: Any, begin: int, size: int) -> Member:
    where = f"{path}, {name[:200]}"
    match entry:
        case {"dtype": str(dtype), "shape": list(shape), "data_offsets": [int(first), int(last)]}:
            pass
        case _:
            raise FormatError(f"{where}: expected dtype, shape and data_offsets, got {str(entry)[:120]}.")
    if len(shape) > MAX_NDIM or not all(type(length) is int and 0 <= length < 1 << 62 for length in shape):
        raise FormatError(f"{where}: expected a shape that an array can have, got {str(shape)[:120]}.")
    if dtype not in _BY_NAME:
        raise FormatError(f"{where}: expected a dtype of safetensors that an array can have, got {dtype[:40]!r}.")
    needed = plain_size(_BY_NAME[dtype], shape)
    if first < 0 or last - first != needed:
        raise FormatError(
            f"{where}: expected {needed} bytes for {dtype} {shape} ({math.prod(shape)} elements), got {last - first}."
        )
    if begin + last > size:
        raise TruncatedFileError(f"{where}: expected data up to byte {begin + last}, got a file of {size}.")
    return Member(name, _BY_NAME[dtype], tuple(shape), begin + first, needed, size_bytes=needed)

"""A tensor as the bytes of a file: npy, raw, torch, safetensors. Nothing is copied where the bytes stay as they are.

safetensors: u64 little-endian length of the header; the header, JSON padded with blanks to eight bytes, with dtype,
shape and the first and last byte of each tensor; then the tensors.   Source: the safetensors format.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from msdump.analysis.exit_codes import AnalysisError, ExitCode
from msdump.errors import UnknownDtypeError
from msdump.formats.bin import BinTensor
from msdump.formats.npy import npy_array, with_mark
from msdump.statistics.stats import raw_bytes
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array

Chunk: TypeAlias = "bytes | memoryview"

_HIFLOAT8 = "hifloat8"
# Dtypes that PyTorch has and numpy has not.
_TORCH_NATIVE = frozenset(row.name for row in dtypes.TABLE if row.is_widened and row.safetensors_name)


@dataclass(frozen=True, slots=True)
class DecodedTensor:
    """A decoded tensor.

    dtype   a name of the dtype table; `array` is of that dtype, HiFloat8 excepted, whose codes are uint8
    """

    array: Array
    dtype: str


def decode(tensor: BinTensor, is_raw: bool = False) -> DecodedTensor:
    """The tensor in the format in which it was dumped.

    is_raw   keep HiFloat8 as its codes; otherwise it becomes float32
    Edges:   plain bytes become int8, a scalar one element on one axis.
    Raises:  UnknownDtypeError, TruncatedFileError.
    """
    if tensor.dtype_number == 0:
        return DecodedTensor(tensor.array().view(np.int8), "int8")
    row = dtypes.BY_ACL_NUMBER.get(tensor.dtype_number)
    if row is None or row.numpy_type is None:
        raise UnknownDtypeError(f"{tensor.where}: expected a dtype that an array can have, got {tensor.dtype_text}.")
    try:
        array = tensor.array()
    except (ValueError, OverflowError, MemoryError) as error:
        if isinstance(error, UnknownDtypeError):
            raise
        raise AnalysisError(ExitCode.INVALID_DUMP_DATA, str(error)) from error
    shape = array.shape or (1,)
    if row.name != _HIFLOAT8:
        return DecodedTensor(array.reshape(shape), row.name)
    if is_raw:
        return DecodedTensor(tensor.payload[: math.prod(shape)].reshape(shape), _HIFLOAT8)
    return DecodedTensor(array.reshape(shape), "float32")


def npy_chunks(value: DecodedTensor) -> list[Chunk]:
    """File as numpy itself writes it; the padding of the header tells a float dtype that npy does not know."""
    array = _widened(value).array
    header = io.BytesIO()
    fields = {"descr": np.lib.format.dtype_to_descr(array.dtype), "fortran_order": False, "shape": array.shape}
    np.lib.format.write_array_header_1_0(header, fields)
    return [with_mark(header.getvalue(), value.dtype), raw_bytes(array)]


def raw_value(value: DecodedTensor) -> DecodedTensor:
    """What a raw file holds: the tensor as it was dumped, but whole bytes for elements that are less."""
    return _widened(value) if dtypes.dtype(value.dtype).bits < 8 else value


def raw_chunks(value: DecodedTensor) -> list[Chunk]:
    return [raw_bytes(value.array)]


def torch_chunks(value: DecodedTensor) -> list[Chunk]:
    """File of torch.save. torch must be there."""
    import torch

    native = value.dtype if value.dtype in _TORCH_NATIVE and hasattr(torch, value.dtype) else None
    array = np.array(value.array if native else _widened(value).array)
    if native is None:
        tensor = torch.from_numpy(array)
    else:
        code = torch.from_numpy(array.view(np.uint8 if array.itemsize == 1 else np.int16))
        tensor = code.view(getattr(torch, native))
    file = io.BytesIO()
    torch.save(tensor, file)
    return [file.getbuffer()]


def safetensors_chunks(values: Mapping[str, DecodedTensor], metadata: Mapping[str, str]) -> list[Chunk]:
    """One file with all tensors of an operator.   Raises: UnknownDtypeError for complex128."""
    described: dict[str, Any] = {"__metadata__": dict(metadata)}
    chunks: list[Chunk] = []
    offset = 0
    # Wide elements first, as the format's own writer has it, so that every tensor is aligned.
    for name, value in sorted(values.items(), key=lambda item: -item[1].array.itemsize):
        stored = value if dtypes.dtype(value.dtype).safetensors_name else _widened(value)
        dtype = dtypes.dtype(stored.dtype).safetensors_name
        if dtype is None:
            raise UnknownDtypeError(f"{name}: expected a dtype that safetensors has, got {stored.dtype}. Use npy.")
        data = raw_bytes(stored.array)
        described[name] = {
            "dtype": dtype, "shape": list(stored.array.shape), "data_offsets": [offset, offset + data.nbytes],
        }  # fmt: skip
        chunks.append(data)
        offset += data.nbytes
    header = json.dumps(described, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    return [len(header).to_bytes(8, "little"), header, *chunks]


def size_of(chunks: Sequence[Chunk]) -> int:
    return sum(memoryview(chunk).nbytes for chunk in chunks)


def _widened(value: DecodedTensor) -> DecodedTensor:
    """The value in the dtype that an npy file has for it."""
    if value.dtype == _HIFLOAT8:
        return DecodedTensor(value.array, "uint8")
    return DecodedTensor(npy_array(value.array, value.dtype), dtypes.dtype(value.dtype).npy_name)

"""Dtypes of PyTorch under the names of the dtype table, and arrays as its tensors. Imports PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from msdump.tensors import dtypes
from msdump.tensors.arrays import Array

# Names of PyTorch that are not those of the dtype table.
_TORCH_NAMES = {"float8_e8m0": "float8_e8m0fnu"}
# Dtypes that exist in both; those of less than a byte have no tensor form that computes.
NAME_BY_DTYPE: dict[Any, str] = {
    getattr(torch, _TORCH_NAMES.get(row.name, row.name)): row.name
    for row in dtypes.TABLE
    if row.bits >= 8
    and row.is_dumped
    and isinstance(getattr(torch, _TORCH_NAMES.get(row.name, row.name), None), torch.dtype)
}
_DTYPE_BY_NAME = {name: dtype for dtype, name in NAME_BY_DTYPE.items()}
# numpy has the others only through ml_dtypes; their bits cross as integers.
_INTEGER_BY_SIZE = {1: np.uint8, 2: np.int16}


def dtype_name(dtype: Any) -> str | None:
    """Name of the dtype table for a dtype of PyTorch; None where there is none (complex32, quantized)."""
    return NAME_BY_DTYPE.get(dtype)


def torch_dtype(name: str) -> Any:
    """The dtype of PyTorch for a name of the dtype table.

    Raises: KeyError where there is none.
    """
    return _DTYPE_BY_NAME[name]


def tensor_of(array: Array) -> Any:
    """The values of an array as a tensor.

    Edges:   memory is shared but for arrays that are read-only or run backwards, which PyTorch does not take.
    Raises:  KeyError for a dtype that PyTorch lacks.
    """
    if not array.flags.writeable or (array.strides and min(array.strides) < 0):
        array = np.array(array)  # an array also of a number that numpy made of one without axes
    if array.dtype.isbuiltin != 2:  # 2: a dtype of ml_dtypes; that of an array from a pickle says 0
        return torch.from_numpy(array)
    bits = torch.from_numpy(array.view(_INTEGER_BY_SIZE[array.dtype.itemsize]))
    return bits.view(torch_dtype(dtypes.dtype_from_numpy(array.dtype).name))


def array_like(tensor: Any) -> Array:
    """A new array with the values of a tensor on the CPU.   Raises: KeyError for a dtype that numpy lacks."""
    array = np.empty(tuple(tensor.shape), dtypes.dtype(NAME_BY_DTYPE[tensor.dtype]).numpy)
    tensor_of(array).copy_(tensor)
    return array

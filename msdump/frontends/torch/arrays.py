"""Tensors of PyTorch as numpy arrays: a view of the same memory wherever numpy can have one."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from msdump import dtypes
from msdump.events import Array

# Names of PyTorch that are not those of the dtype table.
_TORCH_NAMES = {"float8_e8m0": "float8_e8m0fnu"}
# Dtypes that exist in both; those of less than a byte have no tensor form that computes.
_NAME_BY_DTYPE: dict[Any, str] = {
    getattr(torch, _TORCH_NAMES.get(row.name, row.name)): row.name
    for row in dtypes.TABLE
    if row.bits >= 8 and isinstance(getattr(torch, _TORCH_NAMES.get(row.name, row.name), None), torch.dtype)
}
_DTYPE_BY_NAME = {name: dtype for dtype, name in _NAME_BY_DTYPE.items()}
# numpy has these only through ml_dtypes: the bits cross the border as integers of the same width.
_INTEGER_BY_SIZE = {1: torch.int8, 2: torch.int16}
_BORROWED: dict[Any, tuple[Any, Any]] = {
    torch_dtype: (_INTEGER_BY_SIZE[dtypes.dtype(name).itemsize], dtypes.dtype(name).numpy)
    for torch_dtype, name in _NAME_BY_DTYPE.items()
    if name == "bfloat16" or name.startswith("float8")
}


def dtype_name(dtype: Any) -> str | None:
    """Name of the dtype table for a dtype of PyTorch; None where there is none (complex32, quantized)."""
    return _NAME_BY_DTYPE.get(dtype)


def torch_dtype(name: str) -> Any:
    """The dtype of PyTorch for a name of the dtype table.

    Raises: KeyError where there is none.
    """
    return _DTYPE_BY_NAME[name]


def why_unreadable(tensor: Any) -> str:
    """Why no array can show a tensor; "" when one can. Fake tensors say the same as the real ones they stand for."""
    if tensor.layout is not torch.strided:
        return f"{str(tensor.layout).removeprefix('torch.')} tensor"
    if tensor.is_quantized:
        return "quantized tensor"
    if tensor.is_nested:
        return "nested tensor"
    if tensor.device.type == "meta":
        return "tensor on the meta device"
    if dtype_name(tensor.dtype) is None:
        return f"dtype {str(tensor.dtype).removeprefix('torch.')}"
    return ""


def array_of(tensor: Any) -> Array:
    """The values of a tensor on the CPU.

    Shapes:  any; strides stay as they are.
    Edges:   memory is shared but for tensors with a conjugate or negative bit, whose values exist nowhere yet.
    """
    if tensor.requires_grad:
        tensor = tensor.detach()
    if tensor.is_neg():
        tensor = tensor.resolve_neg()
    if tensor.is_conj():
        tensor = tensor.resolve_conj()
    borrowed = _BORROWED.get(tensor.dtype)
    if borrowed is None:
        array: Array = tensor.numpy()
        return array
    integer, numpy_dtype = borrowed
    bits: Array = tensor.view(integer).numpy()
    return bits.view(np.dtype(numpy_dtype))

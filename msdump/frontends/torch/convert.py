"""Tensors of PyTorch as numpy arrays, a view of the same memory wherever numpy can have one; and their types, with what
the symbols of a graph stand for in one run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import fx

from msdump import dtypes
from msdump.arrays import Array
from msdump.graph.types import TensorType

# Names of PyTorch that are not those of the dtype table.
_TORCH_NAMES = {"float8_e8m0": "float8_e8m0fnu"}
# Dtypes that exist in both; those of less than a byte have no tensor form that computes.
_NAME_BY_DTYPE: dict[Any, str] = {
    getattr(torch, _TORCH_NAMES.get(row.name, row.name)): row.name
    for row in dtypes.TABLE
    if row.bits >= 8
    and row.is_dumped
    and isinstance(getattr(torch, _TORCH_NAMES.get(row.name, row.name), None), torch.dtype)
}
_DTYPE_BY_NAME = {name: dtype for dtype, name in _NAME_BY_DTYPE.items()}
# numpy has these only through ml_dtypes, and no name for them in an interface: their bits cross as integers.
_INTEGER_BY_SIZE = {1: "|i1", 2: "<i2"}
# dtype of PyTorch -> (type string of numpy's array interface, dtype of the array)
_FORM_BY_DTYPE: dict[Any, tuple[str, Any]] = {
    torch_dtype: (
        _INTEGER_BY_SIZE[dtypes.dtype(name).itemsize]
        if name == "bfloat16" or name.startswith("float8")
        else np.dtype(dtypes.dtype(name).numpy).newbyteorder("=").str,
        np.dtype(dtypes.dtype(name).numpy),
    )
    for torch_dtype, name in _NAME_BY_DTYPE.items()
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


class _Memory:
    """Memory of a tensor as numpy asks for it. Arrays made of it keep the memory alive, whatever becomes of the tensor.

    Source: `Tensor.numpy` marks the storage, and PyTorch then refuses to resize it for ever; an address marks nothing.
    """

    __slots__ = ("__array_interface__", "storage")

    def __init__(self, tensor: Any, typestr: str) -> None:
        address = tensor.data_ptr()
        if not address:
            raise RuntimeError("the memory of the tensor is gone: its storage was resized to nothing")
        self.storage = tensor.untyped_storage()
        interface = {"data": (address, False), "shape": tuple(tensor.shape), "typestr": typestr, "version": 3}
        if not tensor.is_contiguous():
            size = tensor.element_size()
            interface["strides"] = tuple([size * step for step in tensor.stride()])
        self.__array_interface__ = interface


def array_of(tensor: Any) -> Array:
    """The values of a tensor on the CPU.

    Shapes:  any; strides stay as they are, but for axes of one element.
    Edges:   memory is shared but for tensors with a conjugate or negative bit, whose values exist nowhere yet. The
             array keeps the memory alive, not the tensor, and does not stop the tensor from being resized: resizing
             may free the memory, so it must not be read after the tensor's owner ran again.
    Raises:  RuntimeError for a tensor whose storage holds nothing any more; TypeError for a dtype that numpy lacks.
    """
    if tensor.is_neg():
        tensor = tensor.resolve_neg()
    if tensor.is_conj():
        tensor = tensor.resolve_conj()
    form = _FORM_BY_DTYPE.get(tensor.dtype)
    if form is None:
        raise TypeError(f"numpy has no dtype for {tensor.dtype}")
    typestr, numpy_dtype = form
    if not tensor.numel():
        return np.empty(tuple(tensor.shape), numpy_dtype)
    array: Array = np.asarray(_Memory(tensor, typestr))
    return array if array.dtype == numpy_dtype else array.view(numpy_dtype)


def bytes_of(tensor: Any) -> bytes:
    """The elements of a tensor on any device, in row-major order."""
    flat = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous().reshape(-1)
    return array_of(flat.view(torch.uint8)).tobytes() if flat.numel() else b""


UNKNOWN = -1

# Symbol -> number.
Sizes = Mapping[Any, int]


def sizes_of(placeholders: Sequence[fx.Node], args: Sequence[Any]) -> dict[Any, int]:
    """What the symbols in the types of the placeholders stand for, given the arguments of a call.

    Edges: the length of a ragged axis is no number but a name, another one for each set of offsets: it stays open.
    """
    sizes: dict[Any, int] = {}
    for node, arg in zip(placeholders, args, strict=True):
        value = node.meta.get("val")
        if isinstance(value, torch.SymInt):
            if not _is_ragged(arg):
                _bind(sizes, value, int(arg))
        elif isinstance(value, torch.Tensor) and isinstance(arg, torch.Tensor) and arg.layout is torch.strided:
            for size, actual in zip(value.shape, arg.shape, strict=False):
                _bind(sizes, size, int(actual))
    return sizes


def has_symbols(placeholders: Sequence[fx.Node]) -> bool:
    """True when some argument of a graph has no fixed shape, or is a size."""
    return any(
        isinstance(value, torch.SymInt)
        or (isinstance(value, torch.Tensor) and not all(isinstance(size, int) for size in value.shape))
        for value in (node.meta.get("val") for node in placeholders)
    )


def type_of(tensor: Any, sizes: Sizes) -> TensorType:
    """Type of a tensor that can be read.   Edges: -1 for a size that only the data decide."""
    name = dtype_name(tensor.dtype)
    assert name is not None, tensor.dtype
    return TensorType(name, tuple(_size(size, sizes) for size in tensor.shape))


def _is_ragged(size: Any) -> bool:
    """Source: PyTorch, nested tensors of layout jagged."""
    return isinstance(size, torch.SymInt) and size.node.is_nested_int()


def _bind(sizes: dict[Any, int], size: Any, actual: int) -> None:
    if isinstance(size, torch.SymInt) and size.node.expr.is_symbol:
        sizes[size.node.expr] = actual


def _size(size: Any, sizes: Sizes) -> int:
    if isinstance(size, int):
        return size
    number = size.node.expr.xreplace(sizes)
    return int(number) if isinstance(number, int) or number.is_number else UNKNOWN

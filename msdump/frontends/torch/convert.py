"""Tensors of PyTorch as numpy arrays, a view of the same memory wherever numpy can have one; and their types, with what
the symbols of a graph stand for in one run."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import fx

from msdump.graph.types import TensorType
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array
from msdump.tensors.records import MAX_NDIM
from msdump.tensors.torch_arrays import NAME_BY_DTYPE, dtype_name

# numpy has these only through ml_dtypes, and no name for them in an interface: their bits cross as integers.
_INTEGER_BY_SIZE = {1: "|i1", 2: "<i2"}
# dtype of PyTorch -> (type string of numpy's array interface, dtype of the array)
_FORM_BY_DTYPE: dict[torch.dtype, tuple[str, np.dtype[Any]]] = {
    torch_dtype: (
        _INTEGER_BY_SIZE[dtypes.dtype(name).itemsize]
        if name == "bfloat16" or name.startswith("float8")
        else np.dtype(dtypes.dtype(name).numpy).newbyteorder("=").str,
        np.dtype(dtypes.dtype(name).numpy),
    )
    for torch_dtype, name in NAME_BY_DTYPE.items()
}


TOO_DEEP = f"tensor of more than {MAX_NDIM} axes"


def why_unreadable(tensor: torch.Tensor) -> str:
    """Why no array can show a tensor; "" when one can. Fake tensors say the same as the real ones they stand for."""
    if tensor.layout is not torch.strided:
        return f"{str(tensor.layout).removeprefix('torch.')} tensor"
    if tensor.is_quantized:
        return "quantized tensor"
    if tensor.is_nested:
        return "nested tensor"
    if tensor.is_meta:
        return "tensor on the meta device"
    if tensor._is_zerotensor():
        return "tensor that a transform wraps"  # its zeros lie nowhere
    if tensor.dim() > MAX_NDIM:
        return TOO_DEEP
    if dtype_name(tensor.dtype) is None:
        return f"dtype {str(tensor.dtype).removeprefix('torch.')}"
    return ""


class _TensorMemory:
    """Memory of a tensor as an `__array_interface__`. Arrays made of it keep the memory alive without the tensor.

    Source: `Tensor.numpy` marks the storage, and PyTorch then refuses to resize it for ever; an address marks nothing.
    """

    __slots__ = ("__array_interface__", "storage")

    def __init__(self, tensor: torch.Tensor, typestr: str) -> None:
        address = tensor.data_ptr()
        if not address:
            raise RuntimeError("the memory of the tensor was freed: its storage was resized to 0")
        self.storage = tensor.untyped_storage()
        interface = {"data": (address, False), "shape": tuple(tensor.shape), "typestr": typestr, "version": 3}
        if not tensor.is_contiguous():
            size = tensor.element_size()
            interface["strides"] = tuple([size * step for step in tensor.stride()])
        self.__array_interface__ = interface


def array_of(tensor: torch.Tensor) -> Array:
    """The values of a tensor on the CPU.

    Shapes:  any; strides stay as they are, but for axes of one element.
    Edges:   memory is shared but for tensors with a conjugate or negative bit, whose values exist nowhere yet. The
             array keeps the memory alive, not the tensor, and does not stop the tensor from being resized: resizing
             may free the memory, so it must not be read after the tensor's owner ran again.
    Raises:  RuntimeError for a tensor whose storage holds nothing any more; TypeError for a dtype that numpy lacks.
    """
    if tensor.is_neg():
        tensor = tensor.detach().resolve_neg()
    if tensor.is_conj():
        tensor = tensor.detach().resolve_conj()
    form = _FORM_BY_DTYPE.get(tensor.dtype)
    if form is None:
        raise TypeError(f"numpy has no dtype for {tensor.dtype}")
    typestr, numpy_dtype = form
    if not tensor.numel():
        return np.empty(tuple(tensor.shape), numpy_dtype)
    array: Array = np.asarray(_TensorMemory(tensor, typestr))
    return array if array.dtype == numpy_dtype else array.view(numpy_dtype)


def bytes_of(tensor: torch.Tensor) -> bytes:
    """The elements of a tensor on any device, in row-major order."""
    flat = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous().reshape(-1)
    return array_of(flat.view(torch.uint8)).tobytes() if flat.numel() else b""


UNKNOWN = -1

# Symbol -> number.
Sizes = Mapping[Hashable, int]


def sizes_of(placeholders: Sequence[fx.Node], args: Sequence[Any]) -> dict[Hashable, int]:
    """What the symbols in the types of the placeholders stand for, given the arguments of a call.

    Edges: the length of a ragged axis is no number but a name, another one for each set of offsets: it stays open.
    """
    sizes: dict[Hashable, int] = {}
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


def type_of(tensor: torch.Tensor, sizes: Sizes) -> TensorType:
    """Type of a tensor that can be read.   Edges: -1 for a size that only the data decide."""
    name = dtype_name(tensor.dtype)
    assert name is not None, tensor.dtype
    return TensorType(name, tuple(_size(size, sizes) for size in tensor.shape))


def _is_ragged(size: object) -> bool:
    """Source: PyTorch, nested tensors of layout jagged."""
    return isinstance(size, torch.SymInt) and size.node.is_nested_int()


def _bind(sizes: dict[Hashable, int], size: int | torch.SymInt, actual: int) -> None:
    if isinstance(size, torch.SymInt) and size.node.expr.is_symbol:
        sizes[size.node.expr] = actual


def _size(size: int | torch.SymInt, sizes: Sizes) -> int:
    if isinstance(size, int):
        return size
    number = size.node.expr.xreplace(sizes)
    return int(number) if isinstance(number, int) or number.is_number else UNKNOWN


# -- values that need not be tensors, in forms that numpy.save can hold ------------------------------------------------

# A sparse tensor whose dense form is larger than this is not made dense.
_DENSE_LIMIT_BYTES = 1 << 30
# Dtypes that numpy does not have: their rows, and what stands for them in a file; each holds every value exactly.
_WIDENED = {
    getattr(torch, name): row
    for row in dtypes.TABLE
    for name in (row.name, f"{row.name}fnu")
    if row.is_widened and row.bits >= 8 and isinstance(getattr(torch, name, None), torch.dtype)
}
_WIDER = {torch.complex32: torch.complex64} | {dtype: getattr(torch, row.npy_name) for dtype, row in _WIDENED.items()}
_TEXT = (str, bytes, slice, dict, torch.dtype, torch.device, torch.layout, torch.memory_format)


class NoArrayError(Exception):
    """A value that no file can hold; the text is the reason."""


def array_from_value(value: object) -> Array:
    """Array of a tensor, a number, a list of numbers, or the text of anything else that has one.

    Dtypes:  bfloat16 and 8-bit floats become float32, complex32 becomes complex64, quantized numbers are scaled back.
    Edges:   a sparse tensor becomes dense; conjugate and negative bits are applied; None, a dtype or a device become
             their text, as do lists that mix such things with numbers.
    Raises:  NoArrayError for tensors without data and for objects.
    Source:  TorchAir eager data dump, what it saves for each kind; where it saves a pickle or stops, text or a dtype
             that numpy has.
    """
    if isinstance(value, torch.Tensor):
        return _array_from_tensor(value)
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return np.asarray(_number(value))
    if value is None or isinstance(value, _TEXT):
        return _text(value)
    if isinstance(value, (bool, int, float, complex)):
        array = np.asarray(value)
        return _text(value) if array.dtype.hasobject else array
    if isinstance(value, (list, tuple)):
        return _array_from_list(value)
    if isinstance(value, torch.nn.Module):
        raise NoArrayError("a nested graph, which is not shown")
    raise NoArrayError(f"an object of type {type(value).__name__} has no array form")


def original_dtype(value: object) -> str | None:
    """Name in the dtype table of a tensor whose array is of a wider dtype; None for all others."""
    row = _WIDENED.get(value.dtype) if isinstance(value, torch.Tensor) else None
    return None if row is None else row.name


def _number(value: object) -> object:
    if isinstance(value, torch.SymBool):
        return bool(value)
    if isinstance(value, torch.SymInt):
        return int(value)
    return float(value) if isinstance(value, torch.SymFloat) else value


def _text(value: object) -> Array:
    # numpy cuts NULs from the end of a text, and a surrogate has no place in a file.
    return np.asarray(str(value).encode(errors="backslashreplace").decode().rstrip("\0"))


def _array_from_list(values: list[object] | tuple[object, ...]) -> Array:
    numbers = [_number(value) for value in values]
    if all(isinstance(value, (bool, int, float, complex)) for value in numbers):
        array = np.asarray(numbers)
        return _text(numbers) if array.dtype.hasobject else array
    if all(isinstance(value, str) for value in numbers):
        return np.asarray(numbers)
    return _text(numbers)


def _array_from_tensor(tensor: torch.Tensor) -> Array:
    tensor = tensor.detach()
    if tensor.is_meta:
        raise NoArrayError("a meta tensor has no data")
    if tensor.is_nested:
        raise NoArrayError("a nested tensor has no single shape")
    try:
        if tensor.layout is not torch.strided:
            tensor = _dense(tensor)
        if tensor.is_quantized:
            tensor = tensor.dequantize()
        tensor = tensor.resolve_conj().resolve_neg()
        tensor = tensor.to(_WIDER.get(tensor.dtype, tensor.dtype))
        array = array_of(tensor.cpu())
    except (RuntimeError, TypeError, ValueError, MemoryError) as error:  # NotImplementedError is a RuntimeError
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise NoArrayError(f"a {tensor.dtype} tensor of layout {tensor.layout}: {reason}") from error
    return array


def _dense(tensor: torch.Tensor) -> torch.Tensor:
    size = tensor.numel() * tensor.element_size()
    if size > _DENSE_LIMIT_BYTES:
        raise NoArrayError(f"a {tensor.layout} tensor of shape {tuple(tensor.shape)} takes {size} bytes when dense")
    return tensor.to_dense()

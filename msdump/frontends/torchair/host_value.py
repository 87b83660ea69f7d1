"""What an operator read or wrote -> an array that `numpy.save` can hold, or the reason why there is none."""

from __future__ import annotations

import numpy as np
import torch

from msdump import dtypes
from msdump.arrays import Array
from msdump.frontends.torch.convert import array_of

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
        raise NoArrayError("a graph of its own, which is not looked into")
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

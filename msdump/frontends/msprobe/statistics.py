"""The numbers that a record tells of a tensor. They stay on the tensor's device until the file is written.

Source: mindstudio-probe 26.2: which numbers it gives for which dtype, by which functions of PyTorch.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
import torch

from msdump.frontends.msprobe.config import Slice

Number = int | float | bool | None
# Max, Min, Mean, Norm: numbers, or tensors of one element.
Numbers = tuple[torch.Tensor | Number, torch.Tensor | Number, torch.Tensor | Number, torch.Tensor | Number]
NO_NUMBERS: Numbers = (None, None, None, None)
_NARROW = ("float8", "float4")


def numbers_of(tensor: torch.Tensor, is_precise: bool) -> Numbers:
    """Numbers of a tensor that holds data.

    is_precise  without mean and norm, which round
    Edges:  none of an empty one, nor of floats of 8 and 4 bits. One element: all four are its value. bool: any and all
            as Max and Min. complex: of absolute values. Mean and norm of floats alone, but for float64.
    Raises: RuntimeError, NotImplementedError for dtypes that PyTorch cannot compare.
    """
    tensor = tensor.detach()
    if not tensor.numel() or not tensor.data_ptr() or any(name in str(tensor.dtype) for name in _NARROW):
        return NO_NUMBERS
    if tensor.is_complex():
        absolute = np.abs(tensor.cpu().resolve_conj().resolve_neg().numpy())
        return np.max(absolute).item(), np.min(absolute).item(), np.mean(absolute).item(), None
    if tensor.dtype == torch.bool:
        return torch.any(tensor), torch.all(tensor), None, None
    if not tensor.shape:
        value = tensor.clone()
        return value, value, value, value
    smallest, largest = torch.aminmax(tensor)
    if is_precise or not tensor.is_floating_point() or tensor.dtype == torch.float64:
        return largest, smallest, None, None
    return largest, smallest, torch.mean(tensor), torch.linalg.vector_norm(tensor)


def as_numbers(tensors: Sequence[torch.Tensor]) -> list[int | float | bool]:
    """Tensors without axes, of one device and one dtype, as numbers: waits for the device once."""
    return torch.stack(list(tensors)).tolist()


def crc_of(tensor: torch.Tensor) -> str:
    """CRC-32 of the elements, in their order: eight hexadecimal digits."""
    return f"{zlib.crc32(_bytes(tensor.detach().cpu()).numpy().data):08x}"


def xor_of(tensor: torch.Tensor) -> str | int | float | None:
    """All bytes as words of eight, combined by exclusive or; None for an empty tensor.

    Edges: of one element its value, as a whole number; none for a float.
    """
    tensor = tensor.detach()
    if not tensor.numel():
        return None
    if not tensor.shape and not tensor.is_complex():
        value = tensor.item()
        return _as_word(value) if isinstance(value, int) else value
    data = _bytes(tensor.cpu()).numpy()
    words = np.zeros(-(-data.size // 8) * 8, np.uint8)
    words[: data.size] = data
    return _as_word(int(np.bitwise_xor.reduce(words.view(np.uint64))))


def sliced(tensor: torch.Tensor, slices: tuple[Slice, ...]) -> torch.Tensor:
    """The part of a tensor that the configuration names; all of it where no slice fits."""
    indexes = [slice(None)] * tensor.ndim
    for part in slices:
        if part.axis < tensor.ndim and part.size in (None, tensor.shape[part.axis]):
            indexes[part.axis] = slice(part.begin, part.end)
    return tensor[tuple(indexes)] if any(index != slice(None) for index in indexes) else tensor


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.resolve_conj().resolve_neg().contiguous().reshape(-1).view(torch.uint8)


def _as_word(value: int) -> str:
    return f"0x{value & ((1 << 64) - 1):016x}"

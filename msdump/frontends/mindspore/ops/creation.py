"""New tensors."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from msdump import dtypes
from msdump.frontends.mindspore.common.dtype import DType, dtype_name, float32
from msdump.frontends.mindspore.common.dtype import int64 as int64_
from msdump.frontends.mindspore.common.tensor import Tensor

__all__ = [
    "arange",
    "eye",
    "fill",
    "full",
    "ones",
    "ones_like",
    "zeros",
    "zeros_like",
]


def zeros(size: Any, dtype: DType | None = None) -> Tensor:
    return full(size, 0, dtype=dtype or float32)


def ones(shape: Any, dtype: DType | None = None) -> Tensor:
    return full(shape, 1, dtype=dtype or float32)


def full(size: Any, fill_value: Any, *, dtype: DType | None = None) -> Tensor:
    """A constant tensor of one value."""
    wanted = dtypes.dtype(dtype_name(dtype)).numpy if dtype is not None else Tensor(fill_value).array.dtype
    return Tensor.of_array(np.full(size, fill_value, wanted))


def fill(type: DType, shape: Any, value: Any) -> Tensor:
    return full(shape, value, dtype=type)


def zeros_like(input: Tensor, *, dtype: DType | None = None) -> Tensor:
    return zeros(input.shape, dtype or input.dtype)


def ones_like(input: Tensor, *, dtype: DType | None = None) -> Tensor:
    return ones(input.shape, dtype or input.dtype)


def eye(n: int, m: int | None = None, t: DType = float32) -> Tensor:
    return Tensor.of_array(np.eye(n, m, dtype=dtypes.dtype(dtype_name(t)).numpy))


def arange(start: Any = 0, end: Any = None, step: Any = 1, *, dtype: DType | None = None) -> Tensor:
    first, last = (0, start) if end is None else (start, end)
    is_whole = builtins.all(isinstance(number, int) for number in (first, last, step))
    wanted = dtype or (int64_ if is_whole else float32)
    return Tensor.of_array(np.arange(first, last, step).astype(dtypes.dtype(dtype_name(wanted)).numpy))

"""Dtypes of torch under the numbers that GE gives them: `dtype=` of graph dumps, `dst_type` of a Cast."""

from __future__ import annotations

import functools

import torch

from msdump import dtypes
from msdump.errors import DtypeError
from msdump.frontends.torch.arrays import dtype_name, torch_dtype


@functools.cache
def ge_number(dtype: torch.dtype) -> int:
    """Raises: DtypeError for a dtype that GE does not have."""
    name = dtype_name(dtype)
    number = None if name is None else dtypes.dtype(name).ge_number
    if number is None:
        raise DtypeError(f"{dtype}: expected a dtype that GE has, got one without a number. Cast it before.")
    return number


@functools.cache
def dtype_of_number(number: int) -> torch.dtype:
    """The other way round."""
    dtype: torch.dtype = torch_dtype(dtypes.BY_GE_NUMBER[number].name)
    return dtype

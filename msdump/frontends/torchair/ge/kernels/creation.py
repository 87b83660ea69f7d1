"""Tensors made from nothing but a shape. `device`: where, for what no input says it."""

from __future__ import annotations

from typing import Any

import torch

from msdump.frontends.torchair.ge import placement
from msdump.frontends.torchair.ge.dtypes import dtype_of_number
from msdump.frontends.torchair.ge.registry import kernel


@kernel("Fill", host=("dims",))
def fill(dims: list[int], value: Any, *, device: str = "cpu") -> Any:
    """value   a tensor of one element gives the dtype, a size INT64"""
    if not isinstance(value, torch.Tensor):
        return torch.full(dims, value, device=device)
    return torch.empty(dims, dtype=value.dtype, device=device).fill_(value)


@kernel("OnesLike")
def ones_like(x: Any, *, memory_format: str = "", device: str = "") -> Any:
    return torch.ones_like(x, memory_format=placement.memory_format(memory_format), device=device or x.device)


@kernel("ZerosLike")
def zeros_like(x: Any, *, memory_format: str = "", device: str = "") -> Any:
    return torch.zeros_like(x, memory_format=placement.memory_format(memory_format), device=device or x.device)


@kernel("Empty", host=("shape",))
def empty(shape: list[int], *, dtype: int, init: bool, device: str = "cpu") -> Any:
    return torch.empty(shape, dtype=dtype_of_number(dtype), device=device)


@kernel("Range", host=("start", "limit", "delta"))
def range_(start: Any, limit: Any, delta: Any, *, dtype: int | None = None, device: str = "cpu") -> Any:
    """dtype   None: INT64"""
    kind = torch.int64 if dtype is None else dtype_of_number(dtype)
    return torch.arange(start, limit, delta, dtype=kind, device=device)


@kernel("Eye")
def eye(*, num_rows: int, num_columns: int, dtype: int, device: str = "cpu") -> Any:
    return torch.eye(num_rows, num_columns, dtype=dtype_of_number(dtype), device=device)


@kernel("LinSpace", host=("start", "stop", "num"))
def linspace(start: Any, stop: Any, num: int, *, dtype: int, device: str = "cpu") -> Any:
    return torch.linspace(start, stop, num, dtype=dtype_of_number(dtype), device=device)

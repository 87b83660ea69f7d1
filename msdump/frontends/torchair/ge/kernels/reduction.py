"""GE operators that reduce, scan, search and sort along axes. Places of elements are int32."""

from __future__ import annotations

from typing import Any

import torch

from msdump.frontends.torchair.ge.dtypes import dtype_of_number
from msdump.frontends.torchair.ge.registry import kernel


def _reduction(op_type: str, function: Any) -> None:
    @kernel(op_type, host=("axes",))
    def reduce(x: Any, axes: list[int], *, keep_dims: bool) -> Any:
        return function(x, axes, keep_dims)


for _type, _function in {
    "ReduceSum": torch.sum,
    "ReduceMean": torch.mean,
    "ReduceMax": torch.amax,
    "ReduceMin": torch.amin,
    "ReduceAny": torch.any,
    "ReduceAll": torch.all,
    "ReduceLogSumExp": torch.logsumexp,
}.items():
    _reduction(_type, _function)


@kernel("ReduceProd", host=("axes",))
def reduce_prod(x: Any, axes: list[int], *, keep_dims: bool) -> Any:
    """axes   one of them, or all"""
    return torch.prod(x, axes[0], keep_dims) if len(axes) == 1 else torch.prod(x)


@kernel("ReduceVar")
def reduce_var(x: Any, *, dim: list[int], correction: float, keepdim: bool, is_mean_out: bool) -> Any:
    """-> var, mean; an empty mean where nobody asks for it."""
    if is_mean_out:
        var, mean = torch.var_mean(x, dim, correction=correction, keepdim=keepdim)
        return var, mean
    return torch.var(x, dim, correction=correction, keepdim=keepdim), x.new_empty(0)


@kernel("LpNormV2")
def lp_norm(x: Any, *, p: float, axes: list[int], keepdim: bool, epsilon: float) -> Any:
    return torch.linalg.vector_norm(x, p, axes, keepdim)


@kernel("ArgMaxV2", host=("dimension",))
def arg_max(x: Any, dimension: int, *, dtype: int) -> Any:
    return torch.argmax(x, dimension).to(dtype_of_number(dtype))


@kernel("ArgMin", host=("dimension",))
def arg_min(x: Any, dimension: int, *, dtype: int) -> Any:
    return torch.argmin(x, dimension).to(dtype_of_number(dtype))


@kernel("ArgMaxWithValue")
def arg_max_with_value(x: Any, *, dimension: int, keep_dims: bool) -> Any:
    values, indices = torch.max(x, dimension, keep_dims)
    return indices.to(torch.int32), values


@kernel("ArgMinWithValue")
def arg_min_with_value(x: Any, *, dimension: int, keep_dims: bool) -> Any:
    values, indices = torch.min(x, dimension, keep_dims)
    return indices.to(torch.int32), values


@kernel("Cumsum", host=("axis",))
def cumsum(x: Any, axis: int, *, exclusive: bool, reverse: bool) -> Any:
    return torch.cumsum(x, axis)


@kernel("Cumprod", host=("axis",))
def cumprod(x: Any, axis: int, *, exclusive: bool, reverse: bool) -> Any:
    return torch.cumprod(x, axis)


@kernel("TopKV2", host=("k",))
def top_k(x: Any, k: int, *, sorted: bool, dim: int, largest: bool) -> Any:
    values, indices = torch.topk(x, k, dim, largest, sorted)
    return values, indices.to(torch.int32)


@kernel("Sort")
def sort(x: Any, *, axis: int, descending: bool, stable: bool) -> Any:
    values, indices = torch.sort(x, stable=stable, dim=axis, descending=descending)
    return values, indices.to(torch.int32)

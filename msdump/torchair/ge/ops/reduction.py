"""Reductions, scans, searches and sorts along axes; distances between rows. Places of elements are int32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from msdump.torchair.ge.builder import Builder, Feed, dtype_of_number, ge_number, real
from msdump.torchair.ge.graph import Dims, GeTensor, Operand, Size
from msdump.torchair.ge.registry import converter, kernel


def _reduction(op_type: str, function: Any) -> None:
    @kernel(op_type, host=("axes",))
    def reduce(x: torch.Tensor, axes: list[int], *, keep_dims: bool) -> Any:
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

_aten = torch.ops.aten


@converter("aten.sum.default", "aten.mean.default")
def reduce_all(ge: Builder, x: GeTensor, dtype: torch.dtype | None = None) -> GeTensor:
    return reduce(ge, _op_type(ge), x, None, False)


@converter("aten.sum.dim_IntList", "aten.mean.dim")
def reduce_dims(
    ge: Builder, x: GeTensor, dim: Dims, keepdim: bool = False, dtype: torch.dtype | None = None
) -> GeTensor:
    return reduce(ge, _op_type(ge), x, dim or None, keepdim)


@converter("aten.prod.default")
def prod(ge: Builder, x: GeTensor, dtype: torch.dtype | None = None) -> GeTensor:
    return reduce(ge, "ReduceProd", x, None, False)


@kernel("ReduceProd", host=("axes",))
def reduce_prod_kernel(x: torch.Tensor, axes: list[int], *, keep_dims: bool) -> torch.Tensor:
    """axes   one of them, or all"""
    return torch.prod(x, axes[0], keep_dims) if len(axes) == 1 else torch.prod(x)


@converter("aten.prod.dim_int")
def prod_dim(ge: Builder, x: GeTensor, dim: int, keepdim: bool = False, dtype: torch.dtype | None = None) -> GeTensor:
    return reduce(ge, "ReduceProd", x, dim, keepdim)


@converter("aten.max.default", "aten.min.default", "aten.amax.default", "aten.amin.default")
def extreme(ge: Builder, x: GeTensor, dim: Dims = None, keepdim: bool = False) -> GeTensor:
    return reduce(ge, _op_type(ge), x, None if dim in ([], ()) else dim, keepdim)


@converter("aten.any.default", "aten.any.dim", "aten.any.dims", "aten.all.default", "aten.all.dim", "aten.all.dims")
def truth(ge: Builder, x: GeTensor, dim: Dims = None, keepdim: bool = False) -> GeTensor:
    """Truth values of all dtypes; for UINT8 the answer is UINT8 as well."""
    inputs: dict[str, Feed] = {"x": ge.cast(x, torch.bool), "axes": _axes(x, dim)}
    return ge.cast(ge.op(_op_type(ge), inputs, {"keep_dims": keepdim}), ge.result.dtype)


@converter("aten.aminmax.default")
def aminmax(ge: Builder, x: GeTensor, dim: int | None = None, keepdim: bool = False) -> tuple[GeTensor, ...]:
    inputs: dict[str, Feed] = {"x": x, "axes": _axes(x, dim)}
    low, high = (ge.op(op_type, inputs, {"keep_dims": keepdim}) for op_type in ("ReduceMin", "ReduceMax"))
    return low, high


@converter("aten.count_nonzero.default", "aten.count_nonzero.dim_IntList")
def count_nonzero(ge: Builder, x: GeTensor, dim: Dims = None) -> GeTensor:
    counted = ge.cast(ge.cast(x, torch.bool), torch.int64)
    return ge.op("ReduceSum", {"x": counted, "axes": _axes(x, dim)}, {"keep_dims": False})


@converter("aten.logsumexp.default")
def logsumexp(ge: Builder, x: GeTensor, dim: Dims, keepdim: bool = False) -> GeTensor:
    return reduce(ge, "ReduceLogSumExp", x, dim, keepdim)


_TYPES = {
    "sum": "ReduceSum",
    "mean": "ReduceMean",
    "max": "ReduceMax",
    "min": "ReduceMin",
    "amax": "ReduceMax",
    "amin": "ReduceMin",
    "any": "ReduceAny",
    "all": "ReduceAll",
}


def _op_type(ge: Builder) -> str:
    assert ge.node is not None
    return _TYPES[str(ge.node.target).split(".")[1]]


def reduce(ge: Builder, op_type: str, x: GeTensor, dim: Dims, keepdim: bool) -> GeTensor:
    """Cast to the dtype of the result, then reduce. dim None: all axes."""
    inputs: dict[str, Feed] = {"x": ge.cast(x, ge.result.dtype), "axes": _axes(x, dim)}
    return ge.op(op_type, inputs, {"keep_dims": keepdim})


def _axes(x: GeTensor, dim: Dims) -> list[int]:
    if dim is None:
        return list(range(len(x.shape)))
    return [dim] if isinstance(dim, int) else list(dim)


@converter("aten.var.correction")
def var(
    ge: Builder, x: GeTensor, dim: Dims = None, correction: Operand | None = None, keepdim: bool = False
) -> GeTensor:
    return _var(ge, x, dim, correction, keepdim, False)[0]


@converter("aten.std.correction")
def std(
    ge: Builder, x: GeTensor, dim: Dims = None, correction: Operand | None = None, keepdim: bool = False
) -> GeTensor:
    return ge.op("Sqrt", {"x": var(ge, x, dim, correction, keepdim)})


@converter("aten.var_mean.correction")
def var_mean(
    ge: Builder, x: GeTensor, dim: Dims = None, correction: Operand | None = None, keepdim: bool = False
) -> tuple[GeTensor, ...]:
    return _var(ge, x, dim, correction, keepdim, True)


@converter("aten.std_mean.correction")
def std_mean(
    ge: Builder, x: GeTensor, dim: Dims = None, correction: Operand | None = None, keepdim: bool = False
) -> tuple[GeTensor, ...]:
    variance, mean = _var(ge, x, dim, correction, keepdim, True)
    return ge.op("Sqrt", {"x": variance}), mean


def _var(
    ge: Builder, x: GeTensor, dim: Dims, correction: Operand | None, keepdim: bool, is_mean_out: bool
) -> tuple[GeTensor, ...]:
    attrs = {
        "dim": _axes(x, dim or None),
        "correction": 1 if correction is None else correction,
        "keepdim": keepdim,
        "is_mean_out": is_mean_out,
    }
    return ge.multi_op("ReduceVar", {"x": x}, ("var", "mean"), attrs)


@kernel("ReduceVar")
def reduce_var_kernel(
    x: torch.Tensor, *, dim: list[int], correction: float, keepdim: bool, is_mean_out: bool
) -> tuple[torch.Tensor, ...]:
    """-> var, mean; an empty mean unless is_mean_out."""
    if is_mean_out:
        var, mean = torch.var_mean(x, dim, correction=correction, keepdim=keepdim)
        return var, mean
    return torch.var(x, dim, correction=correction, keepdim=keepdim), x.new_empty(0)


@converter("aten.linalg_vector_norm.default")
def vector_norm(
    ge: Builder,
    x: GeTensor,
    ord: GeTensor | float = 2,
    dim: Dims = None,
    keepdim: bool = False,
    dtype: torch.dtype | None = None,
) -> GeTensor:
    if dtype is not None:
        x = ge.cast(x, dtype)
    attrs = {"p": real(ord), "axes": _axes(x, dim or None), "keepdim": keepdim, "epsilon": 0.0}
    return ge.cast(ge.op("LpNormV2", {"x": x}, attrs), ge.result.dtype)


@kernel("LpNormV2")
def lp_norm_kernel(x: torch.Tensor, *, p: float, axes: list[int], keepdim: bool, epsilon: float) -> Any:
    return torch.linalg.vector_norm(x, p, axes, keepdim)


@converter("aten.norm.Scalar")
def norm(ge: Builder, x: GeTensor, p: GeTensor | float = 2) -> GeTensor:
    return vector_norm(ge, x, p)


@converter("aten.norm.ScalarOpt_dtype")
def norm_dtype(ge: Builder, x: GeTensor, p: GeTensor | float | None, dtype: torch.dtype) -> GeTensor:
    return vector_norm(ge, x, 2 if p is None else p, dtype=dtype)


@converter("aten.norm.ScalarOpt_dim", "aten.norm.ScalarOpt_dim_dtype")
def norm_dim(
    ge: Builder,
    x: GeTensor,
    p: GeTensor | float | None,
    dim: Dims,
    keepdim: bool = False,
    dtype: torch.dtype | None = None,
) -> GeTensor:
    return vector_norm(ge, x, 2 if p is None else p, dim, keepdim, dtype)


def _extreme_with_index(aten: str, op_type: str, function: Callable[..., tuple[torch.Tensor, torch.Tensor]]) -> None:
    @converter(aten)
    def convert(ge: Builder, x: GeTensor, dim: int, keepdim: bool = False) -> tuple[GeTensor, ...]:
        attrs = {"dimension": dim, "keep_dims": keepdim}
        indices, values = ge.multi_op(op_type, {"x": x}, ("indice", "values"), attrs)
        return values, ge.cast(indices, torch.int64)

    @kernel(op_type)
    def compute(x: torch.Tensor, *, dimension: int, keep_dims: bool) -> tuple[torch.Tensor, ...]:
        values, indices = function(x, dimension, keep_dims)
        return indices.to(torch.int32), values


_extreme_with_index("aten.max.dim", "ArgMaxWithValue", torch.max)
_extreme_with_index("aten.min.dim", "ArgMinWithValue", torch.min)


def _index_of_extreme(aten: str, op_type: str, function: Callable[..., torch.Tensor]) -> None:
    @converter(aten)
    def convert(ge: Builder, x: GeTensor, dim: int | None = None, keepdim: bool = False) -> GeTensor:
        """Without an axis it is the index in the flat tensor."""
        rank = len(x.shape)
        if dim is None:
            x = ge.op("Reshape", {"x": x, "shape": ge.sizes([-1])})
        y = ge.op(op_type, {"x": x, "dimension": 0 if dim is None else dim}, {"dtype": ge_number(torch.int64)})
        if not keepdim or rank == 0:
            return y
        return ge.op("Unsqueeze", {"x": y}, {"axes": list(range(rank)) if dim is None else [dim]})

    @kernel(op_type, host=("dimension",))
    def compute(x: torch.Tensor, dimension: int, *, dtype: int) -> torch.Tensor:
        return function(x, dimension).to(dtype_of_number(dtype))


_index_of_extreme("aten.argmax.default", "ArgMaxV2", torch.argmax)
_index_of_extreme("aten.argmin.default", "ArgMin", torch.argmin)


def _scan(aten: str, op_type: str, function: Callable[..., torch.Tensor]) -> None:
    @converter(aten)
    def convert(ge: Builder, x: GeTensor, dim: int, dtype: torch.dtype | None = None) -> GeTensor:
        inputs: dict[str, Feed] = {"x": ge.cast(x, ge.result.dtype), "axis": dim}
        return ge.op(op_type, inputs, {"exclusive": False, "reverse": False})

    @kernel(op_type, host=("axis",))
    def compute(x: torch.Tensor, axis: int, *, exclusive: bool, reverse: bool) -> torch.Tensor:
        return function(x, axis)


_scan("aten.cumsum.default", "Cumsum", torch.cumsum)
_scan("aten.cumprod.default", "Cumprod", torch.cumprod)


@converter("aten.topk.default")
def topk(
    ge: Builder, x: GeTensor, k: Size, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[GeTensor, ...]:
    attrs = {"sorted": sorted, "dim": dim, "largest": largest}
    values, indices = ge.multi_op("TopKV2", {"x": x, "k": k}, ("values", "indices"), attrs)
    return values, ge.cast(indices, torch.int64)


@kernel("TopKV2", host=("k",))
def top_k_kernel(x: torch.Tensor, k: int, *, sorted: bool, dim: int, largest: bool) -> tuple[torch.Tensor, ...]:
    values, indices = torch.topk(x, k, dim, largest, sorted)
    return values, indices.to(torch.int32)


@converter("aten.sort.default")
def sort(ge: Builder, x: GeTensor, dim: int = -1, descending: bool = False) -> tuple[GeTensor, ...]:
    return sort_stable(ge, x, stable=False, dim=dim, descending=descending)


@converter("aten.sort.stable")
def sort_stable(
    ge: Builder, x: GeTensor, stable: bool | None = None, dim: int = -1, descending: bool = False
) -> tuple[GeTensor, ...]:
    attrs = {"axis": dim, "descending": descending, "stable": bool(stable)}
    values, indices = ge.multi_op("Sort", {"x": x}, ("y1", "y2"), attrs)
    return values, ge.cast(indices, torch.int64)


@kernel("Sort")
def sort_kernel(x: torch.Tensor, *, axis: int, descending: bool, stable: bool) -> tuple[torch.Tensor, ...]:
    values, indices = torch.sort(x, stable=stable, dim=axis, descending=descending)
    return values, indices.to(torch.int32)


@converter("aten._cdist_forward.default")
def cdist(ge: Builder, x1: GeTensor, x2: GeTensor, p: float, compute_mode: int | None) -> GeTensor:
    return ge.op("Cdist", {"x1": x1, "x2": x2}, {"p": real(p)}, hints={"compute_mode": compute_mode})


@kernel("Cdist")
def cdist_kernel(x1: torch.Tensor, x2: torch.Tensor, *, p: float, compute_mode: int | None = None) -> Any:
    return _aten._cdist_forward.default(x1, x2, p, compute_mode)


@converter("aten._cdist_backward.default")
def cdist_backward(ge: Builder, grad: GeTensor, x1: GeTensor, x2: GeTensor, p: float, distances: GeTensor) -> GeTensor:
    return ge.op("CdistGrad", {"grad": grad, "x1": x1, "x2": x2, "cdist": distances}, {"p": real(p)})


@kernel("CdistGrad")
def cdist_grad_kernel(grad: torch.Tensor, x1: torch.Tensor, x2: torch.Tensor, cdist: torch.Tensor, *, p: float) -> Any:
    return _aten._cdist_backward.default(grad.contiguous(), x1, x2, p, cdist)


@converter("aten.searchsorted.Tensor")
def searchsorted(
    ge: Builder,
    sequence: GeTensor,
    values: GeTensor,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: GeTensor | None = None,
) -> GeTensor:
    attrs = {"dtype": ge_number(ge.result.dtype), "right": right or side == "right"}
    inputs = {"sorted_sequence": sequence, "values": values, "sorter": sorter}
    return ge.op("SearchSorted", inputs, attrs, output="out")


@kernel("SearchSorted")
def search_sorted_kernel(
    sorted_sequence: torch.Tensor, values: torch.Tensor, sorter: torch.Tensor | None, *, dtype: int, right: bool
) -> torch.Tensor:
    is_short = dtype_of_number(dtype) is torch.int32
    return torch.searchsorted(sorted_sequence, values, out_int32=is_short, right=right, sorter=sorter)


@converter("aten.bucketize.Tensor")
def bucketize(ge: Builder, x: GeTensor, boundaries: GeTensor, **options: Any) -> GeTensor:
    return searchsorted(ge, boundaries, x, **options)

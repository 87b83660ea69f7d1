"""What reduces, scans, searches and sorts along axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from msdump.frontends.torchair.ge.builder import Builder, real
from msdump.frontends.torchair.ge.dtypes import ge_number
from msdump.frontends.torchair.ge.graph import GeTensor
from msdump.frontends.torchair.ge.registry import converter

Dims = int | Sequence[int] | None


@converter("aten.sum.default", "aten.mean.default")
def reduce_all(ge: Builder, x: GeTensor, dtype: torch.dtype | None = None) -> GeTensor:
    return reduce(ge, _type(ge), x, None, False)


@converter("aten.sum.dim_IntList", "aten.mean.dim")
def reduce_dims(
    ge: Builder, x: GeTensor, dim: Dims, keepdim: bool = False, dtype: torch.dtype | None = None
) -> GeTensor:
    return reduce(ge, _type(ge), x, dim or None, keepdim)


@converter("aten.prod.default")
def prod(ge: Builder, x: GeTensor, dtype: torch.dtype | None = None) -> GeTensor:
    return reduce(ge, "ReduceProd", x, None, False)


@converter("aten.prod.dim_int")
def prod_dim(ge: Builder, x: GeTensor, dim: int, keepdim: bool = False, dtype: torch.dtype | None = None) -> GeTensor:
    return reduce(ge, "ReduceProd", x, dim, keepdim)


@converter("aten.max.default", "aten.min.default", "aten.amax.default", "aten.amin.default")
def extreme(ge: Builder, x: GeTensor, dim: Dims = None, keepdim: bool = False) -> GeTensor:
    return reduce(ge, _type(ge), x, None if dim in ([], ()) else dim, keepdim)


@converter("aten.any.default", "aten.any.dim", "aten.any.dims", "aten.all.default", "aten.all.dim", "aten.all.dims")
def truth(ge: Builder, x: GeTensor, dim: Dims = None, keepdim: bool = False) -> GeTensor:
    """Truth values of all dtypes; for UINT8 the answer is UINT8 as well."""
    inputs = {"x": ge.cast(x, torch.bool), "axes": _axes(x, dim)}
    return ge.cast(ge.op(_type(ge), inputs, {"keep_dims": keepdim}), ge.result.dtype)


@converter("aten.aminmax.default")
def aminmax(ge: Builder, x: GeTensor, dim: int | None = None, keepdim: bool = False) -> tuple[GeTensor, ...]:
    inputs = {"x": x, "axes": _axes(x, dim)}
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


def _type(ge: Builder) -> str:
    assert ge.node is not None
    return _TYPES[str(ge.node.target).split(".")[1]]


def reduce(ge: Builder, op_type: str, x: GeTensor, dim: Dims, keepdim: bool) -> GeTensor:
    """Cast to the dtype of the result, then reduce. dim None: all axes."""
    inputs = {"x": ge.cast(x, ge.result.dtype), "axes": _axes(x, dim)}
    return ge.op(op_type, inputs, {"keep_dims": keepdim})


def _axes(x: GeTensor, dim: Dims) -> list[int]:
    if dim is None:
        return list(range(len(x.shape)))
    return [dim] if isinstance(dim, int) else list(dim)


# -- spread -------------------------------------------------------------------------------------


@converter("aten.var.correction")
def var(ge: Builder, x: GeTensor, dim: Dims = None, correction: Any = None, keepdim: bool = False) -> GeTensor:
    return _var(ge, x, dim, correction, keepdim, False)[0]


@converter("aten.std.correction")
def std(ge: Builder, x: GeTensor, dim: Dims = None, correction: Any = None, keepdim: bool = False) -> GeTensor:
    return ge.op("Sqrt", {"x": var(ge, x, dim, correction, keepdim)})


@converter("aten.var_mean.correction")
def var_mean(
    ge: Builder, x: GeTensor, dim: Dims = None, correction: Any = None, keepdim: bool = False
) -> tuple[GeTensor, ...]:
    return _var(ge, x, dim, correction, keepdim, True)


@converter("aten.std_mean.correction")
def std_mean(
    ge: Builder, x: GeTensor, dim: Dims = None, correction: Any = None, keepdim: bool = False
) -> tuple[GeTensor, ...]:
    variance, mean = _var(ge, x, dim, correction, keepdim, True)
    return ge.op("Sqrt", {"x": variance}), mean


def _var(
    ge: Builder, x: GeTensor, dim: Dims, correction: Any, keepdim: bool, is_mean_out: bool
) -> tuple[GeTensor, ...]:
    attrs = {
        "dim": _axes(x, dim or None),
        "correction": 1 if correction is None else correction,
        "keepdim": keepdim,
        "is_mean_out": is_mean_out,
    }
    return ge.multi_op("ReduceVar", {"x": x}, ("var", "mean"), attrs)


@converter("aten.linalg_vector_norm.default")
def vector_norm(
    ge: Builder, x: GeTensor, ord: Any = 2, dim: Dims = None, keepdim: bool = False, dtype: torch.dtype | None = None
) -> GeTensor:
    if dtype is not None:
        x = ge.cast(x, dtype)
    attrs = {"p": real(ord), "axes": _axes(x, dim or None), "keepdim": keepdim, "epsilon": 0.0}
    return ge.cast(ge.op("LpNormV2", {"x": x}, attrs), ge.result.dtype)


@converter("aten.norm.Scalar")
def norm(ge: Builder, x: GeTensor, p: Any = 2) -> GeTensor:
    return vector_norm(ge, x, p)


@converter("aten.norm.ScalarOpt_dtype")
def norm_dtype(ge: Builder, x: GeTensor, p: Any, dtype: torch.dtype) -> GeTensor:
    return vector_norm(ge, x, 2 if p is None else p, dtype=dtype)


@converter("aten.norm.ScalarOpt_dim", "aten.norm.ScalarOpt_dim_dtype")
def norm_dim(
    ge: Builder, x: GeTensor, p: Any, dim: Dims, keepdim: bool = False, dtype: torch.dtype | None = None
) -> GeTensor:
    return vector_norm(ge, x, 2 if p is None else p, dim, keepdim, dtype)


# -- searching, scanning, sorting ---------------------------------------------------------------


@converter("aten.max.dim")
def max_dim(ge: Builder, x: GeTensor, dim: int, keepdim: bool = False) -> tuple[GeTensor, ...]:
    return _with_value(ge, "ArgMaxWithValue", x, dim, keepdim)


@converter("aten.min.dim")
def min_dim(ge: Builder, x: GeTensor, dim: int, keepdim: bool = False) -> tuple[GeTensor, ...]:
    return _with_value(ge, "ArgMinWithValue", x, dim, keepdim)


def _with_value(ge: Builder, op_type: str, x: GeTensor, dim: int, keepdim: bool) -> tuple[GeTensor, ...]:
    attrs = {"dimension": dim, "keep_dims": keepdim}
    indices, values = ge.multi_op(op_type, {"x": x}, ("indice", "values"), attrs)
    return values, ge.cast(indices, torch.int64)


@converter("aten.argmax.default")
def argmax(ge: Builder, x: GeTensor, dim: int | None = None, keepdim: bool = False) -> GeTensor:
    return _arg(ge, "ArgMaxV2", x, dim, keepdim)


@converter("aten.argmin.default")
def argmin(ge: Builder, x: GeTensor, dim: int | None = None, keepdim: bool = False) -> GeTensor:
    return _arg(ge, "ArgMin", x, dim, keepdim)


def _arg(ge: Builder, op_type: str, x: GeTensor, dim: int | None, keepdim: bool) -> GeTensor:
    """Without an axis it is the place in the flat tensor."""
    rank = len(x.shape)
    if dim is None:
        x = ge.op("Reshape", {"x": x, "shape": ge.sizes([-1])})
    y = ge.op(op_type, {"x": x, "dimension": 0 if dim is None else dim}, {"dtype": ge_number(torch.int64)})
    if not keepdim or rank == 0:
        return y
    return ge.op("Unsqueeze", {"x": y}, {"axes": list(range(rank)) if dim is None else [dim]})


@converter("aten.cumsum.default")
def cumsum(ge: Builder, x: GeTensor, dim: int, dtype: torch.dtype | None = None) -> GeTensor:
    return _scan(ge, "Cumsum", x, dim)


@converter("aten.cumprod.default")
def cumprod(ge: Builder, x: GeTensor, dim: int, dtype: torch.dtype | None = None) -> GeTensor:
    return _scan(ge, "Cumprod", x, dim)


def _scan(ge: Builder, op_type: str, x: GeTensor, dim: int) -> GeTensor:
    inputs = {"x": ge.cast(x, ge.result.dtype), "axis": dim}
    return ge.op(op_type, inputs, {"exclusive": False, "reverse": False})


@converter("aten.topk.default")
def topk(
    ge: Builder, x: GeTensor, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[GeTensor, ...]:
    attrs = {"sorted": sorted, "dim": dim, "largest": largest}
    values, indices = ge.multi_op("TopKV2", {"x": x, "k": k}, ("values", "indices"), attrs)
    return values, ge.cast(indices, torch.int64)


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

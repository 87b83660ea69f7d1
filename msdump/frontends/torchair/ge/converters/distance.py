"""Distances between rows, and where a value belongs in an order."""

from __future__ import annotations

from typing import Any

from msdump.frontends.torchair.ge.builder import Builder, real
from msdump.frontends.torchair.ge.dtypes import ge_number
from msdump.frontends.torchair.ge.graph import GeTensor
from msdump.frontends.torchair.ge.registry import converter


@converter("aten._cdist_forward.default")
def cdist(ge: Builder, x1: GeTensor, x2: GeTensor, p: float, compute_mode: int | None) -> GeTensor:
    return ge.op("Cdist", {"x1": x1, "x2": x2}, {"p": real(p)}, hints={"compute_mode": compute_mode})


@converter("aten._cdist_backward.default")
def cdist_backward(ge: Builder, grad: GeTensor, x1: GeTensor, x2: GeTensor, p: float, distances: GeTensor) -> GeTensor:
    return ge.op("CdistGrad", {"grad": grad, "x1": x1, "x2": x2, "cdist": distances}, {"p": real(p)})


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


@converter("aten.bucketize.Tensor")
def bucketize(ge: Builder, x: GeTensor, boundaries: GeTensor, **options: Any) -> GeTensor:
    return searchsorted(ge, boundaries, x, **options)

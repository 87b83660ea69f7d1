"""Matrix products."""

from __future__ import annotations

from typing import Any

import torch

from msdump.frontends.torchair.ge.builder import Builder
from msdump.frontends.torchair.ge.converters.complex import conj
from msdump.frontends.torchair.ge.graph import GeTensor
from msdump.frontends.torchair.ge.registry import converter

_PLAIN = {"transpose_x1": False, "transpose_x2": False}
_PLAIN_BATCH = {"adj_x1": False, "adj_x2": False}


@converter("aten.mm.default")
def mm(ge: Builder, x: GeTensor, other: GeTensor) -> GeTensor:
    return ge.op("MatMul", {"x1": x, "x2": other, "bias": None}, _PLAIN)


@converter("aten.bmm.default")
def bmm(ge: Builder, x: GeTensor, other: GeTensor) -> GeTensor:
    return ge.op("BatchMatMul", {"x1": x, "x2": other}, _PLAIN_BATCH)


@converter("aten.addmm.default")
def addmm(ge: Builder, bias: GeTensor, x: GeTensor, other: GeTensor, beta: Any = 1, alpha: Any = 1) -> GeTensor:
    product = ge.op("MatMulV2", {"x1": x, "x2": other, "bias": None, "offset_w": None}, _PLAIN)
    scaled = _scaled(ge, product, alpha)
    if beta == 0:
        return scaled
    return ge.op("Add", {"x1": scaled, "x2": bias if beta == 1 else _scaled(ge, bias, beta)})


@converter("aten.baddbmm.default")
def baddbmm(ge: Builder, bias: GeTensor, x: GeTensor, other: GeTensor, beta: Any = 1, alpha: Any = 1) -> GeTensor:
    product = _scaled(ge, ge.op("BatchMatMul", {"x1": x, "x2": other}, _PLAIN_BATCH), alpha)
    # NaN of a bias that does not count stays out, as in torch.
    if beta == 0:
        return product
    dtype = ge.result.dtype
    return ge.op("Add", {"x1": ge.cast(product, dtype), "x2": ge.cast(_scaled(ge, bias, beta), dtype)})


@converter("aten.mv.default")
def mv(ge: Builder, x: GeTensor, vector: GeTensor) -> GeTensor:
    column = ge.op("Unsqueeze", {"x": vector}, {"axes": [1]})
    return ge.op("Squeeze", {"x": mm(ge, x, column)}, {"axis": [1]})


@converter("aten.addmv.default")
def addmv(ge: Builder, bias: GeTensor, x: GeTensor, vector: GeTensor, beta: Any = 1, alpha: Any = 1) -> GeTensor:
    product = _scaled(ge, mv(ge, x, vector), alpha)
    return product if beta == 0 else ge.op("Add", {"x1": product, "x2": _scaled(ge, bias, beta)})


@converter("aten.dot.default")
def dot(ge: Builder, x: GeTensor, other: GeTensor) -> GeTensor:
    return ge.op("Dot", {"input_x": x, "input_y": other}, output="output")


@converter("aten.vdot.default")
def vdot(ge: Builder, x: GeTensor, other: GeTensor) -> GeTensor:
    return dot(ge, conj(ge, x) if x.dtype.is_complex else x, other)


def _scaled(ge: Builder, x: GeTensor, factor: Any) -> GeTensor:
    dtype: torch.dtype = x.dtype
    return ge.op("Mul", {"x1": x, "x2": ge.number(factor, dtype)})

"""Elementwise operators."""

from __future__ import annotations

from typing import Any

from msdump.frontends.torchair.ge.builder import Builder
from msdump.frontends.torchair.ge.graph import GeTensor
from msdump.frontends.torchair.ge.registry import converter


@converter("aten.add.Tensor", "aten.add.Scalar")
def add(ge: Builder, x: Any, other: Any, alpha: Any = 1) -> GeTensor:
    dtype = ge.result.dtype
    x1, x2 = ge.promoted(x, other, dtype=dtype)
    if alpha == 1:
        return ge.op("Add", {"x1": x1, "x2": x2})
    return ge.op("AxpyV2", {"x1": x1, "x2": x2, "alpha": ge.const(alpha, dtype)})


@converter("aten.sub.Tensor", "aten.sub.Scalar")
def sub(ge: Builder, x: Any, other: Any, alpha: Any = 1) -> GeTensor:
    dtype = ge.result.dtype
    x1, x2 = ge.promoted(x, other, dtype=dtype)
    if alpha != 1:
        x2 = ge.op("Mul", {"x1": x2, "x2": ge.const(alpha, dtype)})
    return ge.op("Sub", {"x1": x1, "x2": x2})


@converter("aten.mul.Tensor", "aten.mul.Scalar")
def mul(ge: Builder, x: Any, other: Any) -> GeTensor:
    dtype = ge.result.dtype
    x1, x2 = ge.promoted(x, other, dtype=dtype)
    return ge.cast(ge.op("Mul", {"x1": x1, "x2": x2}), dtype)


@converter("aten.relu.default")
def relu(ge: Builder, x: GeTensor) -> GeTensor:
    return ge.op("Relu", {"x": x})

"""Elementwise arithmetic."""

from __future__ import annotations

from typing import Any

import torch

from msdump.frontends.torchair.ge.builder import Builder, real
from msdump.frontends.torchair.ge.graph import GeTensor
from msdump.frontends.torchair.ge.registry import converter

_UNARY = {
    "acos": "Acos",
    "acosh": "Acosh",
    "asin": "Asin",
    "asinh": "Asinh",
    "atan": "Atan",
    "atanh": "Atanh",
    "ceil": "Ceil",
    "cos": "Cos",
    "cosh": "Cosh",
    "digamma": "Digamma",
    "erf": "Erf",
    "erfc": "Erfc",
    "erfinv": "Erfinv",
    "exp": "Exp",
    "expm1": "Expm1",
    "floor": "Floor",
    "lgamma": "Lgamma",
    "log": "Log",
    "log1p": "Log1p",
    "neg": "Neg",
    "reciprocal": "Reciprocal",
    "rsqrt": "Rsqrt",
    "sgn": "Sign",
    "sign": "Sign",
    "sin": "Sin",
    "sinh": "Sinh",
    "sqrt": "Sqrt",
    "tan": "Tan",
    "trunc": "Trunc",
}


def unary(aten: str, op_type: str) -> None:
    """Register an operator of one input, which is cast to the dtype of the result before."""

    @converter(f"aten.{aten}.default")
    def convert(ge: Builder, x: GeTensor) -> GeTensor:
        return ge.op(op_type, {"x": ge.cast(x, ge.result.dtype)})


for _aten, _type in _UNARY.items():
    unary(_aten, _type)


def binary(op_type: str, *overloads: str) -> None:
    """Register an operator of two inputs, which are cast to the dtype of the result before."""

    @converter(*(f"aten.{overload}" for overload in overloads))
    def convert(ge: Builder, x: Any, other: Any) -> GeTensor:
        x1, x2 = ge.promoted(x, other, dtype=ge.result.dtype)
        return ge.op(op_type, {"x1": x1, "x2": x2})


binary("RealDiv", "div.Tensor", "div.Scalar", "true_divide.Tensor")
binary("FloorDiv", "floor_divide.default", "floor_divide.Scalar")
binary("FloorMod", "remainder.Tensor", "remainder.Scalar", "remainder.Scalar_Tensor")
binary("Mod", "fmod.Tensor", "fmod.Scalar")
binary("Pow", "pow.Tensor_Tensor", "pow.Tensor_Scalar", "pow.Scalar")
binary("Maximum", "maximum.default", "max.other")
binary("Minimum", "minimum.default", "min.other")
binary("Atan2", "atan2.default")
binary("Hypot", "hypot.default")
binary("LogAddExp", "logaddexp.default")
binary("Xlogy", "xlogy.Tensor", "xlogy.Scalar_Self", "xlogy.Scalar_Other")


def common_dtype(*values: Any) -> torch.dtype:
    """Dtype in which torch compares or combines two values: tensors, numbers, sizes."""
    known = [value if not isinstance(value, GeTensor) else 0 if value.is_host else value.fake for value in values]
    return torch.result_type(*known)


@converter("aten.add.Tensor", "aten.add.Scalar")
def add(ge: Builder, x: Any, other: Any, alpha: Any = 1) -> GeTensor:
    dtype = ge.result.dtype
    x1, x2 = ge.promoted(x, other, dtype=dtype)
    if alpha == 1:
        return ge.op("Add", {"x1": x1, "x2": x2})
    return ge.op("AxpyV2", {"x1": x1, "x2": x2, "alpha": ge.number(alpha, dtype)})


@converter("aten.sub.Tensor", "aten.sub.Scalar")
def sub(ge: Builder, x: Any, other: Any, alpha: Any = 1) -> GeTensor:
    dtype = ge.result.dtype
    x1, x2 = ge.promoted(x, other, dtype=dtype)
    if alpha != 1:
        x2 = ge.op("Mul", {"x1": x2, "x2": ge.number(alpha, dtype)})
    return ge.op("Sub", {"x1": x1, "x2": x2})


@converter("aten.rsub.Tensor", "aten.rsub.Scalar")
def rsub(ge: Builder, x: Any, other: Any, alpha: Any = 1) -> GeTensor:
    dtype = ge.result.dtype
    x1, x2 = ge.promoted(other, x, dtype=dtype)
    return ge.op("Sxpy", {"x1": x1, "x2": x2, "alpha": ge.number(alpha, dtype)})


@converter("aten.mul.Tensor", "aten.mul.Scalar")
def mul(ge: Builder, x: Any, other: Any) -> GeTensor:
    dtype = ge.result.dtype
    x1, x2 = ge.promoted(x, other, dtype=dtype)
    return ge.cast(ge.op("Mul", {"x1": x1, "x2": x2}), dtype)


@converter("aten.div.Tensor_mode", "aten.div.Scalar_mode")
def div_mode(ge: Builder, x: Any, other: Any, rounding_mode: str | None = None) -> GeTensor:
    x1, x2 = ge.promoted(x, other, dtype=ge.result.dtype)
    op_type = {None: "RealDiv", "floor": "FloorDiv", "trunc": "TruncateDiv"}[rounding_mode]
    return ge.op(op_type, {"x1": x1, "x2": x2})


@converter("aten.abs.default")
def abs_(ge: Builder, x: GeTensor) -> GeTensor:
    return ge.op("ComplexAbs" if x.dtype.is_complex else "Abs", {"x": x})


@converter("aten.log2.default")
def log2(ge: Builder, x: GeTensor) -> GeTensor:
    return ge.op("Log", {"x": ge.cast(x, ge.result.dtype)}, {"base": 2.0})


@converter("aten.log10.default")
def log10(ge: Builder, x: GeTensor) -> GeTensor:
    return ge.op("Log", {"x": ge.cast(x, ge.result.dtype)}, {"base": 10.0})


@converter("aten.exp2.default")
def exp2(ge: Builder, x: GeTensor) -> GeTensor:
    dtype = ge.result.dtype
    return ge.op("Pow", {"x1": ge.const(2, dtype), "x2": ge.cast(x, dtype)})


@converter("aten.round.default", "aten.round.decimals")
def round_(ge: Builder, x: GeTensor, decimals: int = 0) -> GeTensor:
    return ge.op("Round", {"x": x}, {"decimals": decimals})


@converter("aten.clamp.default", "aten.clamp.Tensor", "aten.hardtanh.default")
def clamp(ge: Builder, x: GeTensor, min: Any = None, max: Any = None) -> GeTensor:
    dtype = ge.result.dtype
    if str(getattr(ge.node, "target", "")) == "aten.hardtanh.default":
        min, max = (-1 if min is None else min), (1 if max is None else max)
    low, high = bounds(dtype)
    bottom, top = ge.promoted(low if min is None else min, high if max is None else max, dtype=dtype)
    return ge.op("ClipByValueV2", {"x": ge.cast(x, dtype), "min": bottom, "max": top})


@converter("aten.clamp_min.default", "aten.clamp_min.Tensor")
def clamp_min(ge: Builder, x: GeTensor, min: Any) -> GeTensor:
    return clamp(ge, x, min)


@converter("aten.clamp_max.default", "aten.clamp_max.Tensor")
def clamp_max(ge: Builder, x: GeTensor, max: Any) -> GeTensor:
    return clamp(ge, x, None, max)


def bounds(dtype: torch.dtype) -> tuple[Any, Any]:
    """What stands for a bound that is missing."""
    if dtype.is_floating_point:
        return float("-inf"), float("inf")
    return torch.iinfo(dtype).min, torch.iinfo(dtype).max


@converter("aten.addcmul.default")
def addcmul(ge: Builder, x: GeTensor, tensor1: GeTensor, tensor2: GeTensor, value: Any = 1) -> GeTensor:
    return _addc(ge, "Addcmul", x, tensor1, tensor2, value)


@converter("prims.fma.default")
def fma(ge: Builder, x1: GeTensor, x2: GeTensor, x3: GeTensor) -> GeTensor:
    """x1 * x2 + x3, rounded once."""
    return ge.op("FusedMulAdd", {"x1": x1, "x2": x2, "x3": x3})


@converter("aten.addcdiv.default")
def addcdiv(ge: Builder, x: GeTensor, tensor1: GeTensor, tensor2: GeTensor, value: Any = 1) -> GeTensor:
    return _addc(ge, "Addcdiv", x, tensor1, tensor2, value)


def _addc(ge: Builder, op_type: str, x: GeTensor, tensor1: GeTensor, tensor2: GeTensor, value: Any) -> GeTensor:
    dtype = ge.result.dtype
    x, x1, x2 = ge.promoted(x, tensor1, tensor2, dtype=dtype)
    return ge.op(op_type, {"x": x, "x1": x1, "x2": x2, "value": ge.number(value, dtype)})


@converter("aten.lerp.Scalar", "aten.lerp.Tensor")
def lerp(ge: Builder, start: GeTensor, end: GeTensor, weight: Any) -> GeTensor:
    (factor,) = ge.promoted(weight, dtype=ge.result.dtype)
    return ge.op("Lerp", {"start": start, "end": end, "weight": factor})


@converter("aten.frac.default")
def frac(ge: Builder, x: GeTensor) -> GeTensor:
    return ge.op("Sub", {"x1": x, "x2": ge.op("Trunc", {"x": x})})


@converter("aten.nan_to_num.default")
def nan_to_num(ge: Builder, x: GeTensor, nan: Any = None, posinf: Any = None, neginf: Any = None) -> GeTensor:
    given = {"nan": nan, "posinf": posinf, "neginf": neginf}
    return ge.op("NanToNum", {"x": x}, {name: real(value) for name, value in given.items() if value is not None})

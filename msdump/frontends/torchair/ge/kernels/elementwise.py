"""Elementwise GE operators. Arithmetic is that of Python's operators, so that it takes sizes as well as tensors."""

from __future__ import annotations

import operator
from typing import Any

import torch

from msdump.frontends.torchair.ge.dtypes import dtype_of_number
from msdump.frontends.torchair.ge.registry import kernel

_UNARY: dict[str, Any] = {
    "Abs": torch.abs,
    "Acos": torch.acos,
    "Acosh": torch.acosh,
    "Asin": torch.asin,
    "Asinh": torch.asinh,
    "Atan": torch.atan,
    "Atanh": torch.atanh,
    "Ceil": torch.ceil,
    "ComplexAbs": torch.abs,
    "Cos": torch.cos,
    "Cosh": torch.cosh,
    "Digamma": torch.digamma,
    "Erf": torch.erf,
    "Erfc": torch.erfc,
    "Erfinv": torch.erfinv,
    "Exp": torch.exp,
    "Expm1": torch.expm1,
    "Floor": torch.floor,
    "Lgamma": torch.lgamma,
    "Log1p": torch.log1p,
    "Neg": torch.neg,
    "Reciprocal": torch.reciprocal,
    "Rsqrt": torch.rsqrt,
    "Sign": torch.sgn,
    "Sin": torch.sin,
    "Sinh": torch.sinh,
    "Sqrt": torch.sqrt,
    "Tan": torch.tan,
    "Trunc": torch.trunc,
}
_BINARY_OF_TENSORS: dict[str, Any] = {
    "Maximum": torch.maximum,
    "Minimum": torch.minimum,
    "Atan2": torch.atan2,
    "Hypot": torch.hypot,
    "LogAddExp": torch.logaddexp,
}
_BINARY: dict[str, Any] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mul": operator.mul,
    "RealDiv": operator.truediv,
    "Div": operator.truediv,
    "FloorDiv": operator.floordiv,
    "FloorMod": operator.mod,
    "Pow": operator.pow,
}

for _type, _function in (_UNARY | _BINARY_OF_TENSORS).items():
    kernel(_type)(_function)
for _type, _function in _BINARY.items():
    kernel(_type, numbers=("x1", "x2"))(_function)


@kernel("Cast")
def cast(x: Any, *, dst_type: int) -> Any:
    return torch.as_tensor(x).to(dtype_of_number(dst_type))


kernel("Mod", numbers=("x2",))(torch.fmod)
kernel("Xlogy", numbers=("x1", "x2"))(torch.xlogy)


@kernel("TruncateDiv", numbers=("x2",))
def truncate_div(x1: Any, x2: Any) -> Any:
    return torch.div(x1, x2, rounding_mode="trunc")


@kernel("AxpyV2", host=("alpha",))
def axpy(x1: Any, x2: Any, alpha: Any) -> Any:
    return torch.add(x1, x2, alpha=alpha)


@kernel("Sxpy", host=("alpha",), numbers=("x1",))
def sxpy(x1: Any, x2: Any, alpha: Any) -> Any:
    return torch.rsub(x2, x1, alpha=alpha)


@kernel("Log")
def log(x: Any, *, base: float = -1.0) -> Any:
    """base   -1.0: e"""
    if base == -1.0:
        return torch.log(x)
    return torch.log2(x) if base == 2.0 else torch.log10(x)


@kernel("Round")
def round_(x: Any, *, decimals: int = 0) -> Any:
    # Integers are round to any number of places but a negative one, and torch takes no places for them.
    return torch.round(x, decimals=decimals) if decimals else torch.round(x)


@kernel("Addcmul", host=("value",))
def addcmul(x: Any, x1: Any, x2: Any, value: Any) -> Any:
    return torch.addcmul(x, x1, x2, value=value)


@kernel("FusedMulAdd")
def fused_mul_add(x1: Any, x2: Any, x3: Any) -> Any:
    return torch.ops.prims.fma.default(x1, x2, x3)


@kernel("Addcdiv", host=("value",))
def addcdiv(x: Any, x1: Any, x2: Any, value: Any) -> Any:
    return torch.addcdiv(x, x1, x2, value=value)


@kernel("Lerp", numbers=("weight",))
def lerp(start: Any, end: Any, weight: Any) -> Any:
    return torch.lerp(start, end, weight)


@kernel("ClipByValueV2", numbers=("min", "max"))
def clip(x: Any, min: Any, max: Any) -> Any:
    """min, max: both numbers, or at least one of them a tensor that is broadcast against x."""
    if isinstance(min, torch.Tensor) != isinstance(max, torch.Tensor):
        like = {"dtype": x.dtype, "device": x.device}
        min = min if isinstance(min, torch.Tensor) else torch.full((), min, **like)
        max = max if isinstance(max, torch.Tensor) else torch.full((), max, **like)
    return torch.clamp(x, min, max)


@kernel("NanToNum")
def nan_to_num(x: Any, **finite: Any) -> Any:
    """nan, posinf, neginf: what stands for them; the dtype's bounds where nothing is said."""
    return torch.nan_to_num(x, **finite)

"""Elementwise arithmetic, and complex numbers: made of pairs, taken apart, conjugated.

The kernels are Python's operators where there are some, so that they take sizes as well as tensors.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch

from msdump.torchair.ge.builder import Builder, dtype_of_number, real
from msdump.torchair.ge.graph import GeTensor, Operand, Scalar
from msdump.torchair.ge.registry import converter, kernel
from msdump.torchair.ge.rows import row


def unary(aten: str, op_type: str, function: Callable[..., object] | None = None) -> None:
    """Register an operator of one input, which is cast to the dtype of the result before.

    function   the kernel of op_type; None where that has one of its own
    """

    @converter(f"aten.{aten}.default")
    def convert(ge: Builder, x: GeTensor) -> GeTensor:
        return ge.op(op_type, {"x": ge.cast(x, ge.result.dtype)})

    if function is not None:
        kernel(op_type)(function)


_SAME_NAMES = """
    acos acosh asin asinh atan atanh ceil cos cosh digamma erf erfc erfinv exp expm1 floor lgamma log1p neg
    reciprocal rsqrt sin sinh sqrt tan trunc
"""
for _name in _SAME_NAMES.split():
    unary(_name, _name.capitalize(), getattr(torch, _name))
unary("log", "Log")
unary("sgn", "Sign")
unary("sign", "Sign", torch.sgn)


def binary(op_type: str, *overloads: str, function: Callable[..., object], numbers: tuple[str, ...] = ()) -> None:
    """Register an operator of two inputs, which are cast to the dtype of the result before.

    function, numbers   the kernel of op_type, and those of its inputs that it takes as Python numbers; see `Kernel`
    """
    kernel(op_type, numbers=numbers)(function)

    @converter(*(f"aten.{overload}" for overload in overloads))
    def convert(ge: Builder, x: Operand, other: Operand) -> GeTensor:
        x1, x2 = ge.promoted(x, other, dtype=ge.result.dtype)
        return ge.op(op_type, {"x1": x1, "x2": x2})


_BOTH = ("x1", "x2")
binary("RealDiv", "div.Tensor", "div.Scalar", "true_divide.Tensor", function=operator.truediv, numbers=_BOTH)
binary("FloorDiv", "floor_divide.default", "floor_divide.Scalar", function=operator.floordiv, numbers=_BOTH)
binary(
    "FloorMod",
    *(f"remainder.{kind}" for kind in ("Tensor", "Scalar", "Scalar_Tensor")),
    function=operator.mod,
    numbers=_BOTH,
)
binary("Mod", "fmod.Tensor", "fmod.Scalar", function=torch.fmod, numbers=("x2",))
binary("Pow", "pow.Tensor_Tensor", "pow.Tensor_Scalar", "pow.Scalar", function=operator.pow, numbers=_BOTH)
binary("Maximum", "maximum.default", "max.other", function=torch.maximum)
binary("Minimum", "minimum.default", "min.other", function=torch.minimum)
binary("Atan2", "atan2.default", function=torch.atan2)
binary("Hypot", "hypot.default", function=torch.hypot)
binary("LogAddExp", "logaddexp.default", function=torch.logaddexp)
binary(
    "Xlogy",
    *(f"xlogy.{kind}" for kind in ("Tensor", "Scalar_Self", "Scalar_Other")),
    function=torch.xlogy,
    numbers=_BOTH,
)

for _type, _function in {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mul": operator.mul,
    "Div": operator.truediv,
}.items():
    kernel(_type, numbers=_BOTH)(_function)
kernel("Abs", "ComplexAbs")(torch.abs)


def common_dtype(*values: Operand) -> torch.dtype:
    """Dtype in which torch compares or combines two values: tensors, numbers, sizes."""
    operands = [value if not isinstance(value, GeTensor) else 0 if value.is_host else value.fake for value in values]
    return torch.result_type(*operands)


@converter("aten.add.Tensor", "aten.add.Scalar")
def add(ge: Builder, x: GeTensor, other: Operand, alpha: Operand = 1) -> GeTensor:
    dtype = ge.result.dtype
    x1, x2 = ge.promoted(x, other, dtype=dtype)
    if alpha == 1:
        return ge.op("Add", {"x1": x1, "x2": x2})
    return ge.op("AxpyV2", {"x1": x1, "x2": x2, "alpha": ge.number(alpha, dtype)})


@kernel("AxpyV2", host=("alpha",))
def axpy_kernel(x1: torch.Tensor, x2: torch.Tensor, alpha: Scalar) -> torch.Tensor:
    return torch.add(x1, x2, alpha=alpha)


@converter("aten.sub.Tensor", "aten.sub.Scalar")
def sub(ge: Builder, x: GeTensor, other: Operand, alpha: Operand = 1) -> GeTensor:
    dtype = ge.result.dtype
    x1, x2 = ge.promoted(x, other, dtype=dtype)
    if alpha != 1:
        x2 = ge.op("Mul", {"x1": x2, "x2": ge.number(alpha, dtype)})
    return ge.op("Sub", {"x1": x1, "x2": x2})


@converter("aten.rsub.Tensor", "aten.rsub.Scalar")
def rsub(ge: Builder, x: GeTensor, other: Operand, alpha: Operand = 1) -> GeTensor:
    dtype = ge.result.dtype
    x1, x2 = ge.promoted(other, x, dtype=dtype)
    return ge.op("Sxpy", {"x1": x1, "x2": x2, "alpha": ge.number(alpha, dtype)})


@kernel("Sxpy", host=("alpha",), numbers=("x1",))
def sxpy_kernel(x1: torch.Tensor | Scalar, x2: torch.Tensor, alpha: Scalar) -> torch.Tensor:
    return torch.rsub(x2, x1, alpha=alpha)


@converter("aten.mul.Tensor", "aten.mul.Scalar")
def mul(ge: Builder, x: GeTensor, other: Operand) -> GeTensor:
    dtype = ge.result.dtype
    x1, x2 = ge.promoted(x, other, dtype=dtype)
    return ge.cast(ge.op("Mul", {"x1": x1, "x2": x2}), dtype)


@converter("aten.div.Tensor_mode", "aten.div.Scalar_mode")
def div_mode(ge: Builder, x: GeTensor, other: Operand, rounding_mode: str | None = None) -> GeTensor:
    x1, x2 = ge.promoted(x, other, dtype=ge.result.dtype)
    op_type = {None: "RealDiv", "floor": "FloorDiv", "trunc": "TruncateDiv"}[rounding_mode]
    return ge.op(op_type, {"x1": x1, "x2": x2})


@kernel("TruncateDiv", numbers=("x2",))
def truncate_div_kernel(x1: torch.Tensor, x2: torch.Tensor | float) -> torch.Tensor:
    return torch.div(x1, x2, rounding_mode="trunc")


@converter("aten.abs.default")
def abs_(ge: Builder, x: GeTensor) -> GeTensor:
    return ge.op("ComplexAbs" if x.dtype.is_complex else "Abs", {"x": x})


@converter("aten.log2.default")
def log2(ge: Builder, x: GeTensor) -> GeTensor:
    return ge.op("Log", {"x": ge.cast(x, ge.result.dtype)}, {"base": 2.0})


@kernel("Log")
def log_kernel(x: torch.Tensor, *, base: float = -1.0) -> torch.Tensor:
    """base   -1.0: e"""
    if base == -1.0:
        return torch.log(x)
    return torch.log2(x) if base == 2.0 else torch.log10(x)


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


@kernel("Round")
def round_kernel(x: torch.Tensor, *, decimals: int = 0) -> torch.Tensor:
    # Integers are round to any number of places but a negative one, and torch takes no places for them.
    return torch.round(x, decimals=decimals) if decimals else torch.round(x)


@converter("aten.clamp.default", "aten.clamp.Tensor", "aten.hardtanh.default")
def clamp(ge: Builder, x: GeTensor, min: Operand | None = None, max: Operand | None = None) -> GeTensor:
    dtype = ge.result.dtype
    if str(getattr(ge.node, "target", "")) == "aten.hardtanh.default":
        min, max = (-1 if min is None else min), (1 if max is None else max)
    low, high = bounds(dtype)
    bottom, top = ge.promoted(low if min is None else min, high if max is None else max, dtype=dtype)
    return ge.op("ClipByValueV2", {"x": ge.cast(x, dtype), "min": bottom, "max": top})


@kernel("ClipByValueV2", numbers=("min", "max"))
def clip_kernel(x: torch.Tensor, min: Any, max: Any) -> torch.Tensor:
    """min, max: both numbers, or at least one of them a tensor that is broadcast against x."""
    if isinstance(min, torch.Tensor) != isinstance(max, torch.Tensor):
        like: dict[str, Any] = {"dtype": x.dtype, "device": x.device}
        min = min if isinstance(min, torch.Tensor) else torch.full((), min, **like)
        max = max if isinstance(max, torch.Tensor) else torch.full((), max, **like)
    return torch.clamp(x, min, max)


@converter("aten.clamp_min.default", "aten.clamp_min.Tensor")
def clamp_min(ge: Builder, x: GeTensor, min: Operand) -> GeTensor:
    return clamp(ge, x, min)


@converter("aten.clamp_max.default", "aten.clamp_max.Tensor")
def clamp_max(ge: Builder, x: GeTensor, max: Operand) -> GeTensor:
    return clamp(ge, x, None, max)


def bounds(dtype: torch.dtype) -> tuple[float, float]:
    """What stands for a bound that is missing."""
    if dtype.is_floating_point:
        return float("-inf"), float("inf")
    return torch.iinfo(dtype).min, torch.iinfo(dtype).max


def _addc(name: str, op_type: str, function: Callable[..., torch.Tensor]) -> None:
    @converter(f"aten.{name}.default")
    def convert(ge: Builder, x: GeTensor, tensor1: GeTensor, tensor2: GeTensor, value: Operand = 1) -> GeTensor:
        dtype = ge.result.dtype
        x, x1, x2 = ge.promoted(x, tensor1, tensor2, dtype=dtype)
        return ge.op(op_type, {"x": x, "x1": x1, "x2": x2, "value": ge.number(value, dtype)})

    @kernel(op_type, host=("value",))
    def compute(x: torch.Tensor, x1: torch.Tensor, x2: torch.Tensor, value: Scalar) -> torch.Tensor:
        return function(x, x1, x2, value=value)


_addc("addcmul", "Addcmul", torch.addcmul)
_addc("addcdiv", "Addcdiv", torch.addcdiv)
row("prims.fma.default", "FusedMulAdd", "x1", "x2", "x3")
complex_of = row("aten.complex.default", "Complex", "real", "imag", output="out")


@converter("aten.lerp.Scalar", "aten.lerp.Tensor")
def lerp(ge: Builder, start: GeTensor, end: GeTensor, weight: Operand) -> GeTensor:
    (factor,) = ge.promoted(weight, dtype=ge.result.dtype)
    return ge.op("Lerp", {"start": start, "end": end, "weight": factor})


kernel("Lerp", numbers=("weight",))(torch.lerp)


@converter("aten.frac.default")
def frac(ge: Builder, x: GeTensor) -> GeTensor:
    return ge.op("Sub", {"x1": x, "x2": ge.op("Trunc", {"x": x})})


@converter("aten.nan_to_num.default")
def nan_to_num(
    ge: Builder,
    x: GeTensor,
    nan: GeTensor | float | None = None,
    posinf: GeTensor | float | None = None,
    neginf: GeTensor | float | None = None,
) -> GeTensor:
    replacements = {"nan": nan, "posinf": posinf, "neginf": neginf}
    return ge.op("NanToNum", {"x": x}, {name: real(value) for name, value in replacements.items() if value is not None})


@kernel("NanToNum")
def nan_to_num_kernel(x: torch.Tensor, **finite: Any) -> torch.Tensor:
    """nan, posinf, neginf: their replacements; by default the dtype's bounds."""
    return torch.nan_to_num(x, **finite)


@converter("aten.polar.default")
def polar(ge: Builder, length: GeTensor, angle: GeTensor) -> GeTensor:
    real, imag = (ge.op("Mul", {"x1": length, "x2": ge.op(part, {"x": angle})}) for part in ("Cos", "Sin"))
    return complex_of(ge, real, imag)


@converter("aten.view_as_real.default", "aten.view_as_real_copy.default")
def view_as_real(ge: Builder, x: GeTensor) -> GeTensor:
    """Real and imaginary part are the last axis. A copy, where ATen looks at the same memory."""
    parts = {"x0": ge.op("Real", {"input": x}, output="output"), "x1": ge.op("Imag", {"input": x}, output="output")}
    return ge.op("Pack", parts, {"N": 2, "axis": len(x.shape)})


@kernel("Real")
def real_kernel(x: torch.Tensor) -> torch.Tensor:
    return torch.real(x).clone()


@kernel("Imag")
def imag_kernel(x: torch.Tensor) -> torch.Tensor:
    return torch.imag(x).resolve_neg().clone()


@converter("aten.view_as_complex.default", "aten.view_as_complex_copy.default")
def view_as_complex(ge: Builder, x: GeTensor) -> GeTensor:
    real, imag = ge.multi_op("Unpack", {"x": x}, ("y0", "y1"), {"num": 2, "axis": len(x.shape) - 1})
    return complex_of(ge, real, imag)


@converter("aten._conj.default", "aten.conj_physical.default", "aten._conj_physical.default")
def conj(ge: Builder, x: GeTensor) -> GeTensor:
    """Of real numbers: the tensor under another name. GE has no bit that says that a tensor is to be conjugated."""
    if not x.dtype.is_complex:
        return ge.op("Identity", {"x": x}, hints={"is_alias": True})
    return ge.op("Conj", {"input": x}, output="output")


kernel("Conj")(torch.conj_physical)


@converter("aten._neg_view.default")
def neg_view(ge: Builder, x: GeTensor) -> GeTensor:
    return ge.op("Neg", {"x": x})


@kernel("Cast")
def cast_kernel(x: torch.Tensor | Scalar, *, dst_type: int) -> torch.Tensor:
    return torch.as_tensor(x).to(dtype_of_number(dst_type))

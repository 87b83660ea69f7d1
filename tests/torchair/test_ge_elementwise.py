"""Arithmetic, comparison and choice as GE operators: spelled as TorchAir spells them, equal to eager."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from tests.torchair.ge_calls import check  # noqa: E402

aten = torch.ops.aten

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
DTYPES = (*FLOATS, torch.int64, torch.int32, torch.uint8, torch.bool)
SHAPES = ((), (3,), (2, 3), (0, 3), (2, 1, 3))

UNARY = {
    "neg": "Neg",
    "abs": "Abs",
    "exp": "Exp",
    "log": "Log",
    "sqrt": "Sqrt",
    "rsqrt": "Rsqrt",
    "sin": "Sin",
    "cos": "Cos",
    "tan": "Tan",
    "sinh": "Sinh",
    "cosh": "Cosh",
    "asin": "Asin",
    "acos": "Acos",
    "atan": "Atan",
    "asinh": "Asinh",
    "acosh": "Acosh",
    "atanh": "Atanh",
    "erf": "Erf",
    "erfc": "Erfc",
    "erfinv": "Erfinv",
    "lgamma": "Lgamma",
    "digamma": "Digamma",
    "log1p": "Log1p",
    "log2": "Log",
    "log10": "Log",
    "expm1": "Expm1",
    "reciprocal": "Reciprocal",
    "round": "Round",
    "floor": "Floor",
    "ceil": "Ceil",
    "trunc": "Trunc",
    "sign": "Sign",
    "isnan": "IsNan",
    "isinf": "IsInf",
}
BINARY = {
    "add.Tensor": "Add",
    "sub.Tensor": "Sub",
    "mul.Tensor": "Mul",
    "div.Tensor": "RealDiv",
    "maximum.default": "Maximum",
    "minimum.default": "Minimum",
    "atan2.default": "Atan2",
    "eq.Tensor": "Equal",
    "ne.Tensor": "NotEqual",
    "lt.Tensor": "Less",
    "le.Tensor": "LessEqual",
    "gt.Tensor": "Greater",
    "ge.Tensor": "GreaterEqual",
    "logical_and.default": "LogicalAnd",
    "logical_or.default": "LogicalOr",
    "logical_xor.default": "LogicalXor",
}
# Not of truth values, and by nothing that is zero.
DIVISIONS = {"floor_divide.default": "FloorDiv", "remainder.Tensor": "FloorMod", "fmod.Tensor": "Mod"}


def overload(name: str) -> Any:
    packet, kind = name.split(".")
    return getattr(getattr(aten, packet), kind)


def values(shape: tuple[int, ...], dtype: Any, low: float = -3, high: float = 3) -> Any:
    """Numbers, NaN and infinities among those of floating point."""
    if dtype == torch.bool:
        return torch.rand(shape) > 0.5
    if not dtype.is_floating_point:
        return torch.randint(max(int(low), 0) if dtype == torch.uint8 else int(low), int(high) + 1, shape).to(dtype)
    found = torch.rand(shape) * (high - low) + low
    return found.where(torch.rand(shape) < 0.9, torch.tensor(float("nan"))).to(dtype)


@pytest.mark.parametrize("name", UNARY)
def test_unary_operators(name: str) -> None:
    for shape, dtype in (((), torch.float32), ((2, 3), torch.bfloat16)):
        check(overload(f"{name}.default"), values(shape, dtype), spelled=f"{UNARY[name]}(x)")


@pytest.mark.parametrize("name", ["exp", "sqrt", "sin", "tanh", "sigmoid", "erf", "reciprocal"])
def test_integers_are_cast_before_a_function_of_reals(name: str) -> None:
    check(overload(f"{name}.default"), values((3,), torch.int32), spelled=f"Cast(x) {name.capitalize()}(x)")


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(sorted(BINARY)),
    st.sampled_from(DTYPES),
    st.sampled_from(DTYPES),
    st.sampled_from(SHAPES),
    st.data(),
)
def test_binary_operators_promote_as_torch_does(
    name: str, first: Any, second: Any, shape: tuple[int, ...], data: Any
) -> None:
    if name == "sub.Tensor" and torch.bool in (first, second):
        return
    other = data.draw(st.sampled_from([shape, (), shape[-1:]]))
    check(overload(name), values(shape, first), values(other, second))


@pytest.mark.parametrize("name", BINARY)
def test_binary_operators_of_one_dtype_are_one_operator(name: str) -> None:
    dtype = torch.bool if name.startswith("logical") else torch.float32
    check(overload(name), values((2, 3), dtype), values((3,), dtype), spelled=f"{BINARY[name]}(x1,x2)")


@pytest.mark.parametrize("name", DIVISIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.int32, torch.uint8], ids=str)
def test_divisions(name: str, dtype: Any) -> None:
    dividend, divisor = values((4, 5), dtype, -9, 9), values((5,), dtype, 1, 4)
    check(overload(name), dividend, divisor, spelled=f"{DIVISIONS[name]}(x1,x2)")
    for rounding, op_type in (("floor", "FloorDiv"), ("trunc", "TruncateDiv")):
        check(aten.div.Tensor_mode, dividend, divisor, rounding_mode=rounding, spelled=f"{op_type}(x1,x2)")
    if dtype != torch.uint8:
        check(overload(name), dividend, -divisor)


def test_integers_are_cast_before_a_true_division() -> None:
    x = torch.tensor([1, 2, -7])
    check(aten.div.Tensor, x, x, spelled="Cast(x) Cast(x) RealDiv(x1,x2)")
    check(aten.div.Scalar, x, 2, spelled="Cast(x) RealDiv(x1,x2)")
    check(aten.div.Scalar_mode, x, 2, rounding_mode=None, spelled="Cast(x) RealDiv(x1,x2)")


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int64], ids=str)
def test_numbers_are_constants(dtype: Any) -> None:
    x = values((2, 3), dtype)
    check(aten.add.Tensor, x, 3, spelled="Add(x1,x2)")
    check(aten.add.Tensor, x, x, alpha=3, spelled="AxpyV2(x1,x2,alpha)")
    check(aten.sub.Tensor, x, x, alpha=3, spelled="Mul(x1,x2) Sub(x1,x2)")
    check(aten.rsub.Scalar, x, 3, spelled="Sxpy(x1,x2,alpha)")
    check(aten.rsub.Scalar, x, 3, 2, spelled="Sxpy(x1,x2,alpha)")
    check(aten.mul.Tensor, x, 3, spelled="Mul(x1,x2)")
    check(aten.pow.Tensor_Scalar, x, 2, spelled="Pow(x1,x2)")
    check(aten.pow.Scalar, 2, x.abs(), spelled="Pow(x1,x2)")
    check(aten.gt.Scalar, x, 1, spelled="Greater(x1,x2)")
    check(aten.remainder.Scalar, x, 2, spelled="FloorMod(x1,x2)")
    check(aten.remainder.Scalar_Tensor, 7, x.abs() + 1, spelled="FloorMod(x1,x2)")
    check(aten.fmod.Scalar, x, 2, spelled="Mod(x1,x2)")


def test_a_number_with_a_point_makes_floats_of_integers() -> None:
    x = torch.arange(4)
    check(aten.add.Tensor, x, 0.5, spelled="Cast(x) Add(x1,x2)")
    check(aten.lt.Scalar, x, 1.5, spelled="Cast(x) Less(x1,x2)")
    check(aten.clamp.default, x, 0.5, 1.5, spelled="Cast(x) ClipByValueV2(x,min,max)")


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_numbers_keep_all_their_digits_beside_short_floats(dtype: Any) -> None:
    """0.1 is not a bfloat16; torch reckons with the number all the same, and so does the graph: bit for bit."""
    x = torch.randn(64).to(dtype)
    for name in ("add.Tensor", "sub.Tensor", "mul.Tensor", "div.Tensor"):
        check(overload(name), x, 0.1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.int32], ids=str)
def test_clamps_fill_a_missing_bound(dtype: Any) -> None:
    x, bound = values((2, 3), dtype), values((3,), dtype)
    spelled = "ClipByValueV2(x,min,max)"
    check(aten.clamp.default, x, -1, 2, spelled=spelled)
    check(aten.clamp.default, x, None, 1, spelled=spelled)
    check(aten.clamp_min.default, x, 0, spelled=spelled)
    check(aten.clamp_max.default, x, 0, spelled=spelled)
    check(aten.clamp.Tensor, x, bound, None, spelled=spelled)
    check(aten.clamp.Tensor, x, bound, bound + 1, spelled=spelled)
    check(aten.clamp_max.Tensor, x, bound, spelled=spelled)
    check(aten.hardtanh.default, x, spelled=spelled)
    check(aten.hardtanh.default, x, 0, 2, spelled=spelled)


@pytest.mark.parametrize("name", ["and", "or", "xor"])
def test_bitwise_operators_of_truth_values_are_logical_ones(name: str) -> None:
    x, y = torch.randint(-9, 9, (4,)), torch.randint(-9, 9, (4,))
    check(overload(f"bitwise_{name}.Tensor"), x, y, spelled=f"Bitwise{name.capitalize()}(x1,x2)")
    check(overload(f"bitwise_{name}.Scalar"), x, 6, spelled=f"Bitwise{name.capitalize()}(x1,x2)")
    check(overload(f"bitwise_{name}.Tensor"), x > 0, y > 0, spelled=f"Logical{name.capitalize()}(x1,x2)")
    check(overload(f"bitwise_{name}.Tensor"), x, y > 0, spelled=f"Cast(x) Bitwise{name.capitalize()}(x1,x2)")
    check(aten.bitwise_not.default, x, spelled="Invert(x)")
    check(aten.bitwise_not.default, x > 0, spelled="LogicalNot(x)")
    check(aten.logical_not.default, x, spelled="Cast(x) LogicalNot(x)")
    check(aten.bitwise_left_shift.Tensor, x.abs(), y.abs(), spelled="LeftShift(x1,x2)")
    check(aten.bitwise_right_shift.Tensor_Scalar, x, 2, spelled="RightShift(x1,x2)")


def test_choice() -> None:
    x, y, mask = torch.randn(2, 3), torch.randn(3), torch.rand(2, 3) > 0.5
    check(aten.where.self, mask, x, y, spelled="SelectV2(condition,then,else)")
    check(aten.where.self, mask, x, y.double(), spelled="Cast(x) SelectV2(condition,then,else)")
    check(aten.where.ScalarOther, mask, x, 2.5, spelled="SelectV2(condition,then,else)")
    check(aten.where.ScalarSelf, mask, 2.5, x, spelled="SelectV2(condition,then,else)")
    check(aten.masked_fill.Scalar, x, mask, float("-inf"), spelled="MaskedFill(x,mask,value)")
    check(aten.masked_fill.Tensor, x, mask, torch.tensor(2), spelled="Cast(x) MaskedFill(x,mask,value)")
    check(aten.isfinite.default, x / (x > 0), spelled="IsFinite(x)")


def test_operators_of_three() -> None:
    x, y, z = torch.randn(2, 3), torch.randn(3), torch.rand(2, 1) + 0.5
    check(aten.addcmul.default, x, y, z, spelled="Addcmul(x,x1,x2,value)")
    check(aten.addcmul.default, x, y, z, value=0.1, spelled="Addcmul(x,x1,x2,value)")
    check(aten.addcdiv.default, x, y, z, value=2, spelled="Addcdiv(x,x1,x2,value)")
    check(aten.lerp.Scalar, x, x + 1, 0.3, spelled="Lerp(start,end,weight)")
    check(aten.lerp.Tensor, x, x + 1, torch.rand(2, 3), spelled="Lerp(start,end,weight)")


def test_rounding_and_powers() -> None:
    x = torch.randn(4) * 100
    check(aten.round.decimals, x, decimals=1, spelled="Round(x)")
    check(aten.round.decimals, x, decimals=-1, spelled="Round(x)")
    check(aten.round.default, torch.arange(3), spelled="Round(x)")
    check(aten.exp2.default, torch.randn(4), spelled="Pow(x1,x2)")
    check(aten.pow.Tensor_Tensor, x.abs(), torch.randn(4), spelled="Pow(x1,x2)")
    check(aten.pow.Tensor_Scalar, torch.arange(4), 0.5, spelled="Cast(x) Pow(x1,x2)")


def test_complex_numbers() -> None:
    x = torch.complex(torch.randn(3), torch.randn(3))
    check(aten.abs.default, x, spelled="ComplexAbs(x)")
    check(aten.mul.Tensor, x, 2, spelled="Mul(x1,x2)")
    check(aten.mul.Tensor, x, torch.randn(3), spelled="Cast(x) Mul(x1,x2)")
    check(aten.exp.default, x, spelled="Exp(x)")
    check(aten.sgn.default, x, spelled="Sign(x)")


def test_operators_with_a_value_for_the_odd_case() -> None:
    x = torch.tensor([0.0, -2.5, float("nan"), float("inf"), float("-inf")])
    check(aten.nan_to_num.default, x, spelled="NanToNum(x)")
    check(aten.nan_to_num.default, x, 1.5, 2, -3, spelled="NanToNum(x)")
    check(aten.xlogy.Tensor, x, x.abs(), spelled="Xlogy(x1,x2)")
    check(aten.xlogy.Scalar_Self, 0.0, x, spelled="Xlogy(x1,x2)")
    check(aten.hypot.default, x, x, spelled="Hypot(x1,x2)")
    check(aten.logaddexp.default, x[:2], x[:2], spelled="LogAddExp(x1,x2)")
    check(aten.frac.default, x[:2], spelled="Trunc(x) Sub(x1,x2)")

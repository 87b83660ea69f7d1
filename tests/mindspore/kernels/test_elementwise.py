from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.errors import GraphError
from msdump.graph.primitive import definition_of
from msdump.graph.types import TensorType
from msdump.tensors.arrays import Array
from tests.mindspore.kernels.arrays import FLOAT_NAMES, INT_NAMES, any_array, assert_same, pairs
from tests.mindspore.kernels.interpreter import run_op

quick = settings(max_examples=25, deadline=None)

BINARY: dict[str, Callable[..., Any]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Maximum": np.maximum,
    "Minimum": np.minimum,
    "Mod": np.fmod,
    "FloorMod": np.remainder,
    "Equal": np.equal,
    "NotEqual": np.not_equal,
    "Greater": np.greater,
    "GreaterEqual": np.greater_equal,
    "Less": np.less,
    "LessEqual": np.less_equal,
}


@pytest.mark.parametrize("op_type", sorted(BINARY))
@given(data=st.data())
@quick
def test_binary_is_numpy(op_type: str, data: st.DataObject) -> None:
    x, y = data.draw(pairs([*FLOAT_NAMES, *INT_NAMES]))
    with np.errstate(all="ignore"):
        expected = np.asarray(BINARY[op_type](x, y))
    assert_same(run_op(op_type, [x, y])[0], expected)


@pytest.mark.parametrize("op_type", ["Div", "RealDiv"])
@given(pair=pairs(FLOAT_NAMES))
@quick
def test_float_division_is_numpy(op_type: str, pair: tuple[Array, Array]) -> None:
    with np.errstate(all="ignore"):
        assert_same(run_op(op_type, pair)[0], np.asarray(np.true_divide(*pair)))


def integer_quotient(x: int, y: int, is_floor: bool, limits: Any) -> int:
    """What C division, or its rounded down sibling, says; by zero the end of the range."""
    if y == 0:
        return 0 if x == 0 else int(limits.max if x > 0 else limits.min)
    quotient = x // y if is_floor else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
    return int(limits.min) if quotient > limits.max else quotient  # min / -1 wraps


@pytest.mark.parametrize("op_type", ["Div", "RealDiv", "FloorDiv"])
@given(pair=pairs(INT_NAMES))
@quick
def test_integer_division(op_type: str, pair: tuple[Array, Array]) -> None:
    x, y = np.broadcast_arrays(*pair)
    found = run_op(op_type, pair)[0]
    limits = np.iinfo(found.dtype)
    expected = [
        integer_quotient(int(a), int(b), op_type == "FloorDiv", limits) for a, b in zip(x.flat, y.flat, strict=True)
    ]
    assert found.dtype == pair[0].dtype and found.reshape(-1).tolist() == expected


def test_division_by_zero_keeps_its_sign() -> None:
    x = np.array([1.0, -1.0, 0.0, 1.0], np.float32)
    zeros = np.array([0.0, 0.0, 0.0, -0.0], np.float32)
    for op_type in ("Div", "RealDiv", "FloorDiv"):
        assert str(run_op(op_type, [x, zeros])[0].tolist()) == "[inf, -inf, nan, -inf]"


@given(pair=pairs(["float32", "float64"]))
@quick
def test_float_power_is_numpy(pair: tuple[Array, Array]) -> None:
    with np.errstate(all="ignore"):
        assert_same(run_op("Pow", pair)[0], np.asarray(np.power(*pair)))


def test_integer_power() -> None:
    x = np.array([2, 2, 1, -1, -1, 0, 3, 0], np.int32)
    y = np.array([3, -1, -5, -3, -2, -1, 0, 0], np.int32)
    assert run_op("Pow", [x, y])[0].tolist() == [8, 0, 1, -1, 1, 0, 1, 1]


UNARY: dict[str, Callable[..., Any]] = {
    "Neg": np.negative,
    "Abs": np.abs,
    "Square": np.square,
    "Sign": np.sign,
    "Round": np.rint,
    "Floor": np.floor,
    "Ceil": np.ceil,
    "Exp": np.exp,
    "Log": np.log,
    "Sqrt": np.sqrt,
    "Reciprocal": np.reciprocal,
    "Sin": np.sin,
    "Cos": np.cos,
    "IsNan": np.isnan,
    "IsInf": np.isinf,
    "IsFinite": np.isfinite,
}


@pytest.mark.parametrize("op_type", sorted(UNARY))
@given(x=any_array(FLOAT_NAMES))
@quick
def test_unary_is_numpy(op_type: str, x: Array) -> None:
    with np.errstate(all="ignore"):
        expected = np.asarray(UNARY[op_type](x))
    assert_same(run_op(op_type, [x])[0], expected)


@pytest.mark.parametrize("op_type", ["Neg", "Abs", "Square", "Sign"])
@given(x=any_array(INT_NAMES))
@quick
def test_integer_unary_is_numpy(op_type: str, x: Array) -> None:
    with np.errstate(all="ignore"):
        assert_same(run_op(op_type, [x])[0], np.asarray(UNARY[op_type](x)))


def test_round_goes_to_even_and_leaves_integers() -> None:
    assert run_op("Round", [np.array([0.5, 1.5, -2.5], np.float32)])[0].tolist() == [0.0, 2.0, -2.0]
    big = np.array([2**62 + 1], np.int64)
    assert run_op("Round", [big])[0].tolist() == big.tolist()


@given(x=any_array(FLOAT_NAMES))
@quick
def test_rsqrt_is_rounded_once(x: Array) -> None:
    with np.errstate(all="ignore"):
        exact = 1.0 / np.sqrt(x.astype(np.float64))
        expected = exact.astype(x.dtype).astype(np.float64)
        found = run_op("Rsqrt", [x])[0].astype(np.float64)
        # One step of the dtype for the wide ones, whose root is rounded on its way.
        step = {2: 2.0**-8 if x.dtype.kind == "V" else 2.0**-10, 4: 2.0**-22, 8: 2.0**-51}[x.dtype.itemsize]
    np.testing.assert_allclose(found, expected, rtol=step)


@given(x=any_array(["float64"]))
@quick
def test_erf_is_the_error_function(x: Array) -> None:
    expected = np.array([math.erf(value) for value in x.reshape(-1)]).reshape(x.shape)
    found = run_op("Erf", [x])[0]
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13)
    numbers = ~np.isnan(x)
    assert np.array_equal(np.signbit(found[numbers]), np.signbit(x[numbers]))


def test_erf_where_its_two_series_meet() -> None:
    x = np.concatenate([np.linspace(-7, 7, 4001), np.nextafter(2.0, [0.0, 3.0]), [2.0, 1e-300, -6.0]])
    expected = [math.erf(value) for value in x]
    np.testing.assert_allclose(run_op("Erf", [x])[0], expected, rtol=1e-13)


@given(data=st.data())
@quick
def test_select_is_where(data: st.DataObject) -> None:
    x, y = data.draw(pairs(["float32", "bfloat16", "int64"]))
    condition = data.draw(st.sampled_from([np.equal, np.not_equal]))(x, y)
    assert_same(run_op("Select", [condition, x, y])[0], np.where(condition, x, y))


@given(x=any_array(["float32", "int32", "bfloat16"]), count=st.integers(1, 4))
@quick
def test_add_n_adds_from_left_to_right(x: Array, count: int) -> None:
    with np.errstate(all="ignore"):
        expected = x
        for _ in range(count - 1):
            expected = np.asarray(expected + x)
    assert_same(run_op("AddN", [x] * count)[0], expected)


def test_large_arrays_give_the_same_bits_as_small_ones() -> None:
    """Blocks and threads do not show in the result."""
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(1_300_001).astype(np.float32) for _ in range(2))
    assert run_op("Mul", [x, y])[0].tobytes() == (x * y).tobytes()
    assert run_op("Sub", [x, y[:1]])[0].tobytes() == (x - y[:1]).tobytes()
    assert run_op("Greater", [x, np.float32(0)])[0].tobytes() == (x > 0).tobytes()
    wide = x[:300_000].reshape(300, 1000)
    assert run_op("Add", [wide, y[:1000]])[0].tobytes() == (wide + y[:1000]).tobytes()


F32, I32 = TensorType("float32", (2, 3)), TensorType("int32", (2, 3))

REFUSED = [
    ("Add", [F32, I32], "one dtype, got float32.2, 3., int32.2, 3.. Put a Cast"),
    ("Add", [F32, TensorType("float32", (2,))], r"shapes that broadcast, got \(2, 3\) and \(2,\)"),
    ("Add", [F32], "expected 2 operands, got 1"),
    ("Add", [TensorType("bool", (2,))] * 2, "x of dtype int8, .* or bfloat16, got bool"),
    ("Exp", [I32], "x of dtype float16, float32, float64 or bfloat16, got int32"),
    ("LogicalNot", [F32], "x of dtype bool, got float32"),
    ("Select", [F32, F32, F32], "condition of dtype bool"),
    ("AddN", [F32, TensorType("float32", (3,))], r"operands of type float32\[2, 3\], got float32\[3\]"),
    ("AddN", [], "at least one operand"),
    ("MaximumGrad", [F32, F32, TensorType("float32", (3,))], r"dy of shape \(2, 3\)"),
]


@pytest.mark.parametrize(("op_type", "types", "message"), REFUSED)
def test_operands_that_do_not_fit(op_type: str, types: list[TensorType], message: str) -> None:
    infer = definition_of(op_type).infer
    assert infer is not None
    with pytest.raises(GraphError, match=message):
        infer(types, {})

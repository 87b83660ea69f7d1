"""Activations against their textbook formulas, and their gradients against differences."""

from __future__ import annotations

import math
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.errors import GraphError
from msdump.tensors.arrays import Array
from tests.mindspore.kernels.interpreter import check_gradient, run_op

FORMULAS: dict[str, Callable[[float], float]] = {
    "ReLU": lambda x: x if x > 0 else 0.0,
    "ReLU6": lambda x: min(max(x, 0.0), 6.0),
    "Sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "Tanh": math.tanh,
    "GeLU": lambda x: 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
}
GRADS = {"ReLU": "ReluGrad", "ReLU6": "ReLU6Grad"}


@pytest.mark.parametrize("op_type", sorted(FORMULAS))
@settings(max_examples=25, deadline=None)
@given(values=st.lists(st.floats(-50, 50), max_size=8))
def test_activation_is_its_formula(op_type: str, values: list[float]) -> None:
    x = np.array(values, np.float64)
    expected = [FORMULAS[op_type](value) for value in values]
    np.testing.assert_allclose(run_op(op_type, [x])[0], expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("op_type", sorted(FORMULAS))
def test_bprop_agrees_with_differences(op_type: str) -> None:
    x = np.array([[-7.3, -1.2, -0.3], [0.4, 2.5, 8.1]])  # not near the corners at 0 and 6
    check_gradient(op_type, [x])


@pytest.mark.parametrize("op_type", sorted(FORMULAS))
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_narrow_dtypes_are_rounded_once(op_type: str, dtype: type) -> None:
    x: Array = np.linspace(-9, 9, 301).astype(dtype)
    wide = run_op(op_type, [x.astype(np.float32)])[0]
    assert run_op(op_type, [x])[0].tobytes() == wide.astype(dtype).tobytes()


def test_blocks_meet_without_a_seam() -> None:
    """More elements than a block holds, split over the threads, are as if each stood alone."""
    x = np.random.default_rng(1).standard_normal(300_001).astype(np.float32)
    assert run_op("ReLU", [x])[0].tobytes() == np.where(x > 0, x, np.float32(0)).tobytes()
    tanh = run_op("Tanh", [x])[0]
    assert tanh.tobytes() == run_op("Tanh", [x])[0].tobytes()
    np.testing.assert_allclose(tanh, np.tanh(x.astype(np.float64)), rtol=1e-6)


def test_edges() -> None:
    x = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0], np.float32)
    np.testing.assert_array_equal(run_op("ReLU", [x])[0], [np.nan, np.inf, 0, 0, 0])
    assert not np.signbit(run_op("ReLU", [x])[0][2:]).any()
    np.testing.assert_array_equal(run_op("ReLU6", [x])[0], [np.nan, 6, 0, 0, 0])
    np.testing.assert_array_equal(run_op("Sigmoid", [x])[0], [np.nan, 1, 0, 0.5, 0.5])
    np.testing.assert_array_equal(run_op("Tanh", [x])[0], [np.nan, 1, -1, -0.0, 0])


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
@pytest.mark.parametrize("size", [1, 5, 17, 63, 140_001])
def test_zero_has_no_sign_after_relu(dtype: type, size: int) -> None:
    """Whatever of a vector register the elements fill."""
    x = np.resize(np.array([-0.0, -1, 0, -np.inf, 2], np.float32), size).astype(dtype)
    expected = np.resize(np.array([0, 0, 0, 0, 2], np.float32), size).astype(dtype)
    assert run_op("ReLU", [x])[0].tobytes() == expected.tobytes()


def test_gradient_is_cut_where_the_result_is_zero_even_when_infinite() -> None:
    dy = np.array([np.inf, -np.inf, np.nan, np.inf, 3], np.float32)
    y = np.array([0, 0, 0, 1, np.nan], np.float32)
    np.testing.assert_array_equal(run_op("ReluGrad", [dy, y])[0], [0, 0, 0, np.inf, 0])
    x = np.array([-1, 0, 7, 6, np.nan], np.float32)
    np.testing.assert_array_equal(run_op("ReLU6Grad", [dy, x])[0], [0, 0, 0, np.inf, 0])


def test_misfits_are_refused() -> None:
    with pytest.raises(GraphError, match="x of dtype"):
        run_op("ReLU", [np.zeros(3, np.bool_)])
    with pytest.raises(GraphError, match="x float32"):
        run_op("ReluGrad", [np.zeros(3, np.float32), np.zeros(4, np.float32)])

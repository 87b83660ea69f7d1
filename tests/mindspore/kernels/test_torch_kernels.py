"""PyTorch's kernels give what numpy's give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("torch")

from msdump.graph.primitive import REGISTRY
from msdump.tensors.arrays import Array
from tests.mindspore.kernels.cases import CASES, Case
from tests.mindspore.kernels.interpreter import run_op

BOTH = [
    pytest.param(op_type, case, id=f"{op_type}-{number}")
    for op_type, cases in sorted(CASES.items())
    # The cases of MaxPoolGrad hold results that no pooling gave, on which the two need not agree.
    if {"numpy", "torch"} <= set(REGISTRY[op_type].kernels) and op_type != "MaxPoolGrad"
    for number, case in enumerate(cases)
]
# Both add in an order of their own: some units in the last place of what was added.
TOLERANCE = {np.dtype("float64"): 1e-9, np.dtype("float32"): 2e-5, np.dtype("float16"): 4e-3}


def run_both(op_type: str, inputs: list[Array], attrs: Any) -> None:
    """Outputs and what stands in operands afterwards."""
    ways = []
    for provider in ("numpy", "torch"):
        operands = [array.copy() for array in inputs]
        ways.append([*run_op(op_type, operands, attrs, provider), *operands])
    for expected, actual in zip(*ways, strict=True):
        assert_near(expected, actual)


def assert_near(expected: Array, actual: Array) -> None:
    assert (expected.dtype, expected.shape) == (actual.dtype, actual.shape)
    near = TOLERANCE.get(expected.dtype, 3e-2)
    size = float(np.max(np.abs(np.nan_to_num(expected.astype(np.float64), posinf=0, neginf=0)), initial=0))
    np.testing.assert_allclose(
        actual.astype(np.float64), expected.astype(np.float64), rtol=near, atol=near * max(size, 1)
    )


@pytest.mark.parametrize(("op_type", "case"), BOTH)
def test_every_case_agrees(op_type: str, case: Case) -> None:
    run_both(op_type, [np.array(array) for array in case.inputs], case.attrs)


@pytest.mark.parametrize(("op_type", "case"), [pytest.param(*each.values, id=each.id) for each in BOTH[::3]])
def test_a_bound_kernel_computes_what_stands_in_its_operands_at_each_call(op_type: str, case: Case) -> None:
    values = [np.array(array) for array in case.inputs]
    expected = run_op(op_type, [array.copy() for array in values], case.attrs, "torch")
    operands, results = [np.ones_like(array) for array in values], [np.ones_like(array) for array in expected]
    kernel = REGISTRY[op_type].binds["torch"](operands, case.attrs, results)
    for operand, array in zip(operands, values, strict=True):
        operand[...] = array
    kernel(operands, case.attrs, results)
    for array, result in zip(expected, results, strict=True):
        assert_near(array, result)


def test_no_gradient_passes_where_a_result_of_relu_is_nan() -> None:
    y = np.array([np.nan, 0, 2, np.inf], np.float32)
    dy = np.array([1, np.nan, np.nan, np.inf], np.float32)
    run_both("ReluGrad", [dy, y], {})
    run_both("ReluGrad", [dy[1:], y[1:]], {})


def numbers(*shape: int, seed: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@st.composite
def windows(draw: st.DrawFn) -> tuple[int, int, dict[str, Any]]:
    """Height and width of an image, and attributes of a window that fits into it."""
    kernel = draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))
    strides = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    height, width = (draw(st.integers(size, size + 5)) for size in kernel)
    mode = draw(st.sampled_from(["valid", "same", "pad"]))
    pad = tuple(draw(st.integers(0, size - 1)) for size in (kernel[0], kernel[0], kernel[1], kernel[1]))
    return height, width, {"kernel_size": kernel, "strides": strides, "stride": strides, "pad_mode": mode, "pad": pad}


@settings(max_examples=40)
@given(windows(), st.sampled_from([(1, 2), (2, 2), (1, 1)]), st.integers(0, 9))
def test_convolutions_agree(window: Any, grouping: tuple[int, int], seed: int) -> None:
    height, width, attrs = window
    groups, depth = grouping
    attrs = {**attrs, "group": groups}
    x = numbers(2, groups * depth, height, width, seed=seed)
    weight = numbers(groups * 3, depth, *attrs["kernel_size"], seed=seed + 1)
    run_both("Conv2D", [x, weight], attrs)
    (y,) = run_op("Conv2D", [x, weight], attrs)
    dy = numbers(*y.shape, seed=seed + 2)
    sizes = np.array(weight.shape, np.int64)
    run_both("Conv2DBackpropFilter", [dy, x, sizes], {**attrs, "filter_sizes": weight.shape})
    run_both("Conv2DBackpropInput", [dy, weight, np.array(x.shape, np.int64)], {**attrs, "input_sizes": x.shape})


@settings(max_examples=40)
@given(windows(), st.sampled_from(["MaxPool", "AvgPool"]), st.integers(0, 9))
def test_pools_agree(window: Any, op_type: str, seed: int) -> None:
    """Also where elements are equal: the gradient goes to the first of them."""
    height, width, attrs = window
    x = np.round(numbers(2, 3, height, width, seed=seed))
    run_both(op_type, [x], attrs)
    (y,) = run_op(op_type, [x], attrs)
    run_both(f"{op_type}Grad", [x, y, numbers(*y.shape, seed=seed + 1)], attrs)

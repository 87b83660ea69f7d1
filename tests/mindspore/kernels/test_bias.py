"""BiasAdd and its gradient."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.errors import GraphError
from tests.mindspore.kernels.interpreter import check_gradient, run_op

shapes = st.lists(st.integers(0, 5), min_size=2, max_size=5).map(tuple)


@settings(max_examples=40, deadline=None)
@given(shapes, st.integers(0, 99))
def test_bias_is_added_to_its_channel_and_the_gradient_sums_it(shape: tuple[int, ...], seed: int) -> None:
    random = np.random.default_rng(seed)
    x, b = random.standard_normal(shape), random.standard_normal(shape[1])
    y, db = run_op("BiasAdd", [x, b])[0], run_op("BiasAddGrad", [x])[0]
    for channel in range(shape[1]):
        np.testing.assert_array_equal(y[:, channel], x[:, channel] + b[channel])
        np.testing.assert_allclose(db[channel], np.sum(x[:, channel]), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 2, 2)])
def test_bprop_agrees_with_differences(shape: tuple[int, ...]) -> None:
    random = np.random.default_rng(1)
    check_gradient("BiasAdd", [random.standard_normal(shape), random.standard_normal(shape[1])], {"format": "NCHW"})


def test_sum_of_many_float16_does_not_stall() -> None:
    """A float16 sum of ones stops at 2048; it is computed in float32 and rounded once."""
    assert run_op("BiasAddGrad", [np.ones((4, 2, 1000), np.float16)])[0].tolist() == [4000, 4000]
    assert run_op("BiasAddGrad", [np.ones((4000, 2), np.float16)])[0].tolist() == [4000, 4000]


def test_large_sums_are_the_same_bits_again() -> None:
    dy = np.random.default_rng(2).standard_normal((9, 17, 40, 41)).astype(np.float32)
    first = run_op("BiasAddGrad", [dy])[0]
    assert all(run_op("BiasAddGrad", [dy])[0].tobytes() == first.tobytes() for _ in range(3))
    np.testing.assert_allclose(first, dy.astype(np.float64).sum((0, 2, 3)), rtol=1e-4, atol=1e-3)


def test_misfits_are_refused() -> None:
    with pytest.raises(GraphError, match="b of shape"):
        run_op("BiasAdd", [np.zeros((2, 3)), np.zeros(2)])
    with pytest.raises(GraphError, match="NHWC"):
        run_op("BiasAdd", [np.zeros((2, 3)), np.zeros(3)], {"format": "NHWC"})
    with pytest.raises(GraphError, match="x of shape"):
        run_op("BiasAddGrad", [np.zeros(3)])

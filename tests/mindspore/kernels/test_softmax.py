"""Softmax and LogSoftmax."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.errors import GraphError
from msdump.mindspore.kernels import softmax
from tests.mindspore.kernels.interpreter import check_gradient, run_op


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple),
    st.integers(-4, 3),
    st.floats(-1e4, 1e4),
)
def test_softmax_is_its_definition_and_ignores_a_shift(shape: tuple[int, ...], axis: int, shift: float) -> None:
    axis %= len(shape)
    x = np.random.default_rng(0).standard_normal(shape)
    expected = np.exp(x) / np.exp(x).sum(axis=axis, keepdims=True)
    np.testing.assert_allclose(run_op("Softmax", [x + shift], {"axis": axis})[0], expected, rtol=1e-9)
    np.testing.assert_allclose(run_op("LogSoftmax", [x + shift], {"axis": axis})[0], np.log(expected), atol=1e-9)


@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("axis", [-1, 0, (1,)])
def test_bprop_agrees_with_differences(op_type: str, axis: int | tuple[int, ...]) -> None:
    check_gradient(op_type, [np.random.default_rng(1).standard_normal((2, 3, 4))], {"axis": axis})


def test_edges() -> None:
    x = np.array([[1000, 0], [-np.inf, 0], [np.inf, 0], [np.nan, 0]], np.float32)
    nan = np.nan
    np.testing.assert_array_equal(run_op("Softmax", [x])[0], [[1, 0], [0, 1], [nan, nan], [nan, nan]])
    np.testing.assert_array_equal(run_op("LogSoftmax", [x])[0][:2], [[0, -1000], [-np.inf, 0]])


def test_lines_split_over_threads_are_as_if_each_stood_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(softmax, "BLOCK_SIZE", 1 << 16)
    x = np.random.default_rng(2).standard_normal((700, 300)).astype(np.float32)
    whole = run_op("Softmax", [x])[0]
    for row in (0, 217, 218, 436, 699):
        np.testing.assert_allclose(whole[row], run_op("Softmax", [x[row : row + 1]])[0][0], rtol=1e-6)
    np.testing.assert_allclose(whole.sum(axis=1), 1, rtol=1e-5)


def test_misfits_are_refused() -> None:
    with pytest.raises(GraphError, match="axis"):
        run_op("Softmax", [np.zeros((2, 3))], {"axis": 2})
    with pytest.raises(GraphError, match="one axis"):
        run_op("Softmax", [np.zeros((2, 3))], {"axis": (0, 1)})
    with pytest.raises(GraphError, match="dtype"):
        run_op("LogSoftmax", [np.zeros((2, 3), np.int32)])


@pytest.mark.parametrize("shift", [-200.0, -1.0, 0.0, 60.0, 80.0, 300.0])
@pytest.mark.parametrize("axis", [1, 2])
def test_lines_far_from_zero_are_shifted_beside_others_that_are_not(shift: float, axis: int) -> None:
    x = np.random.default_rng(3).standard_normal((3, 4, 5)).astype(np.float32)
    x[1] += np.float32(shift)
    wide = np.exp(x.astype(np.float64) - x.max(axis=axis, keepdims=True))
    expected = wide / wide.sum(axis=axis, keepdims=True)
    np.testing.assert_allclose(run_op("Softmax", [x], {"axis": axis})[0], expected, rtol=1e-6)
    alone = run_op("Softmax", [x[:1]], {"axis": axis})[0]
    assert run_op("Softmax", [x], {"axis": axis})[0][:1].tobytes() == alone.tobytes()

"""`mindspore.numpy.pad` against numpy.pad, and its gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msdump.mindspore as ms
import msdump.mindspore.numpy as mnp
from msdump.mindspore import Tensor

MODES = ["constant", "edge", "linear_ramp", "maximum", "mean", "minimum", "reflect", "symmetric", "wrap"]
widths = st.tuples(st.integers(0, 5), st.integers(0, 5))


@given(
    mode=st.sampled_from(MODES), shape=st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple), data=st.data(),
    dtype=st.sampled_from([np.float32, np.float64, np.int32]), is_odd=st.booleans(),
)  # fmt: skip
@settings(max_examples=150, deadline=None)
def test_as_numpy(mode: str, shape: tuple[int, ...], data: Any, dtype: Any, is_odd: bool) -> None:
    array = np.random.default_rng(len(shape)).integers(-9, 9, shape).astype(dtype)
    width = [data.draw(widths) for _ in shape]
    options: dict[str, Any] = {}
    if mode == "constant":
        options["constant_values"] = [data.draw(widths) for _ in shape]
    elif mode == "linear_ramp":
        options["end_values"] = data.draw(widths)
    elif mode in ("maximum", "mean", "minimum"):
        options["stat_length"] = data.draw(st.sampled_from([None, 1, ((2, 1),)]))
    elif mode in ("reflect", "symmetric") and is_odd:
        options["reflect_type"] = "odd"
    if mode == "mean" and dtype is np.int32:
        array = np.full(shape, 4, dtype)  # numpy rounds, MindSpore cuts
    ours = mnp.pad(Tensor(array), width, mode, **options).asnumpy()
    theirs = np.pad(array, width, mode, **options)
    assert ours.dtype == theirs.dtype
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


def test_short_forms(either_mode: int) -> None:
    x = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    for width in (1, (1,), ((1, 2),)):
        np.testing.assert_array_equal(mnp.pad(x, width).asnumpy(), np.pad(x.asnumpy(), width))
    assert mnp.pad([1, 2], 1).asnumpy().tolist() == [0, 1, 2, 0]
    assert float(mnp.pad(Tensor(np.float32(3)), 1)) == 3
    assert mnp.pad(x, 1, "empty").shape == (4, 5)
    whole = Tensor(np.array([1, 2], np.int32))
    assert mnp.pad(whole, 1, "mean").asnumpy().tolist() == [1, 1, 2, 1]


def test_a_function_fills_the_ends() -> None:
    def fill(row: Any, width: tuple[int, int], axis: int, options: dict[str, Any]) -> Any:
        row[: width[0]] = options["value"]
        row[-width[1] :] = axis
        return row

    x = np.arange(6, dtype=np.float32).reshape(2, 3)

    def of_numpy(row: Any, width: tuple[int, int], axis: int, options: dict[str, Any]) -> None:
        fill(row, width, axis, options)

    np.testing.assert_array_equal(mnp.pad(Tensor(x), 1, fill, value=7).asnumpy(), np.pad(x, 1, of_numpy, value=7))


@pytest.mark.parametrize("mode", MODES)
def test_gradients(mode: str, either_mode: int) -> None:
    x = np.array([[1.0, 2.0, 4.0], [7.0, 3.0, 5.0]], np.float32)
    width = ((1, 0), (2, 1))
    gradient = ms.grad(lambda t: mnp.pad(t, width, mode).sum())(Tensor(x)).asnumpy()
    expected = np.zeros_like(x, np.float64)
    for place in np.ndindex(x.shape):
        step = np.zeros(x.shape)
        step[place] = 1e-3
        expected[place] = (np.pad(x + step, width, mode).sum() - np.pad(x - step, width, mode).sum()) / 2e-3
    np.testing.assert_allclose(gradient, expected, atol=1e-3)


@pytest.mark.parametrize(
    ("width", "mode", "error", "message"),
    [
        (1, "bad", ValueError, "mode of numpy.pad"), (1, "median", NotImplementedError, "median"),
        (-1, "edge", ValueError, "widths from 0 on"), (((1, 1),) * 3, "edge", ValueError, "broadcasts to"),
    ],
)  # fmt: skip
def test_wrong_arguments(width: Any, mode: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        mnp.pad(Tensor(np.zeros((2, 2), np.float32)), width, mode)

"""Pooling against the definition, one window at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.errors import GraphError
from msdump.mindspore.kernels import pooling
from msdump.tensors.arrays import Array
from tests.mindspore.kernels.interpreter import check_gradient, run_op

Case = tuple[Array, dict[str, Any]]


def windows(x: Array, attrs: dict[str, Any]) -> Iterator[tuple[tuple[int, ...], tuple[int, int], Array]]:
    """(index of the output, corner of the window in x, the part of the window that lies inside of x)."""
    (kh, kw), (sh, sw) = attrs["kernel_size"][-2:], attrs["strides"][-2:]
    height, width = x.shape[2:]
    if attrs["pad_mode"].lower() == "same":
        oh, ow = -(-height // sh), -(-width // sw)
        top, left = max((oh - 1) * sh + kh - height, 0) // 2, max((ow - 1) * sw + kw - width, 0) // 2
    else:
        top, bottom, left, right = attrs.get("pad", (0, 0, 0, 0))
        oh, ow = (height + top + bottom - kh) // sh + 1, (width + left + right - kw) // sw + 1
    for n, c, r, q in np.ndindex(*x.shape[:2], oh, ow):
        first, start = max(r * sh - top, 0), max(q * sw - left, 0)
        inside = x[n, c, first : r * sh - top + kh, start : q * sw - left + kw]
        yield (n, c, r, q), (first, start), inside


def plain_pool(x: Array, attrs: dict[str, Any], reduce: Any) -> Array:
    results = {index: reduce(inside) for index, _, inside in windows(x, attrs)}
    shape = run_op("MaxPool", [x], attrs)[0].shape
    return np.array([results[index] for index in np.ndindex(*shape)]).reshape(shape)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Images with many equal values, so that ties are common, and some NaN and Inf."""
    size = st.integers(1, 3)
    kernel = (draw(size), draw(size))
    attrs = {
        "kernel_size": (1, 1, *kernel),
        "strides": (1, 1, draw(size), draw(size)),
        "pad_mode": draw(st.sampled_from(["VALID", "SAME", "same", "PAD"])),
        "format": "NCHW",
    }
    if attrs["pad_mode"] == "PAD":
        attrs["pad"] = tuple(draw(st.integers(0, size - 1)) for size in kernel for _ in range(2))
    shape = (draw(st.integers(0, 2)), draw(st.integers(1, 3)), *(k + draw(st.integers(0, 5)) for k in kernel))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    x = random.integers(-2, 3, shape).astype(np.float64)
    if draw(st.booleans()) and x.size:
        x.reshape(-1)[random.integers(0, x.size, 2)] = random.choice([np.nan, np.inf, -np.inf], 2)
    return x, attrs


@settings(max_examples=50, deadline=None)
@given(cases())
def test_max_pool_is_its_definition(case: Case) -> None:
    x, attrs = case
    np.testing.assert_array_equal(run_op("MaxPool", [x], attrs)[0], plain_pool(x, attrs, np.max))


@settings(max_examples=50, deadline=None)
@given(cases())
def test_max_pool_gradient_goes_to_the_first_maximum(case: Case) -> None:
    x, attrs = case
    y = run_op("MaxPool", [x], attrs)[0]
    dy = np.arange(1, y.size + 1, dtype=np.float64).reshape(y.shape)
    expected = np.zeros_like(x)
    for index, (row, column), inside in windows(x, attrs):
        r, c = np.unravel_index(np.argmax(inside), inside.shape)  # argmax: the first one, and NaN is the largest
        expected[index[0], index[1], row + int(r), column + int(c)] += dy[index]
    np.testing.assert_array_equal(run_op("MaxPoolGrad", [x, y, dy], attrs)[0], expected)


@settings(max_examples=50, deadline=None)
@given(cases())
def test_avg_pool_is_its_definition(case: Case) -> None:
    x, attrs = case
    x = np.nan_to_num(x, nan=1.0, posinf=2.0, neginf=3.0)
    y = run_op("AvgPool", [x], attrs)[0]
    np.testing.assert_allclose(y, plain_pool(x, attrs, np.mean), rtol=1e-12, atol=1e-12)
    dy = np.arange(1, y.size + 1, dtype=np.float64).reshape(y.shape)
    expected = np.zeros_like(x)
    for index, (row, column), inside in windows(x, attrs):
        n, c = index[:2]
        expected[n, c, row : row + inside.shape[0], column : column + inside.shape[1]] += dy[index] / inside.size
    np.testing.assert_allclose(run_op("AvgPoolGrad", [x, y, dy], attrs)[0], expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("op_type", ["MaxPool", "AvgPool"])
@pytest.mark.parametrize("pad_mode", ["VALID", "SAME", "PAD"])
def test_bprop_agrees_with_differences(op_type: str, pad_mode: str) -> None:
    x = np.random.default_rng(1).permutation(2 * 2 * 5 * 6).reshape(2, 2, 5, 6).astype(np.float64)
    attrs = {"kernel_size": (1, 1, 3, 2), "strides": (1, 1, 2, 1), "pad_mode": pad_mode, "pad": (1, 2, 1, 0)}
    check_gradient(op_type, [x], attrs)


@pytest.mark.parametrize("op_type", ["MaxPool", "AvgPool"])
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32])
def test_narrow_dtypes(op_type: str, dtype: Any) -> None:
    random = np.random.default_rng(2)
    x = random.standard_normal((2, 3, 7, 7)).astype(dtype)
    attrs = {"kernel_size": (1, 1, 3, 3), "strides": (1, 1, 2, 2), "pad_mode": "SAME"}
    y, wide = run_op(op_type, [x], attrs)[0], run_op(op_type, [x.astype(np.float64)], attrs)[0]
    assert y.dtype == dtype
    np.testing.assert_allclose(y.astype(np.float64), wide, rtol=1e-2, atol=1e-2)
    dx = run_op(f"{op_type}Grad", [x, y, y], attrs)[0]
    wide_dx = run_op(f"{op_type}Grad", [array.astype(np.float64) for array in (x, y, y)], attrs)[0]
    assert dx.dtype == dtype
    np.testing.assert_allclose(dx.astype(np.float64), wide_dx, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("op_type", ["MaxPool", "MaxPoolGrad", "AvgPool", "AvgPoolGrad"])
def test_results_do_not_depend_on_how_planes_are_cut(op_type: str, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(3)
    x = random.standard_normal((5, 40, 31, 30)).astype(np.float32)
    attrs = {"kernel_size": (1, 1, 3, 3), "strides": (1, 1, 2, 2), "pad_mode": "SAME"}
    y = run_op(op_type.removesuffix("Grad"), [x], attrs)[0]
    dy = np.asarray(random.standard_normal(y.shape), np.float32)
    operands = [x, y, dy] if op_type.endswith("Grad") else [x]
    whole = run_op(op_type, operands, attrs)[0]
    assert run_op(op_type, operands, attrs)[0].tobytes() == whole.tobytes()
    monkeypatch.setattr(pooling, "_LARGEST_BLOCK", 7 * 31 * 30)
    assert run_op(op_type, operands, attrs)[0].tobytes() == whole.tobytes()


def test_infinite_gradient_stays_where_it_belongs() -> None:
    x = np.array([[1, 2], [0, 0]], np.float32).reshape(1, 1, 2, 2)
    attrs = {"kernel_size": (1, 1, 2, 2), "strides": (1, 1, 2, 2), "pad_mode": "VALID"}
    dx = run_op(
        "MaxPoolGrad", [x, np.full((1, 1, 1, 1), 2, np.float32), np.full((1, 1, 1, 1), np.inf, np.float32)], attrs
    )
    assert dx[0].tolist() == [[[[0, np.inf], [0, 0]]]]


def test_padding_never_wins_against_minus_infinity() -> None:
    attrs = {"kernel_size": (1, 1, 2, 1), "strides": (1, 1, 1, 1), "pad_mode": "PAD", "pad": (1, 0, 0, 0)}
    x = np.array([[[[-np.inf], [0.0]]]])
    y = run_op("MaxPool", [x], attrs)[0]
    gradient = run_op("MaxPoolGrad", [x, y, np.array([[[[1.0], [2.0]]]])], attrs)[0]
    np.testing.assert_array_equal(gradient, [[[[1.0], [2.0]]]])


def test_misfits_are_refused() -> None:
    x = np.zeros((1, 1, 2, 2), np.float32)
    with pytest.raises(GraphError, match="at least 3 x 3"):
        run_op("MaxPool", [x], {"kernel_size": (1, 1, 3, 3), "strides": (1, 1, 1, 1), "pad_mode": "VALID"})
    with pytest.raises(GraphError, match="pad_mode"):
        run_op("AvgPool", [x], {"kernel_size": (1, 1, 2, 2), "pad_mode": "full"})
    with pytest.raises(GraphError, match=r"pad below the kernel_size \(2, 2\), got \(0, 2, 0, 0\)"):
        run_op("MaxPool", [x], {"kernel_size": (1, 1, 2, 2), "pad_mode": "pad", "pad": (0, 2, 0, 0)})
    with pytest.raises(GraphError, match="kernel_size"):
        run_op("MaxPool", [x], {})
    with pytest.raises(GraphError, match="grad float32"):
        run_op("MaxPoolGrad", [x, x, x[:, :, :1]], {"kernel_size": 1})

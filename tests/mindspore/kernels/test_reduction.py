from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.errors import GraphError
from msdump.graph.primitive import definition_of
from msdump.graph.types import TensorType
from msdump.tensors.arrays import Array
from tests.mindspore.kernels.arrays import FLOAT_NAMES, INT_NAMES, any_array, assert_same
from tests.mindspore.kernels.interpreter import run_op

quick = settings(max_examples=40, deadline=None)


@st.composite
def axes_of(draw: st.DrawFn, ndim: int) -> Any:
    """An axis, a tuple of them, or () for all."""
    if ndim == 0:
        return ()
    chosen = draw(st.lists(st.integers(0, ndim - 1), unique=True, max_size=ndim))
    signed = [axis - ndim if draw(st.booleans()) else axis for axis in chosen]
    return signed[0] if len(signed) == 1 and draw(st.booleans()) else tuple(signed)


def numpy_axis(axis: Any) -> Any:
    return None if axis == () else axis


def close(found: Array, expected: Array, dtype: Any) -> None:
    """Equal within the rounding of a sum of a few terms."""
    rtol = {2: 2.0**-7, 4: 1e-5, 8: 1e-13}[np.dtype(dtype).itemsize]
    wide = found.astype(np.float64)
    with np.errstate(all="ignore"):
        target = np.asarray(expected).astype(dtype).astype(np.float64)
    np.testing.assert_allclose(wide, target, rtol=rtol, atol=0.05 if np.dtype(dtype).itemsize == 2 else 1e-3)


@pytest.mark.parametrize(("op_type", "reference"), [("ReduceSum", np.sum), ("ReduceMean", np.mean)])
@given(data=st.data())
@quick
def test_float_sums(op_type: str, reference: Any, data: st.DataObject) -> None:
    x = data.draw(any_array(FLOAT_NAMES))
    axis, keep = data.draw(axes_of(x.ndim)), data.draw(st.booleans())
    found = run_op(op_type, [x], {"axis": axis, "keep_dims": keep})[0]
    wide = x.astype(np.float64)
    count = np.sum(np.ones(x.shape), axis=numpy_axis(axis), keepdims=keep)
    with np.errstate(all="ignore"):
        expected = np.sum(wide, axis=numpy_axis(axis), keepdims=keep)
        if reference is np.mean:
            expected = expected / count
    assert found.dtype == x.dtype and found.shape == np.shape(expected)
    close(found, expected, x.dtype)


@pytest.mark.parametrize(("op_type", "reference"), [("ReduceSum", np.sum), ("ReduceProd", np.prod)])
@given(data=st.data())
@quick
def test_integer_sums_wrap(op_type: str, reference: Any, data: st.DataObject) -> None:
    x = data.draw(any_array(INT_NAMES))
    axis = data.draw(axes_of(x.ndim))
    found = run_op(op_type, [x], {"axis": axis})[0]
    with np.errstate(all="ignore"):
        expected = reference(x, axis=numpy_axis(axis), dtype=x.dtype)
    assert found.dtype == x.dtype and np.array_equal(found, expected)


@pytest.mark.parametrize(("op_type", "reference"), [("ReduceMax", np.max), ("ReduceMin", np.min)])
@given(data=st.data())
@quick
def test_extremes(op_type: str, reference: Any, data: st.DataObject) -> None:
    x = data.draw(any_array([*FLOAT_NAMES, *INT_NAMES], min_side=1))
    axis, keep = data.draw(axes_of(x.ndim)), data.draw(st.booleans())
    found = run_op(op_type, [x], {"axis": axis, "keep_dims": keep})[0]
    with np.errstate(all="ignore"):
        expected = reference(x, axis=numpy_axis(axis), keepdims=keep)
    assert_same(found, np.asarray(expected), is_signed=False)


@pytest.mark.parametrize(("op_type", "reference"), [("ReduceAll", np.all), ("ReduceAny", np.any)])
@given(data=st.data())
@quick
def test_bools(op_type: str, reference: Any, data: st.DataObject) -> None:
    x = data.draw(any_array(["bool"]))
    axis = data.draw(axes_of(x.ndim))
    assert np.array_equal(run_op(op_type, [x], {"axis": axis})[0], reference(x, axis=numpy_axis(axis)))


def test_mean_of_nothing_is_nan_and_of_no_integers_zero() -> None:
    assert np.isnan(run_op("ReduceMean", [np.zeros((0, 2), np.float32)], {"axis": 0})[0]).tolist() == [True, True]
    assert run_op("ReduceMean", [np.zeros((0, 2), np.int32)], {"axis": 0})[0].tolist() == [0, 0]
    assert run_op("ReduceMean", [np.array([-3, -4], np.int32)])[0].tolist() == -3


def test_half_sums_run_in_float32() -> None:
    """4096 halves of 1 add up; in float16 they would stop at 2048."""
    for dtype in ("float16", "bfloat16"):
        ones = run_op("Ones", [], {"dtype": dtype, "shape": (4096, 2)})[0]
        assert run_op("ReduceSum", [ones], {"axis": 0})[0].astype(float).tolist() == [4096.0, 4096.0]
        assert run_op("ReduceMean", [ones], {"axis": 0})[0].astype(float).tolist() == [1.0, 1.0]


def test_skip_mode_reduces_nothing() -> None:
    x = np.arange(6.0).reshape(2, 3)
    assert np.array_equal(run_op("ReduceSum", [x], {"axis": (), "skip_mode": True})[0], x)
    assert run_op("ReduceSum", [x], {"axis": ()})[0] == 15.0


@given(data=st.data())
@quick
def test_positions(data: st.DataObject) -> None:
    x = data.draw(any_array([*FLOAT_NAMES, *INT_NAMES], min_ndim=1, min_side=1))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    with np.errstate(all="ignore"):
        largest, smallest = np.argmax(x, axis), np.argmin(x, axis)
    assert np.array_equal(run_op("Argmax", [x], {"axis": axis})[0], largest)
    assert np.array_equal(run_op("Argmin", [x], {"axis": axis, "output_type": "int64"})[0], smallest)
    index, values = run_op("ArgMaxWithValue", [x], {"axis": axis, "keep_dims": True})
    assert index.dtype == np.int32 and np.array_equal(index, np.expand_dims(largest, axis))
    assert_same(values, np.take_along_axis(x, np.expand_dims(largest, axis), axis))
    index, values = run_op("ArgMinWithValue", [x], {"axis": axis})
    assert np.array_equal(index, smallest) and values.shape == smallest.shape


@given(data=st.data())
@quick
def test_cumsum(data: st.DataObject) -> None:
    x = data.draw(any_array(["int32", "int64"], min_ndim=1))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    is_exclusive, is_reverse = data.draw(st.booleans()), data.draw(st.booleans())
    found = run_op("CumSum", [x], {"axis": axis, "exclusive": is_exclusive, "reverse": is_reverse})[0]
    turned = np.flip(x, axis) if is_reverse else x
    with np.errstate(all="ignore"):
        total = np.cumsum(turned, axis, dtype=x.dtype)
        if is_exclusive:
            total = total - turned
    assert np.array_equal(found, np.flip(total, axis) if is_reverse else total)


REFUSED = [
    ("ReduceSum", TensorType("float32", (2, 3)), {"axis": 2}, r"axis in \[-2, 2\), got 2"),
    ("ReduceSum", TensorType("float32", (2, 3)), {"axis": (0, -2)}, "every axis once"),
    ("ReduceSum", TensorType("float32", (2, 3)), {"axis": "0"}, "axis to be an int or a tuple of ints"),
    ("ReduceSum", TensorType("bool", (2,)), {}, "x of dtype"),
    ("ReduceAll", TensorType("int32", (2,)), {}, "x of dtype bool"),
    ("ReduceMax", TensorType("float32", (0, 3)), {"axis": 0}, "at least one element"),
    ("Argmax", TensorType("float32", (2, 0)), {}, "at least one element"),
    ("Argmax", TensorType("float32", (2,)), {"output_type": "int8"}, "output_type int32 or int64"),
    ("CumSum", TensorType("float32", ()), {"axis": 0}, "axis in"),
]


@pytest.mark.parametrize(("op_type", "type", "attrs", "message"), REFUSED)
def test_operands_that_do_not_fit(op_type: str, type: TensorType, attrs: Any, message: str) -> None:
    infer = definition_of(op_type).infer
    assert infer is not None
    with pytest.raises(GraphError, match=message):
        infer([type], attrs)

"""Hostile operands for the kernels: 0-d, empty, NaN, Inf, -0.0, every dtype that arithmetic takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
from hypothesis import strategies as st

from msdump.mindspore.kernels.checks import FLOATS, INTS
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array

FLOAT_NAMES, INT_NAMES = sorted(FLOATS), sorted(INTS)
_SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, 3.25, -1e-3, 1e4, float("nan"), float("inf"), float("-inf"))


def shapes(min_ndim: int = 0, max_ndim: int = 3, min_side: int = 0) -> st.SearchStrategy[tuple[int, ...]]:
    return hnp.array_shapes(min_dims=min_ndim, max_dims=max_ndim, min_side=min_side, max_side=4)


def arrays(dtype_name: str, shape: tuple[int, ...], is_finite: bool = False) -> st.SearchStrategy[Array]:
    """Arrays of one dtype and shape."""
    row = dtypes.dtype(dtype_name)
    count = int(np.prod(shape))
    elements: st.SearchStrategy[Any]
    if row.kind == "bool":
        elements = st.booleans()
    elif row.is_float:
        elements = st.floats(-100, 100, width=16)
        if not is_finite:
            elements = st.sampled_from(_SPECIAL) | elements
    else:
        limits = np.iinfo(row.numpy)
        elements = st.integers(-9 if limits.min else 0, 9) | st.integers(int(limits.min), int(limits.max))

    def build(values: Sequence[Any]) -> Array:
        return np.array(values, np.float64 if row.is_float else row.numpy).astype(row.numpy).reshape(shape)

    return st.lists(elements, min_size=count, max_size=count).map(build)


@st.composite
def pairs(draw: st.DrawFn, dtype_names: Sequence[str], min_side: int = 0) -> tuple[Array, Array]:
    """Two operands of one dtype whose shapes broadcast."""
    name = draw(st.sampled_from(list(dtype_names)))
    both = draw(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, min_side=min_side, max_side=4))
    left, right = both.input_shapes
    return draw(arrays(name, left)), draw(arrays(name, right))


@st.composite
def any_array(draw: st.DrawFn, dtype_names: Sequence[str], min_ndim: int = 0, min_side: int = 0) -> Array:
    """One operand."""
    name = draw(st.sampled_from(list(dtype_names)))
    return draw(arrays(name, draw(shapes(min_ndim, 3, min_side))))


def assert_same(found: Array, expected: Array, is_signed: bool = True) -> None:
    """Same dtype, shape and values; a NaN is a NaN, and -0.0 is not 0.0 when `is_signed`."""
    assert found.dtype == expected.dtype and found.shape == expected.shape
    if dtypes.dtype_from_numpy(found.dtype).is_float:
        found, expected = found.astype(np.float64), expected.astype(np.float64)
        numbers = ~np.isnan(found)
        if is_signed:
            assert np.array_equal(np.signbit(found[numbers]), np.signbit(expected[numbers]))
    np.testing.assert_array_equal(found, expected)

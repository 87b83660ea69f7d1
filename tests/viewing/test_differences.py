"""Distances between the elements of two tensors."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from msdump.errors import ConfigError
from msdump.viewing.differences import DIFFERENCE, KINDS, RELATIVE, ULP, distance

FLOATS = arrays_of.arrays(np.float32, arrays_of.array_shapes(max_dims=2, max_side=6))


def apart(kind: str, mine: np.ndarray, golden: np.ndarray, *names: str) -> np.ndarray:
    both = names or (str(mine.dtype), str(golden.dtype))
    return distance(kind, (both[0], both[-1]), (mine, golden))(mine, golden)


@given(array=FLOATS, kind=st.sampled_from(KINDS))
def test_a_tensor_is_nowhere_apart_from_itself(array: np.ndarray, kind: str) -> None:
    assert not apart(kind, array, array).any()


@given(array=FLOATS)
def test_neighbours_are_one_unit_apart(array: np.ndarray) -> None:
    with np.errstate(over="ignore", under="ignore"):
        up = np.nextafter(array, np.float32(np.inf), dtype=np.float32)
    is_finite = np.isfinite(array) & np.isfinite(up)
    np.testing.assert_array_equal(apart(ULP, array, up)[is_finite], 1)
    np.testing.assert_array_equal(apart(ULP, up, array)[is_finite], 1)


@pytest.mark.parametrize("dtype", [np.float16, np.float64, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
def test_units_of_other_dtypes(dtype: type) -> None:
    one = np.asarray([1.0, -1.0, 0.0, 2.0], dtype)
    step = float(ml_dtypes.finfo(dtype).eps)
    other = np.asarray([1.0 + step, -1.0 - 2 * step, -0.0, 2.0 - step], dtype)
    np.testing.assert_array_equal(apart(ULP, one, other), [1, 2, 0, 1])


def test_units_are_those_of_the_coarser_dtype() -> None:
    mine, golden = np.asarray([1.0, 3.0], np.float16), np.asarray([1.0 + 2**-10, 3.0], np.float32)
    np.testing.assert_array_equal(apart(ULP, mine, golden), [1, 0])


def test_bfloat16_in_a_file_of_float32_has_units_of_its_own() -> None:
    mine = np.arange(64, dtype=np.float32) + 1.0
    mine = (mine / 3).astype(ml_dtypes.bfloat16).astype(np.float32)
    golden = np.nextafter(mine.astype(ml_dtypes.bfloat16), ml_dtypes.bfloat16(1e9)).astype(np.float32)
    np.testing.assert_array_equal(apart(ULP, mine, golden), 1)


def test_what_is_not_finite() -> None:
    mine = np.asarray([np.nan, np.inf, -np.inf, np.nan, 1.0, np.inf], np.float32)
    golden = np.asarray([np.nan, np.inf, -np.inf, 1.0, np.inf, -np.inf], np.float32)
    np.testing.assert_array_equal(apart(DIFFERENCE, mine, golden), [0, 0, 0, np.nan, -np.inf, np.inf])
    for kind in (RELATIVE, ULP):
        found = apart(kind, mine, golden)
        np.testing.assert_array_equal(found[:5], [0, 0, 0, np.nan, np.inf])
        assert not np.isfinite(found[5])


def test_shares_of_golden() -> None:
    mine, golden = np.asarray([1.1, 0.0, 1.0, -3.0]), np.asarray([1.0, 0.0, 0.0, -2.0])
    np.testing.assert_allclose(apart(RELATIVE, mine, golden), [0.1, 0, np.inf, 0.5])


def test_integers_are_apart_by_their_difference() -> None:
    mine, golden = np.asarray([3, -2], np.int64), np.asarray([1, 5], np.int64)
    np.testing.assert_array_equal(apart(ULP, mine, golden), [2, 7])


def test_complex_numbers_have_no_last_place() -> None:
    values = np.ones(3, np.complex64)
    assert apart(DIFFERENCE, values + 1j, values).tolist() == [1j, 1j, 1j]
    with pytest.raises(ConfigError, match="expected real numbers for ulp"):
        apart(ULP, values, values)

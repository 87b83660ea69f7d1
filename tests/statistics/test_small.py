"""Statistics of many small tensors of one size: to the last bit as one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.errors import DtypeError
from msdump.statistics.batches import MeasuredTensor, measure_all, measure_each
from msdump.statistics.small import LARGEST, equal_statistics, is_small
from msdump.statistics.stats import statistics
from msdump.tensors import dtypes
from msdump.testing import tensors

NAMES = ["float16", "bfloat16", "float32", "float64", "int8", "uint8", "int32", "int64", "uint64"]


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=30, deadline=None)
@given(st.data())
def test_rows_of_a_matrix_say_what_each_tensor_says(name: str, data: st.DataObject) -> None:
    shape = data.draw(st.sampled_from([(1,), (7,), (8, 8), (3, 5, 9), (130,), ()]))
    arrays = data.draw(st.lists(tensors([name], st.just(shape), ["plain", "read-only"]), min_size=1, max_size=9))
    assert all(is_small(array, name) for array in arrays)
    # As texts, which tell -0.0 from 0.0, an int from a float, and call NaN equal.
    assert list(map(repr, equal_statistics(arrays, name))) == [repr(statistics(array, name)) for array in arrays]


def test_numbers_near_the_ends_of_float64_are_scaled() -> None:
    arrays = [np.array([1e-200, 3e-200]), np.array([1e200, -3e200]), np.array([0.0, -0.0]), np.array([1.0, 2.0])]
    assert equal_statistics(arrays, "float64") == [statistics(array, "float64") for array in arrays]


def test_more_rows_than_are_looked_at_together() -> None:
    arrays = [np.full(LARGEST, number, np.float32) for number in range(30)]
    assert [numbers.avg for numbers in equal_statistics(arrays, "float32")] == list(range(30))


def test_what_is_large_strided_or_of_another_dtype_is_left_to_others() -> None:
    assert not is_small(np.zeros(LARGEST + 1, np.float32), "float32")
    assert not is_small(np.zeros((4, 6), np.float32)[:, ::2], "float32")
    assert not is_small(np.zeros(3, np.float32), "float64")
    assert not is_small(np.zeros(0, np.float32), "float32")
    assert not is_small(np.zeros(3, bool), "bool")


def test_tensors_of_all_kinds_are_measured_in_their_order() -> None:
    arrays = [np.full((2, 3), number, np.float32) for number in range(6)]
    arrays += [np.arange(5), np.array([True, False]), np.ones(20_000, np.float32)]
    names = [dtypes.dtype_from_numpy(array.dtype).name for array in arrays]
    expected = [statistics(array, name) for array, name in zip(arrays, names, strict=True)]
    assert measure_each(arrays, names) == expected
    assert measure_all(arrays, names) == [MeasuredTensor(numbers) for numbers in expected]


def test_what_has_no_statistics_says_why_and_the_others_are_measured() -> None:
    arrays = [*(np.ones(4, np.float32) for _ in range(5)), np.ones(3, np.complex64)]
    *numbers, error = measure_each(arrays, ["float32"] * 5 + ["complex64"])
    assert numbers == [statistics(np.ones(4, np.float32), "float32")] * 5
    assert isinstance(error, DtypeError)

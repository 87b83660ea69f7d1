"""Statistics and digests of many tensors: as one by one, whatever the number of threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.errors import DtypeError
from msdump.statistics import batches, kernels, stats
from msdump.statistics.batches import LARGEST, MeasuredTensor, equal_statistics, is_small, measure_all, measure_each
from msdump.statistics.md5 import md5_hex
from msdump.statistics.stats import Statistics, joined_statistics, statistics
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array
from msdump.testing import tensors


def name_of(array: Array) -> str:
    return dtypes.dtype_from_numpy(array.dtype).name


def assert_same(numbers: Statistics | None, expected: Statistics) -> None:
    """Sums may differ in their last bits, nothing else."""
    assert numbers is not None
    assert replace(numbers, avg=None, l2norm=0.0) == replace(expected, avg=None, l2norm=0.0)
    scale = max(abs(float(expected.max or 0)), abs(float(expected.min or 0)))
    assert numbers.l2norm == pytest.approx(expected.l2norm, rel=1e-9, nan_ok=True)
    assert numbers.avg == (None if expected.avg is None else pytest.approx(expected.avg, rel=1e-9, abs=1e-12 * scale))


@settings(max_examples=40, deadline=None)
@given(st.lists(tensors(), max_size=20), st.booleans())
def test_tensors_measured_together_say_what_each_says(arrays: list[Array], has_md5: bool) -> None:
    arrays = [array for array in arrays if dtypes.dtype(name_of(array)).kind != dtypes.OTHER]
    large = np.linspace(-1, 1, 40_000, dtype=np.float32)  # with it, small ones are measured by compiled code
    arrays = [*arrays, large]
    found = measure_all(arrays, [name_of(array) for array in arrays], has_md5)
    for array, measured in zip(arrays, found, strict=True):
        assert measured.md5 == (md5_hex(array) if has_md5 else "")
        if dtypes.dtype(name_of(array)).kind == dtypes.COMPLEX:
            assert measured.numbers is None
        else:
            assert_same(measured.numbers, statistics(array, name_of(array)))


@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16"])
@settings(max_examples=30, deadline=None)
@given(st.data())
def test_joined_tensors_say_what_each_says(name: str, data: st.DataObject) -> None:
    drawn = data.draw(st.lists(tensors(dtypes=[name]), max_size=12))
    arrays = [np.ones(3, dtypes.dtype(name).numpy), *(array for array in drawn if array.size)]
    for array, numbers in zip(arrays, joined_statistics(arrays, name), strict=True):
        assert_same(numbers, statistics(array, name))


def test_a_joined_tensor_of_another_dtype_is_refused() -> None:
    with pytest.raises(DtypeError, match="expected an array of bfloat16, got one of float32"):
        joined_statistics([np.zeros(3, np.float32)], "bfloat16")


def test_threads_change_nothing() -> None:
    arrays = [np.random.default_rng(seed).standard_normal(1 + 50_000 * (seed % 9)) for seed in range(60)]
    arrays = [array.astype(np.float32 if array.size % 2 else np.float64) for array in arrays]
    names = [name_of(array) for array in arrays]
    alone = measure_all(arrays, names, True)
    with ThreadPoolExecutor(3) as pool:
        assert measure_all(arrays, names, True, pool, 4) == alone


def test_small_tensors_are_measured_as_ever_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stats, "compiled_segments", lambda name: None)
    arrays = [np.arange(5, dtype=np.float32), np.ones(100_000, np.float32)]
    assert measure_all(arrays, ["float32"] * 2) == [MeasuredTensor(statistics(array, "float32")) for array in arrays]


def test_shares_hold_every_tensor_once_and_fill_their_lanes() -> None:
    sizes = [1000] * 64 + [10, 0]
    shares = batches.digest_shares(sizes, 4)
    assert sorted(place for share in shares for place in share) == list(range(66))
    assert [sum(sizes[place] for place in share) // 1000 for share in shares] == [16, 16, 16, 16]
    # Two shares would each wait for one lane.
    assert len(batches.digest_shares([10_000, *sizes], 4)) == 1
    assert batches.digest_shares([], 4) == []
    assert batches.digest_shares([0, 0], 1) == [[0, 1]]


def test_after_a_failure_no_work_is_begun() -> None:
    arrays = [np.ones(2 << 20, np.float32), np.array(["text"]), *[np.ones(2 << 20, np.float32)] * 3]
    names = ["float32", "float32", "float32", "float32", "float32"]
    with ThreadPoolExecutor(1) as pool, pytest.raises(DtypeError, match="expected an array of float32"):
        measure_all(arrays, names, False, pool, 2)


def test_segments_have_one_row_each() -> None:
    kernel = kernels.compiled_segments("float32")
    if kernel is None:
        pytest.skip("no compiler")
    values, starts = np.array([1, 2, 3, -4], np.float32), np.array([0, 1, 4])
    extremes, sums, counts = np.empty((2, 2), np.int32), np.empty((2, 2)), np.empty((2, 5), np.int64)
    kernel(values, starts, extremes, sums, counts)
    assert sums.tolist() == [[1, 1], [1, 29]]
    assert counts[:, 0].tolist() == [0, 1]


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

"""Statistics against float64 numpy, on every dtype and layout, on both implementations and any number of threads."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.errors import DtypeError
from msdump.statistics import kernels, lanes, stats
from msdump.statistics.stats import Statistics, has_non_finite, statistics
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array
from msdump.testing import DTYPES, tensors

REAL = [name for name in DTYPES if dtypes.dtype(name).kind != dtypes.COMPLEX]
quick = settings(max_examples=60, deadline=None)


def reference(array: Array, size_bytes: int) -> Statistics:
    """The same numbers the slow and obvious way."""
    with np.errstate(all="ignore"):
        wide = array.reshape(-1).astype(np.float64)
        is_finite = np.isfinite(wide)
        finite = wide[is_finite]
        scale = float(np.abs(finite).max(initial=0.0)) or 1.0
        # float64 cannot tell neighbouring 64-bit integers apart.
        exact = array.reshape(-1).astype(array.dtype.newbyteorder("=")) if array.dtype.kind in "iu" else finite
    return Statistics(
        max=exact.max().item() + 0 if exact.size else None,
        min=exact.min().item() + 0 if exact.size else None,
        avg=math.fsum(finite / finite.size) if finite.size else None,
        l2norm=math.nan if np.isnan(wide).any() else float(np.linalg.norm(wide / scale) * scale),
        count=wide.size,
        negative=int((finite < 0).sum()),
        positive=int((finite > 0).sum()),
        zero=int((finite == 0).sum()),
        nan=int(np.isnan(wide).sum()),
        negative_inf=int((wide == -np.inf).sum()),
        positive_inf=int((wide == np.inf).sum()),
        size_bytes=size_bytes,
    )


def assert_agrees(actual: Statistics, expected: Statistics, scale: float) -> None:
    """Counts and extremes exactly; sums up to rounding."""
    if expected.avg is None:
        assert actual.avg is None
    else:
        assert actual.avg == pytest.approx(expected.avg, rel=1e-12, abs=1e-12 * scale)
    assert actual.l2norm == pytest.approx(expected.l2norm, rel=1e-12, nan_ok=True)
    assert replace(actual, avg=None, l2norm=0.0) == replace(expected, avg=None, l2norm=0.0)


def largest_magnitude(numbers: Statistics) -> float:
    return 0.0 if numbers.max is None or numbers.min is None else float(max(abs(numbers.max), abs(numbers.min)))


@quick
@given(st.data())
def test_small_arrays_agree_with_numpy(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(REAL))
    array = data.draw(tensors(dtypes=[name]))
    expected = reference(array, array.size * dtypes.dtype(name).itemsize)
    assert_agrees(statistics(array, name), expected, largest_magnitude(expected))


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64", "int8", "uint32", "int64", "uint64"])
@settings(max_examples=8, deadline=None)
@given(st.data())
def test_large_arrays_agree_with_numpy_and_with_small_ones(name: str, data: st.DataObject) -> None:
    """Compiled code: blocks that are all finite lie beside blocks with NaN and Inf."""
    seed = data.draw(tensors(dtypes=[name], shapes=st.integers(1, 200).map(lambda size: (size,)), layouts=["plain"]))
    row = dtypes.dtype(name)
    size = kernels.SMALL_BYTES // row.itemsize + data.draw(st.integers(1, 3 * lanes.BLOCK))
    array = np.zeros(size, row.numpy)
    start = data.draw(st.integers(0, size - seed.size))
    array[start : start + seed.size] = seed
    array.flags.writeable = data.draw(st.booleans())
    expected = reference(array, array.nbytes)
    scale = largest_magnitude(expected)
    assert_agrees(statistics(array, name), expected, scale)
    rows = kernels.float_rows(name) if row.is_float else kernels.int_rows()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stats, "row_kernel", lambda name, is_small: rows)
        assert_agrees(statistics(array, name), expected, scale)


def test_documented_values() -> None:
    """Source: measured with MindSpore 2.0.0."""
    numbers = statistics(np.array([0, -0.0, 1.5, -2.5, np.nan, np.inf, -np.inf], np.float32), "float32")
    assert (numbers.max, numbers.min, numbers.avg, numbers.count) == (1.5, -2.5, -0.25, 7)
    assert (numbers.negative, numbers.positive, numbers.nan) == (1, 1, 1)
    assert (numbers.negative_inf, numbers.positive_inf, numbers.zero) == (1, 1, 2)


def test_average_is_over_all_elements() -> None:
    """MindSpore took the first of 32 parts for the whole."""
    array = np.concatenate([np.full(10000, 1.0), np.full(10001, 5.0)]).astype(np.float32)
    assert statistics(array, "float32").avg == pytest.approx((10000 + 50005) / 20001)


@pytest.mark.parametrize("array", [np.zeros((0, 3), np.float32), np.full(5, np.nan, np.float32)])
def test_without_finite_values_there_is_no_maximum(array: Array) -> None:
    numbers = statistics(array, "float32")
    assert (numbers.max, numbers.min, numbers.avg) == (None, None, None)


def test_negative_zero_is_said_as_zero() -> None:
    numbers = statistics(np.full(3, -0.0, np.float16), "float16")
    assert [math.copysign(1, value) for value in (numbers.max, numbers.min, numbers.avg)] == [1, 1, 1]  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [1e300, 1e-300, 5e-324])
def test_float64_at_the_ends_of_its_range(value: float) -> None:
    numbers = statistics(np.full(400, value), "float64")
    assert numbers.avg == pytest.approx(value)
    assert numbers.l2norm == pytest.approx(20 * value)


@pytest.mark.parametrize("name", ["float32", "float16", "int16"])
def test_threads_do_not_change_a_bit(name: str) -> None:
    array = (np.random.default_rng(1).standard_normal(3_000_001) * 100).astype(dtypes.dtype(name).numpy)
    alone = statistics(array, name)
    assert [statistics(array, name, thread_count) for thread_count in (2, 3, 5)] == [alone] * 3


@pytest.mark.parametrize("name", ["complex64", "hifloat8", "string"])
def test_dtypes_without_order_are_refused(name: str) -> None:
    with pytest.raises(DtypeError, match=name):
        statistics(np.zeros(2, np.complex64), name)


def test_an_array_of_another_dtype_is_refused() -> None:
    with pytest.raises(DtypeError, match=r"expected an array of bfloat16, got one of uint16"):
        statistics(np.zeros(2, np.uint16), "bfloat16")


SCRIPT = """
import sys
import numpy as np
from msdump.statistics.stats import statistics
statistics(np.ones(100, np.float32), "float32")
assert "numba" not in sys.modules, "small tensors must not wait for a compiler"
print(statistics(np.ones(200_000, np.float32), "float32").l2norm ** 2)
"""


def test_small_arrays_wait_for_no_compiler() -> None:
    run = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert float(run.stdout) == pytest.approx(200_000)


@pytest.mark.parametrize("error", [RuntimeError("no locator available"), PermissionError(13, "read-only home")])
def test_machine_code_that_cannot_be_kept_is_made_anew(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    numba = pytest.importorskip("numba")
    compile_ = numba.njit

    def njit(*args: Any, cache: bool = False, **options: Any) -> Any:
        if cache:
            raise error
        return compile_(*args, **options)

    monkeypatch.setattr(numba, "njit", njit)
    kernel = kernels.compiled_rows("int8")
    assert kernel is not None
    extremes, sums, counts = np.empty((1, 2), np.int8), np.empty((1, 2)), np.empty((1, 5), np.int64)
    kernel(np.array([-3, 0, 5], np.int8), extremes, sums, counts)
    assert extremes.tolist() == [[5, -3]]
    assert sums.tolist() == [[2.0, 34.0]]


def test_without_a_compiler_everything_still_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    kernels.row_kernel.cache_clear()
    try:
        assert statistics(np.ones(200_000, np.float16), "float16").avg == 1.0
    finally:
        kernels.row_kernel.cache_clear()


# -- has_non_finite ------------------------------------------------------------------------------------------------


def breaks(array: Array, name: str) -> bool:
    """The same the slow and obvious way."""
    if dtypes.dtype(name).kind not in (dtypes.FLOAT, dtypes.COMPLEX) or not array.size:
        return False
    with np.errstate(all="ignore"):
        wide = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
        is_broken = ~np.isfinite(wide)
        if array.dtype.itemsize == 1:
            codes = 1 << {"float6_e3m2": 6, "float6_e2m3": 6, "float4_e2m1": 4}.get(name, 8)
            every = np.arange(codes, dtype=np.uint8).view(array.dtype).astype(np.float64)
            if not np.isinf(every).any():
                is_broken |= np.abs(wide) == np.nanmax(np.abs(every))
    return bool(is_broken.any())


@quick
@given(st.data())
def test_a_search_finds_what_is_not_finite_or_is_saturated(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(DTYPES))
    array = data.draw(tensors(dtypes=[name]))
    assert has_non_finite(array, name) == breaks(array, name)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64", "complex64", "float8_e5m2"])
@settings(max_examples=10, deadline=None)
@given(st.data())
def test_one_bad_value_anywhere_in_a_large_array_is_found(name: str, data: st.DataObject) -> None:
    row = dtypes.dtype(name)
    size = (400 << 10) // row.itemsize
    array = np.zeros(size, row.numpy)
    array[:] = np.array([data.draw(st.sampled_from([0.0, -1.0, 448.0, 5e4]))]).astype(row.numpy)
    assert not has_non_finite(array, name)
    array[data.draw(st.integers(0, size - 1))] = data.draw(st.sampled_from([math.nan, math.inf, -math.inf]))
    assert has_non_finite(array, name)
    assert has_non_finite(array.reshape(-1, 16).T, name)


def test_hifloat8_is_searched_by_its_codes() -> None:
    bad = [code for code in range(256) if has_non_finite(np.array([0, code], np.uint8), "hifloat8")]
    assert bad == [0x6E, 0x6F, 0x80, 0xEE, 0xEF]


@pytest.mark.parametrize("ones", [0, 1, 2, 3])
def test_a_single_true_is_the_maximum(ones: int) -> None:
    numbers = statistics(np.arange(3) < ones, "bool")
    assert (numbers.max, numbers.min, numbers.zero) == (int(ones > 0), int(ones == 3), 3 - ones)


def test_an_error_in_another_thread_is_not_lost() -> None:
    def work(first: int, last: int) -> None:
        if first:
            raise MemoryError(f"rows {first} to {last}")

    with pytest.raises(MemoryError, match="rows 5 to 10"):
        stats.in_threads(work, 10, 2)


def test_bytes_that_lie_right_are_not_copied() -> None:
    plain = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert np.shares_memory(np.frombuffer(stats.raw_bytes(plain), np.uint8), plain)
    swapped = plain.astype(plain.dtype.newbyteorder(">"))
    assert bytes(stats.raw_bytes(swapped)) == bytes(stats.raw_bytes(plain.T.copy().T)) == plain.astype("<f4").tobytes()

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.statistics import kernels, lanes
from msdump.statistics.kernels import SegmentKernel
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array
from msdump.tensors.float_bits import FLOATS

numba: Any = pytest.importorskip("numba")

SIZES = st.one_of(
    st.integers(0, 3 * lanes.STEP),
    st.sampled_from([lanes.PIECE, lanes.BLOCK, 2 * lanes.BLOCK]).flatmap(
        lambda size: st.integers(size - lanes.STEP - 1, size + lanes.STEP + 1)
    ),
)
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1.0, -1.0]


def rows(count: int, key: Any) -> tuple[Array, Array, Array]:
    return np.empty((count, 2), key), np.empty((count, 2)), np.empty((count, 5), np.int64)


def assert_rows_agree(kernel: SegmentKernel, name: str, data: st.DataObject) -> None:
    """Segments of all lengths, with special values anywhere, beside numpy one segment at a time."""
    sizes = data.draw(st.lists(SIZES, min_size=1, max_size=4))
    starts = np.cumsum([0, *sizes])
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    sign = data.draw(st.sampled_from([1, -1, 0]))
    wide = rng.standard_normal(starts[-1]) * 100
    values = (np.abs(wide) * sign if sign else wide).astype(dtypes.dtype(name).numpy)
    places = data.draw(st.lists(st.tuples(st.floats(0, 1), st.sampled_from(SPECIAL)), max_size=6))
    for share, value in places:
        if len(values):
            values[int(share * (len(values) - 1))] = value
    extremes, sums, counts = rows(len(sizes), FLOATS[name].key)
    kernel(values, starts, extremes, sums, counts)
    for index, (start, stop) in enumerate(itertools.pairwise(starts)):
        if start == stop:
            assert not sums[index].any() and not counts[index].any()
            continue
        expected = rows(1, FLOATS[name].key)
        with np.errstate(all="ignore"):
            kernels.float_rows(name)(values[start:stop], *expected)
        assert extremes[index].tolist() == expected[0][0].tolist()
        assert counts[index].tolist() == expected[2][0].tolist()
        scale = 1e-12 * float(expected[1][0, 1]) ** 0.5 * (stop - start) + 1e-300
        assert sums[index] == pytest.approx(expected[1][0], rel=1e-9, abs=scale)


@pytest.mark.parametrize("name", FLOATS)
@settings(max_examples=40, deadline=None)
@given(st.data())
def test_rows_agree_with_numpy(name: str, data: st.DataObject) -> None:
    kernel = kernels.compiled_segments(name)
    assert kernel is not None
    assert_rows_agree(kernel, name, data)


@pytest.fixture
def without_half_instructions(monkeypatch: pytest.MonkeyPatch) -> SegmentKernel:
    monkeypatch.setattr(lanes, "_has_half_instructions", lambda: False)
    # The machine code on disk is that with these instructions.
    monkeypatch.setattr(kernels, "compiled", lambda source, signature: numba.njit(signature, nogil=True)(source))
    kernel = kernels.compiled_segments.__wrapped__("float16")
    assert kernel is not None
    return kernel


def test_processors_without_float16(without_half_instructions: SegmentKernel) -> None:
    @settings(max_examples=40, deadline=None)
    @given(st.data())
    def agree(data: st.DataObject) -> None:
        assert_rows_agree(without_half_instructions, "float16", data)

    agree()


@pytest.mark.parametrize(("option", "value"), [("CPU_NAME", "generic"), ("CPU_FEATURES", "+sse2")])
def test_other_processors_are_not_asked_for_float16(option: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba.config, option, value)
    assert not lanes._has_half_instructions()


@pytest.mark.parametrize("name", FLOATS)
def test_every_float16_widens_to_itself(name: str) -> None:
    """Subnormal numbers too: the sum of each value and zeros is the value."""
    row = dtypes.dtype(name)
    if row.itemsize != 2:
        pytest.skip("too many values")
    every = np.arange(1 << 16, dtype=np.uint16).view(row.numpy)
    with np.errstate(all="ignore"):
        wide = every.astype(np.float64)
    finite = every[np.isfinite(wide)]
    values = np.zeros((len(finite), lanes.STEP), row.numpy)
    values[np.arange(len(finite)), np.arange(len(finite)) % lanes.STEP] = finite
    starts = np.arange(0, values.size + 1, lanes.STEP)
    extremes, sums, counts = rows(len(finite), FLOATS[name].key)
    kernel = kernels.compiled_segments(name)
    assert kernel is not None
    kernel(values.reshape(-1), starts, extremes, sums, counts)
    assert np.array_equal(sums[:, 0], wide[np.isfinite(wide)])
    assert np.array_equal(sums[:, 1], np.square(wide[np.isfinite(wide)]))

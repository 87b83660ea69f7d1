"""MD5 of tensors: hashlib is the reference, whichever way the digest is made."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.errors import DtypeError
from msdump.statistics import md5
from msdump.statistics.md5 import md5_hex, md5_many
from msdump.statistics.stats import MeasuredArray
from msdump.tensors.arrays import Array
from msdump.testing import tensors

quick = settings(max_examples=60, deadline=None)

# Around the ends of blocks, where padding takes one block or two.
SIZES = st.one_of(
    st.integers(0, 200),
    st.builds(lambda blocks, more: max(0, 64 * blocks + more), st.integers(0, 70), st.integers(-9, 9)),
    st.integers(10_000, 40_000),
)


def reference(array: Array) -> str:
    little = array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("<"))
    return hashlib.md5(little.tobytes()).hexdigest()


def some_bytes(size: int, seed: int = 0) -> Array:
    return np.random.default_rng([size, seed]).integers(0, 256, size, np.uint8)


@pytest.fixture
def all_in_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lanes take whatever they can."""
    pytest.importorskip("numba")
    monkeypatch.setattr(md5, "_LANE_BYTES", 0)
    monkeypatch.setattr(md5, "_gains", lambda sizes: True)


def test_md5_check_values() -> None:
    """Source: MindSpore's own tests."""
    left = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    right = np.array([[7, 8, 9], [10, 11, 12]], np.float32)
    assert md5_hex(left) == "fa85978152c7dfb5f1322082915cb050"
    assert md5_hex(right) == "9fd3b07ba2cfea7833f1da3a2960aadd"
    assert md5_hex(left + right) == "72bb57525231b5c8d3176bc5497f8aa0"


@quick
@given(tensors())
def test_md5_is_that_of_the_raw_bytes_in_c_order(array: Array) -> None:
    little = array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("<"))
    assert md5_hex(array) == hashlib.md5(little.tobytes()).hexdigest()


@quick
@given(st.lists(st.tuples(SIZES, st.integers(0, 7)), max_size=40))
def test_lanes_say_what_hashlib_says(made: list[tuple[int, int]]) -> None:
    pytest.importorskip("numba")
    arrays = [some_bytes(size + offset, seed)[offset:] for seed, (size, offset) in enumerate(made)]
    assert md5.in_lanes(arrays) == [reference(array) for array in arrays]


@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 15, 16, 17, 33])
def test_any_number_of_messages_fits_the_lanes(count: int) -> None:
    pytest.importorskip("numba")
    arrays = [some_bytes(1000 + 64 * (number % 5), number) for number in range(count)]
    assert md5.in_lanes(arrays) == [reference(array) for array in arrays]


def test_messages_of_very_different_sizes_change_lanes() -> None:
    """Lanes move when others end: a long message among many short ones, whatever the order."""
    pytest.importorskip("numba")
    arrays = [some_bytes(size) for size in (300_000, *range(0, 4000, 97), 200_000, 64, 0, 0)]
    for order in (arrays, arrays[::-1]):
        assert md5.in_lanes(order) == [reference(array) for array in order]


@quick
@given(st.lists(tensors(), max_size=24))
@pytest.mark.usefixtures("all_in_lanes")
def test_tensors_of_any_layout_are_digested_in_c_order(arrays: list[Array]) -> None:
    assert md5_many(arrays) == [reference(array) for array in arrays]


def test_large_arrays_are_digested_in_their_place_or_one_by_one() -> None:
    """Around the limits of what lanes take, with views that are not contiguous and other byte orders."""
    base = np.random.default_rng(1).standard_normal((600, 700)).astype(np.float32)
    arrays = [base + 1, base.T, base[:, ::2], base.astype(">f4"), base[3:], base[:1], base[:0], base + 2]
    assert md5_many(arrays) == [reference(array) for array in arrays]


def test_read_only_arrays_and_bytes_in_memory_maps_are_taken(tmp_path: Path) -> None:
    array = some_bytes(400_000)
    (tmp_path / "bytes").write_bytes(array.tobytes())
    mapped = [np.memmap(tmp_path / "bytes", np.uint8, "r") for _ in range(4)]
    assert md5_many(mapped) == [reference(array)] * 4


def test_numbers_without_bytes_have_no_digest() -> None:
    measured = MeasuredArray((2000,), np.dtype(np.float32), None)
    with pytest.raises(DtypeError, match="expected the values of a tensor, got its statistics"):
        md5_many([measured, some_bytes(8000), some_bytes(1 << 20), some_bytes(1 << 20)])


def test_lanes_are_for_several_messages_of_similar_size(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    taken: list[int] = []
    monkeypatch.setattr(md5, "in_lanes", lambda arrays: taken.append(len(arrays)) or [reference(a) for a in arrays])
    one, several, small = [some_bytes(1 << 20)], [some_bytes(1 << 19)] * 4, [some_bytes(100)] * 50
    for arrays in (one, small, [*one, *small], [], several, [*several, *small, some_bytes(1 << 23)]):
        assert md5_many(arrays) == [reference(array) for array in arrays]
    assert taken == [4]


def test_without_a_compiler_hashlib_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    arrays = [some_bytes(1 << 20)] * 3
    assert md5_many(arrays) == [reference(array) for array in arrays]


def test_threads_digest_side_by_side() -> None:
    shares = [[some_bytes(100_000, 10 * share + number) for number in range(12)] for share in range(4)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(md5_many, shares)) == [[reference(array) for array in share] for share in shares]


SCRIPT = """
import sys
import numpy as np
from msdump.statistics.md5 import md5_many
md5_many([np.ones(2000, np.float32)] * 16)
assert "numba" not in sys.modules, "small tensors must not wait for a compiler"
"""


def test_small_arrays_wait_for_no_compiler() -> None:
    run = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr

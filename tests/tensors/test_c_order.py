from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.statistics.stats import measured_now, statistics
from msdump.tensors import c_order, tiles
from msdump.tensors.arrays import Array
from msdump.tensors.c_order import c_copy, copy_elements, in_c_order

pytest.importorskip("numba")

SIZES = st.sampled_from([1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 40, 65])


@pytest.fixture(autouse=True)
def small_arrays_are_tiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(c_order, "_TILED_BYTES", 0)


@st.composite
def views(draw: st.DrawFn) -> Array:
    """Arrays whose axes have changed places, with steps, backwards, parts, and repeated."""
    sizes = draw(st.lists(SIZES, min_size=1, max_size=4).filter(lambda sizes: np.prod(sizes) <= 50_000))
    dtype = draw(st.sampled_from(["u1", "<u2", ">u2", "f4", "f8", "c16", "S3"]))
    array = np.arange(np.prod(sizes)).astype("u8").astype(dtype).reshape(sizes)
    cut = draw(
        st.tuples(
            *(st.sampled_from([slice(None), slice(1, None), slice(None, None, -1), slice(0, None, 2)]) for _ in sizes)
        )
    )
    array = array[cut].transpose(draw(st.permutations(range(len(sizes)))))
    if draw(st.booleans()):
        array = np.broadcast_to(array, (draw(st.integers(1, 3)), *array.shape))
    return array


@settings(deadline=None)
@given(views())
def test_copies_are_numpys(array: Array) -> None:
    expected = np.array(array, order="C")
    for copy in (c_copy(array), in_c_order(array)):
        assert copy.flags.c_contiguous and copy.dtype == array.dtype
        assert copy.shape == expected.shape and copy.tobytes() == expected.tobytes()
    assert not np.shares_memory(c_copy(array), array)


@pytest.mark.parametrize("item_size", tiles.SIDES)
def test_matrices_of_every_size_are_tiled(item_size: int) -> None:
    """Blocks and their ends: more columns and rows than a block has, and no multiple of a tile."""
    side = tiles.SIDES[item_size]
    for rows, columns in [(side, side), (side + 1, 2 * side - 1), (65, 1025), (130, 2049), (3 * side, 40)]:
        matrix = np.random.default_rng(0).integers(0, 1 << 60, (rows, columns)).astype(f"u{item_size}")
        stacked = np.stack([matrix, matrix[::-1]])
        assert c_order.transposition(stacked.swapaxes(1, 2)) is not None
        assert np.array_equal(c_copy(stacked.swapaxes(1, 2)), np.array([matrix.T, matrix[::-1].T]))


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((64, 64))[1:, 1:],  # runs stay runs
        np.zeros((3, 4096), np.float32).T,  # too narrow
        np.zeros((64, 64))[:, ::2].T,  # no axis whose elements lie one behind the other
        np.broadcast_to(np.zeros(1, np.float32), (64, 64)),
    ],
)
def test_what_is_left_to_numpy(array: Array) -> None:
    assert c_order.transposition(array) is None
    assert np.array_equal(c_copy(array), array)


def test_what_is_contiguous_stays_itself() -> None:
    for array in (np.zeros(()), np.zeros((2, 3)), np.zeros((0, 3)).T):
        assert in_c_order(array) is array


def test_targets_of_another_form_are_numpys() -> None:
    array = np.arange(64 * 64, dtype=np.float32).reshape(64, 64).T
    for target in (np.zeros((64, 64), np.float64), np.zeros((64, 128), np.float32)[:, ::2], np.zeros((64, 64), "f4").T):
        copy_elements(target, array)
        assert np.array_equal(target, array)


def test_what_has_statistics_alone_keeps_them() -> None:
    array = measured_now(np.arange(5, dtype=np.float32), "float32")
    assert statistics(c_copy(array), "float32").max == 4


def test_objects_keep_their_references() -> None:
    array = np.array([[object() for _ in range(40)] for _ in range(40)]).T
    copy = c_copy(array)
    assert all(copy[row, column] is array[row, column] for row in range(40) for column in range(40))


def test_elements_that_lie_askew_are_numpys() -> None:
    memory = np.zeros(64 * 64 * 4 + 1, np.uint8)
    array = memory[1:].view(np.float32).reshape(64, 64).T
    assert not c_order.is_worth_it(array)
    assert c_order.is_worth_it(array.copy("K"))


def test_small_arrays_wait_for_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "msdump.tensors.tiles")
    array = np.zeros((64, 64), np.float32).T
    assert not c_order.is_worth_it(array)
    monkeypatch.setattr(c_order, "_COMPILED_BYTES", 0)
    assert c_order.is_worth_it(array)


def test_without_a_compiler_everything_still_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(c_order, "has_compiler", lambda: False)
    array: Any = np.arange(64 * 64, dtype=np.float32).reshape(64, 64).T
    target = np.empty((64, 64), np.float32)
    copy_elements(target, array)
    assert np.array_equal(target, array)

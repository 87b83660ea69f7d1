"""Codes as numbers: scales of tensors, channels and blocks, and grids that the numbers beside codes tell."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import msdump
from msdump.analysis.compare.quantised.numbers import Grid, computed, fitted, grid
from msdump.analysis.steps import read_steps
from msdump.errors import FormatError
from tests.analysis.small_dump import write_dump

SCALES = st.floats(2.0**-20, 2.0**10, width=32)


@given(st.integers(0, 2**32 - 1), SCALES, st.integers(-128, 127), st.sampled_from(["int8", "uint8", "int16"]))
def test_numbers_and_codes_are_each_others_inverse(seed: int, scale: float, zero: int, dtype: str) -> None:
    ends = np.iinfo(dtype)
    codes = np.random.default_rng(seed).integers(ends.min, ends.max, (3, 4), dtype, endpoint=True)
    own = grid(scale, zero)
    numbers = own.numbers(codes)
    assert numbers.dtype == np.float32 and numbers.shape == codes.shape
    assert np.array_equal(own.rounded(numbers, ends.min, ends.max), numbers)


@given(st.integers(0, 2**32 - 1), SCALES, st.integers(0, 255))
def test_rounding_moves_a_number_by_half_a_step_at_most(seed: int, scale: float, zero: int) -> None:
    inside = np.random.default_rng(seed).uniform(-zero, 255 - zero, 100) * scale
    moved = np.abs(grid(scale, zero).rounded(inside, 0, 255) - inside)
    assert moved.max() <= scale * 0.501


@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_one_scale_for_each_channel(axis: int | None) -> None:
    shape = (3, 5) if axis in (0, None) else (5, 3)
    codes = np.ones(shape, np.int8)
    numbers = grid(np.array([1, 2, 3], np.float32), np.array([0, 1, 3], np.int8), axis).numbers(codes)
    rows = numbers if axis in (0, None) else numbers.T
    assert np.array_equal(rows, np.repeat([[1.0], [0.0], [-6.0]], 5, axis=1))


def test_one_scale_for_each_block() -> None:
    codes = np.ones((2, 6), np.int8)
    numbers = Grid(np.array([[1.0, 2.0], [3.0, 4.0]]), np.zeros(1)).numbers(codes)
    assert numbers.tolist() == [[1, 1, 1, 2, 2, 2], [3, 3, 3, 4, 4, 4]]
    # The last block may be short.
    assert Grid(np.array([[1.0, 2.0]]), np.zeros(1)).numbers(np.ones((1, 3), np.int8)).tolist() == [[1, 1, 2]]


def test_one_scale_for_each_row() -> None:
    numbers = grid(np.array([[1.0, 2.0], [3.0, 4.0]])).numbers(np.ones((2, 2, 3), np.int8))
    assert numbers[..., 0].tolist() == [[1, 2], [3, 4]] and numbers[1, 1].tolist() == [4, 4, 4]


def test_scales_that_do_not_fit_are_refused() -> None:
    with pytest.raises(FormatError, match="one for each channel of codes"):
        grid(np.ones(4, np.float32)).numbers(np.ones((2, 3), np.int8))
    with pytest.raises(FormatError, match="expected the axes of codes"):
        grid(np.ones((2, 2, 2), np.float32)).numbers(np.ones((2, 3), np.int8))


def test_a_scale_of_zero_makes_zeros_and_rounds_to_zeros() -> None:
    own = grid(0.0, 3)
    assert not own.numbers(np.arange(5, dtype=np.uint8)).any()
    assert not own.rounded(np.array([-1.0, 0.0, 2.0]), 0, 255).any()


def test_four_bits() -> None:
    codes = np.array([-8, 7, 0]).astype(ml_dtypes.int4)
    assert grid(0.5, np.asarray(1).astype(ml_dtypes.int4)).numbers(codes).tolist() == [-4.5, 3.0, -0.5]


def test_bits_of_a_float_in_an_integer() -> None:
    scales = np.array([0.25, 2.0], np.float32)
    packed = scales.view(np.uint32).astype(np.uint64) | np.uint64(1 << 40)
    assert grid(packed).scale.tolist() == [0.25, 2.0]


@given(st.integers(0, 2**32 - 1), SCALES, st.integers(0, 255))
def test_numbers_beside_codes_tell_the_grid(seed: int, scale: float, zero: int) -> None:
    codes = np.random.default_rng(seed).integers(0, 256, 200).astype(np.uint8)
    numbers = grid(scale, zero).numbers(codes)
    own = fitted(codes, numbers)
    assert own is not None and own.zero.item() == zero
    assert own.scale.item() == pytest.approx(scale, rel=1e-5)


def test_what_was_clipped_does_not_mislead_a_fit() -> None:
    numbers = np.linspace(-10, 10, 401)
    codes = np.clip(np.rint(numbers / 0.05), -128, 127).astype(np.int8)
    own = fitted(codes, numbers)
    assert own is not None and own.scale.item() == pytest.approx(0.05, rel=1e-3)


@pytest.mark.parametrize("codes", [[], [1], [2, 2, 2], [0, 255]])
def test_too_few_codes_tell_no_grid(codes: list[int]) -> None:
    assert fitted(np.array(codes, np.uint8), np.array(codes, np.float32)) is None
    assert fitted(np.array(codes, np.uint8), np.ones(9, np.float32)) is None


def test_a_computed_tensor_stands_in_the_place_of_its_codes(tmp_path: Path) -> None:
    codes = np.arange(6, dtype=np.int8).reshape(2, 3)
    (step,) = read_steps(msdump.open(write_dump(tmp_path, [("D/Add-op0", {("output", 0): codes})])))
    (tensor,) = step.operators[0].outputs.values()
    half, whole = grid(0.5).of(tensor), grid(1.0).of(tensor)
    assert half.load().tolist() == half.load_host().tolist() == [[0, 0.5, 1], [1.5, 2, 2.5]]
    assert (half.true_dtype, half.shape, half.size_bytes, half.path) == ("float32", (2, 3), 24, tensor.path)
    assert len({half.content_id, whole.content_id, tensor.content_id}) == 3
    assert half.content_id == grid(0.5).of(tensor).content_id
    assert half.claimed_hash is None and half.content_hash is None
    assert computed(tensor, lambda: np.zeros(6), "a").content_id != computed(tensor, lambda: np.zeros(6)).content_id

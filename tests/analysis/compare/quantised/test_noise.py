"""Noise of weights and activations: signal to noise, the channel with an outlier, the share that a range clips."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msdump.analysis.compare.quantised.noise import (
    activation_noise,
    folded_cut,
    lost_channel,
    relative_error,
    sqnr_db,
    weight_noise,
)
from msdump.analysis.compare.quantised.numbers import grid

NO_CUT = (-math.inf, math.inf)
seeds = st.integers(0, 2**32 - 1)


def rounded(values: np.ndarray, bits: int = 8) -> np.ndarray:
    top = 2 ** (bits - 1) - 1
    return grid(float(np.abs(values).max() / top)).rounded(values, -top - 1, top)


@given(seeds, st.floats(0.01, 100))
def test_signal_to_noise_does_not_depend_on_the_unit(seed: int, unit: float) -> None:
    values = np.random.default_rng(seed).standard_normal(50)
    noisy = rounded(values).astype(np.float64)
    assert sqnr_db(values * unit, noisy * unit) == pytest.approx(sqnr_db(values, noisy), abs=1e-6)


def test_errors_at_their_ends() -> None:
    some, none = np.array([1.0, 2.0]), np.zeros(2)
    assert relative_error(some, some) == relative_error(none, none) == 0
    assert relative_error(some, none) == math.inf == relative_error(some, np.ones(3))
    assert sqnr_db(some, some) == math.inf and sqnr_db(none, some) == -math.inf
    assert relative_error(np.array([1.0, np.nan]), some) == 0
    assert sqnr_db(some, none) == 0


@given(seeds, st.integers(0, 7), st.sampled_from([0, 1, -1]))
def test_the_channel_of_an_outlier_is_found(seed: int, channel: int, axis: int) -> None:
    rng = np.random.default_rng(seed)
    weight = rng.uniform(-1, 1, (8, 40))
    weight[channel, 3] = 30
    weight = weight if axis == 0 else weight.T
    noise = weight_noise(weight, rounded(weight), 8, axis)
    assert (noise.channel, noise.outliers, noise.bits) == (channel, 1, 8)
    assert noise.factor == pytest.approx(30, rel=0.2) and noise.sqnr_db < 35


@given(seeds)
def test_an_ordinary_weight_has_no_outlier(seed: int) -> None:
    weight = np.random.default_rng(seed).standard_normal((8, 40))
    noise = weight_noise(weight, rounded(weight), 8, 0)
    assert noise.channel is None and noise.sqnr_db > 35


def test_a_weight_of_zeros_in_codes_has_no_signal_left() -> None:
    weight = np.ones((3, 4))
    assert weight_noise(weight, np.zeros((3, 4)), 8, 0).sqnr_db == pytest.approx(0)
    assert weight_noise(np.zeros((0, 4)), np.zeros((0, 4)), 8, 0).sqnr_db == math.inf
    assert weight_noise(np.array(2.0), np.array(1.0), 8, 0).channel is None
    assert weight_noise(np.ones((2, 3)), np.ones((3, 2)), None, 0).sqnr_db == math.inf


def lost(weight: np.ndarray, codes: np.ndarray, came_in: float = 0.01, bits: int = 8) -> tuple[int, int] | None:
    """Channel and count, of a product with data that have an error of their own."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((512, weight.shape[1]))
    noise = rng.standard_normal(x.shape)
    both = x @ weight.T, (x + came_in * noise) @ codes.T
    found = lost_channel((weight, codes), both, bits, 0, came_in)
    return None if found is None else (found.channel, found.count)


@given(seeds, st.integers(0, 7), st.sampled_from([0.0, 0.5, 1.5, 2.0, -1.0]))
def test_a_channel_with_another_scale_is_lost(seed: int, channel: int, factor: float) -> None:
    weight = np.random.default_rng(seed).standard_normal((8, 40))
    wrong = rounded(weight)
    assert lost(weight, wrong) is None
    wrong[channel] *= factor
    assert lost(weight, wrong) == (channel, 1)
    # What was read is as far off: it shows nothing.
    assert lost(weight, wrong, came_in=5.0) is None


@given(seeds, st.integers(0, 7))
def test_a_large_channel_loses_those_beside_it(seed: int, channel: int) -> None:
    weight = np.random.default_rng(seed).uniform(-1, 1, (8, 40))
    small = weight.copy()
    weight[channel] *= 60
    found = lost(weight, rounded(weight))
    assert found is not None and found[0] != channel and found[1] >= 6
    # Where it has a scale of its own they have their bits; where it is the usual size, one that is small counts little.
    assert lost(weight, np.stack([rounded(row) for row in weight])) is None
    small[channel] /= 60
    assert lost(small, rounded(small)) is None


@given(seeds, st.integers(0, 7))
def test_a_channel_that_is_far_smaller_than_the_others_counts_for_little(seed: int, channel: int) -> None:
    for factor, expected in ((3.3, (channel, 1)), (8.0, None)):
        weight = np.random.default_rng(seed).uniform(-1, 1, (8, 60))
        weight[channel] /= factor
        codes = np.stack([rounded(row) for row in weight])
        codes[channel] = 0
        assert lost(weight, codes) == expected


@given(seeds)
def test_few_bits_lose_no_channel(seed: int) -> None:
    weight = np.random.default_rng(seed).standard_normal((8, 40))
    for bits in (3, 4, 6):
        assert lost(weight, np.stack([rounded(row, bits) for row in weight]), bits=bits) is None


def test_a_weight_of_other_shape_loses_no_channel() -> None:
    ones = np.ones((4, 5))
    assert lost_channel((np.ones((6, 30)), np.zeros((6, 30))), (ones, 2 * ones), 8, 0, 0.01) is None


@given(seeds, st.floats(0.05, 0.9))
def test_the_share_of_clipped_values(seed: int, part: float) -> None:
    values = np.random.default_rng(seed).uniform(0, 1, 500)
    own = grid(part / 255)
    after = own.rounded(values, 0, 255)
    noise = activation_noise(values, after, np.rint(after / (part / 255)), (0, 255), NO_CUT)
    # What lies within half a step of the end is rounded to it.
    assert noise.clipped == pytest.approx(np.mean(values > part + 0.51 * part / 255), abs=0.003)
    assert noise.limit == pytest.approx(part, rel=1e-3) and noise.reach == pytest.approx(values.max())
    # Without codes the values at the ends tell the same, as far as both ends are there.
    assert activation_noise(values, after, None, None, NO_CUT).clipped == pytest.approx(noise.clipped, abs=0.01)


@given(seeds)
def test_rounding_alone_clips_nothing(seed: int) -> None:
    values = np.random.default_rng(seed).standard_normal(200)
    after = rounded(values)
    noise = activation_noise(values, after, None, None, NO_CUT)
    assert (noise.clipped, noise.limit, noise.reach) == (0, 0, 0) and noise.sqnr_db > 30


def test_what_a_folded_activation_cuts_off_is_not_clipped() -> None:
    before = np.linspace(-2, 2, 101)
    after = grid(2 / 255).rounded(before, 0, 255)
    codes = np.rint(after / (2 / 255))
    cut = folded_cut(np.maximum(before, 0), True)
    assert cut == (0, math.inf)
    assert activation_noise(before, after, codes, (0, 255), cut).clipped == 0
    assert activation_noise(before, after, codes, (0, 255), folded_cut(before, False)).clipped > 0.4
    assert folded_cut(np.clip(before, 0, 1), True) == (0, 1)
    assert folded_cut(np.empty(0), True) == NO_CUT == folded_cut(before, True)


def test_noise_of_another_run_is_what_the_step_makes() -> None:
    rng = np.random.default_rng(0)
    golden = rng.uniform(0, 1, 4000)
    before = golden + 0.1 * rng.standard_normal(4000)
    after = grid(2 / 255).rounded(before, 0, 255)
    own = activation_noise(before, after, None, (0, 255), NO_CUT).sqnr_db
    assert activation_noise(golden, after, None, (0, 255), NO_CUT).sqnr_db < 20
    assert activation_noise(golden, after, None, (0, 255), NO_CUT, is_same_run=False).sqnr_db > own - 8


def test_how_many_codes_occur() -> None:
    values = np.linspace(0, 1, 300)
    for scale, used in ((1 / 255, 256), (16 / 255, 17)):
        after = grid(scale).rounded(values, 0, 255)
        assert activation_noise(values, after, np.rint(after / scale), (0, 255), NO_CUT).used == used
    assert activation_noise(values, values, None, None, NO_CUT).used is None


@pytest.mark.parametrize("part", [1.0, 0.5])
def test_rows_have_steps_of_their_own(part: float) -> None:
    """A row of small numbers has a step that is far smaller than what rounding moves those of another row by."""
    values = np.random.default_rng(0).uniform(-1, 1, (2, 200)) * np.array([[1.0], [0.001]])
    scale = part * np.abs(values).max(axis=1, keepdims=True) / 127
    codes = np.clip(np.rint(values / scale), -128, 127)
    noise = activation_noise(values, codes * scale, codes, (-128, 127), NO_CUT, has_row_scales=True)
    assert (noise.clipped == 0) is (part == 1.0) and noise.clipped == pytest.approx(1 - part, abs=0.1)


def test_tensors_that_tell_nothing() -> None:
    assert math.isnan(activation_noise(np.empty(0), np.empty(0), None, None, NO_CUT).sqnr_db)
    assert math.isnan(activation_noise(np.ones(2), np.ones(3), None, None, NO_CUT).sqnr_db)
    assert activation_noise(np.ones(3), np.ones(3), None, (0, 15), NO_CUT).bits == 4

"""SpikeRule: what counts as a spike of a series of numbers."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msdump.engine.recording.triggers import SpikeRule

NUMBERS = st.floats(-1e6, 1e6)


def said(rule: SpikeRule, values: list[float]) -> list[str]:
    return [rule.add(value)[0] for value in values]


@given(st.lists(st.floats(0.99, 1.01), max_size=60))
def test_numbers_that_hardly_move_are_no_spikes(values: list[float]) -> None:
    assert said(SpikeRule("loss", 30.0), values) == [""] * len(values)


@given(st.lists(NUMBERS, min_size=16, max_size=40), st.floats(1.0, 100.0))
def test_one_far_above_all_others_is_a_spike_and_no_measure_for_the_next(values: list[float], limit: float) -> None:
    rule = SpikeRule("loss", limit)
    # Where most numbers are one, a thousandth of it counts as a standard deviation: all stay 0.8 limits apart at most.
    quiet = [1.0 + 4e-4 * limit * math.sin(value) for value in values]
    assert said(rule, quiet) == [""] * len(quiet)
    assert rule.add(1e9)[0] == "spike"
    assert rule.add(1e9)[0] == "spike"
    assert rule.add(1.0)[0] == ""


@given(st.lists(NUMBERS, max_size=15), NUMBERS)
def test_the_first_numbers_are_no_spikes(values: list[float], last: float) -> None:
    assert said(SpikeRule("loss", 8.0), [*values, last]) == [""] * (len(values) + 1)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_told_at_once(value: float) -> None:
    assert SpikeRule("grad_norm", 8.0).add(value) == ("nonfinite", f"grad_norm is {value}")


def test_numbers_that_fall_are_no_spikes() -> None:
    assert said(SpikeRule("loss", 8.0), [float(number) for number in range(100, -100, -1)]) == [""] * 200

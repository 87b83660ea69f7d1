"""Pictures in block characters: bounded, never without what is there."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from msdump.cli.blocks import _BLOCKS, BINS, exponent_bars, sparkline
from msdump.statistics.exponents import exponent_histogram
from tests.analysis.small_dump import Array


@given(hnp.arrays(np.float32, hnp.array_shapes(max_dims=1, max_side=40), elements=st.floats(width=32)))
def test_every_exponent_has_its_place(array: Array) -> None:
    histogram = exponent_histogram(array, "float32")
    assert histogram is not None
    text = exponent_bars(histogram)
    if not histogram.count:
        assert text == ""
        return
    first, _, rest = text.partition(" ")
    bars, _, last = rest.rpartition(" ")
    assert len(bars) <= BINS and set(bars) <= {*_BLOCKS, " "} and _BLOCKS[-1] in bars
    low, high = (int(end.removeprefix("2^")) for end in (first, last))
    magnitudes = np.abs(array[np.isfinite(array) & (array != 0)]).astype(np.float64)
    assert magnitudes.max() < 2.0**high
    width = (high - low) // len(bars)
    # What is too small for a normal number counts as one exponent, the first.
    places = np.maximum(np.floor(np.log2(magnitudes)).astype(int), low) - low
    assert {place // width for place in places} == {place for place, bar in enumerate(bars) if bar != " "}


@given(st.lists(st.none() | st.floats()))
def test_a_sparkline_has_a_bar_for_each(values: list[float | None]) -> None:
    text = sparkline(values)
    assert len(text) == len(values)
    heights = {}
    for value, bar in zip(values, text, strict=True):
        assert (bar == " ") == (value is None) and (bar == "!") == (value is not None and not math.isfinite(value))
        if bar in _BLOCKS:
            heights[value] = _BLOCKS.index(bar)
    assert [heights[value] for value in sorted(heights)] == sorted(heights.values())


@pytest.mark.parametrize(
    ("values", "text"), [([], ""), ([1, 1], "▅▅"), ([0, 6, 8], "▁▇█"), ([-1e308, 1e308, math.nan, None], "▁█! ")]
)
def test_sparklines(values: list[float | None], text: str) -> None:
    assert sparkline(values) == text

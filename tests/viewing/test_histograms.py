"""A histogram counts every element once, whatever the elements are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from msdump.viewing import histograms
from msdump.viewing.histograms import blocks, histogram

ELEMENTS = arrays_of.arrays(np.float64, st.integers(0, 40))


def of(values: np.ndarray, is_log: bool = False) -> dict[str, Any]:
    return histogram(lambda: (values,), is_log)


@given(values=ELEMENTS, is_log=st.booleans())
def test_every_element_is_counted_once(values: np.ndarray, is_log: bool) -> None:
    found = of(values, is_log)
    elsewhere = found["nan"] + found["negative_inf"] + found["positive_inf"] + (found["zero"] if is_log else 0)
    assert sum(found["counts"]) + elsewhere == found["count"] == values.size
    assert len(found["edges"]) == (len(found["counts"]) + 1 if found["counts"] else 0)
    assert all(one < other for one, other in zip(found["edges"], found["edges"][1:], strict=False))


def test_bins_of_one_width() -> None:
    found = of(np.linspace(-1, 1, 129))
    assert (len(found["counts"]), found["edges"][0], found["edges"][-1]) == (histograms.BINS, -1, 1)
    assert set(found["counts"][:-1]) == {2}


def test_bins_of_powers_of_ten() -> None:
    found = of(np.asarray([0.0, 1e-3, -1e-3, 2.0, 5.0]), True)
    assert found["zero"] == 1 and found["edges"][0] == pytest.approx(1e-3)
    filled = [(edge, count) for edge, count in zip(found["edges"], found["counts"], strict=False) if count]
    assert [count for _, count in filled] == [2, 1, 1]


def test_blocks_are_one_array(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(histograms, "_BLOCK", 7)
    one, other = np.arange(30).reshape(5, 6), np.arange(30)
    parts = list(blocks(one, other))
    assert len(parts) == 5
    np.testing.assert_array_equal(np.concatenate([part[0] for part in parts]), other)
    assert histogram(lambda: (part[0] for part in blocks(one)), False) == of(other)


def test_numbers_far_apart() -> None:
    most = np.finfo(np.float64).max
    assert sum(of(np.asarray([-most, most]))["counts"]) == 2
    assert sum(of(np.asarray([5e-324, most]), True)["counts"]) == 2

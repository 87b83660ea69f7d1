"""Elements counted by sign and exponent agree with a count by Python's own arithmetic."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from msdump.errors import DtypeError
from msdump.statistics.exponents import ExponentHistogram, exponent_histogram, merged
from msdump.tensors import dtypes

NAMES = ["float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2", "int8", "uint64", "int64", "bool"]


@st.composite
def arrays(draw, name):
    dtype = dtypes.BY_NAME[name].numpy
    codes = npst.arrays(f"u{dtype.itemsize}", draw(st.integers(0, 40)), fill=st.nothing())
    if name == "bool":
        return draw(codes) % 2 == 1
    return draw(codes).view(dtype)


def counted(array, is_wide):
    """{(sign, exponent): elements}, one element after the other."""
    found = {}
    for value in array.reshape(-1).tolist():
        value = int(value) if array.dtype.kind in "biu" else float(value)
        if value and (isinstance(value, int) or math.isfinite(value)):
            exponent = abs(value).bit_length() - 1 if isinstance(value, int) else math.frexp(value)[1] - 1
            if is_wide:
                exponent = max(exponent, int(np.finfo(array.dtype).minexp) - 1)
            key = value > 0, exponent
            found[key] = found.get(key, 0) + 1
    return found


def as_counts(histogram):
    sides = ((True, histogram.positive), (False, histogram.negative))
    return {
        (sign, histogram.first + place): count for sign, counts in sides for place, count in enumerate(counts) if count
    }


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_each_element_counts_once(name, data):
    array = data.draw(arrays(name))
    histogram = exponent_histogram(array, name)
    assert as_counts(histogram) == counted(array, name in ("float32", "float64"))
    assert len(histogram.positive) == len(histogram.negative)
    if histogram.positive:
        ends = (0, -1)
        assert all(histogram.positive[end] + histogram.negative[end] for end in ends)


@given(data=st.data(), name=st.sampled_from(NAMES))
def test_histograms_of_parts_add_up(data, name):
    array = data.draw(arrays(name))
    cut = data.draw(st.integers(0, array.size))
    parts = [exponent_histogram(part, name) for part in (array[:cut], array[cut:])]
    assert merged(*parts) == exponent_histogram(array, name)


def test_more_than_one_chunk():
    array = np.repeat(np.float32([1, -3, 0, np.nan]), 40_000)
    assert exponent_histogram(array, "float32") == ExponentHistogram(0, (40_000, 0), (0, 40_000))


def test_what_has_no_order_has_no_exponents():
    assert exponent_histogram(np.zeros(2, np.complex64), "complex64") is None
    with pytest.raises(DtypeError, match="expected a known dtype, got 'nothing'"):
        exponent_histogram(np.zeros(2), "nothing")

"""Lines that compiled code makes of measured tensors: those that Python makes of the same."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from msdump.formats.statistic_csv import number_columns
from msdump.frontends.torch.eager.native_tables import CompiledTable
from msdump.statistics.measured import MeasuredNumbers, RowFrames
from msdump.statistics.stats import STATISTIC_CATEGORIES

native = pytest.importorskip("msdump_native")

ARRAYS = st.one_of(
    npst.arrays(np.float32, npst.array_shapes(max_side=3, min_side=0), elements=st.floats(width=32)),
    npst.arrays(np.float64, npst.array_shapes(max_side=3), elements=st.floats()),
    npst.arrays(np.int64, npst.array_shapes(max_side=3)),
    npst.arrays(np.uint8, npst.array_shapes(max_side=3)),
    npst.arrays(np.bool_, npst.array_shapes(max_side=3)),
)
CATEGORIES = [each.name for each in STATISTIC_CATEGORIES if each.name != "md5"]
NAMES = st.text(st.characters(codec="utf-8"), max_size=4)


@given(
    st.lists(st.lists(ARRAYS, max_size=3), min_size=1, max_size=3),
    st.lists(st.sampled_from(CATEGORIES), min_size=1, unique=True),
    st.data(),
)
def test_lines_are_those_of_python(batches, categories, data) -> None:
    numbers, table_of_all = MeasuredNumbers(), native.Numbers()
    compiled = MeasuredNumbers(CompiledTable(table_of_all))
    count = 0
    for batch in batches:
        tables = [native.measure(torch.from_numpy(array)) for array in batch if array.size]
        is_integer = np.array([array.dtype.kind != "f" for array in batch if array.size], bool)
        table = np.concatenate(tables) if tables else native.measure(torch.ones(1))[:0]
        numbers.add(table, is_integer)
        table_of_all.add(table, is_integer)
        count += len(table)
        compiled.count = count
    places = data.draw(st.lists(st.integers(0, count - 1), max_size=8)) if count else []
    frames = RowFrames(*([data.draw(NAMES) for _ in places] for _ in range(2)), places)
    columns = number_columns(categories)
    for stamp in (1_700_000_000_000_000, 5):  # the second time by the same frames
        assert compiled.rows(frames, stamp, columns, ",\n") == numbers.rows(frames, stamp, columns, ",\n")
    assert all(compiled[place] == numbers[place] or np.isnan(numbers[place].l2norm) for place in range(count))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"tails": []}, "one length"),
        ({"places": [1]}, "of numbers, got 1"),
        ({"places": [-1]}, "negative|incompatible"),
        ({"places": ["0"]}, "incompatible"),
        ({"heads": [b"x"]}, "expected texts"),
        ({"attributes": ["md5"]}, "got md5"),
    ],
)
def test_mistakes_are_named(changed, message: str) -> None:
    numbers = native.Numbers()
    numbers.add(native.measure(torch.ones(1)), np.zeros(1, bool))
    right = {"heads": ["a"], "tails": ["b"], "places": [0], "attributes": ["max"]}

    def lines(heads, tails, places, attributes) -> str:
        return native.Frames(heads, tails, places).lines(numbers, 1, attributes, "\n")

    assert lines(**right) == "a1b1\n"
    with pytest.raises((ValueError, TypeError, OverflowError), match=message):
        lines(**(right | changed))
    with pytest.raises(ValueError, match="one length"):
        numbers.add(native.measure(torch.ones(1)), np.zeros(2, bool))

"""Parts of tensors: what NumPy takes, within bounds; a cell hides nothing that is not finite."""

from __future__ import annotations

import io
import json
import math
import struct
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from msdump.errors import ConfigError
from msdump.viewing import slices
from msdump.viewing.slices import NAN, NEGATIVE_INF, POSITIVE_INF, ArraySlice

_BOUNDS = st.one_of(st.none(), st.integers(-6, 6))


def picture(cut: ArraySlice) -> tuple[dict[str, Any], list[np.ndarray]]:
    data = cut.picture()
    (length,) = struct.unpack_from("<I", data)
    about = json.loads(data[4 : 4 + length])
    cells, at = about["cell_rows"] * about["cell_columns"], 4 + length
    shape = about["cell_rows"], about["cell_columns"]
    parts = [np.frombuffer(data, "<f4", cells, at + 4 * cells * part).reshape(shape) for part in range(3)]
    flags = np.frombuffer(data, np.uint8, cells, at + 12 * cells).reshape(shape)
    assert len(data) == at + 13 * cells
    return about, [*parts, flags]


@given(
    array=hnp.arrays(np.int32, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)),
    items=st.lists(st.one_of(st.integers(-6, 6), st.tuples(_BOUNDS, _BOUNDS, _BOUNDS)), max_size=5),
)
def test_an_index_is_that_of_numpy_or_refused(array: np.ndarray, items: list[Any]) -> None:
    index = tuple(item if isinstance(item, int) else slice(*item) for item in items)
    text = ", ".join(
        str(item) if isinstance(item, int) else ":".join("" if part is None else str(part) for part in item)
        for item in items
    )
    try:
        cut = ArraySlice.of(array, text)
    except ConfigError:
        try:
            expected = array[index]
        except (IndexError, ValueError):
            return
        assert expected.ndim > 2 or any(isinstance(item, slice) and (item.step or 1) < 1 for item in index)
        return
    np.testing.assert_array_equal(cut.values, array[index])
    np.testing.assert_array_equal(ArraySlice.of(array, cut.index).values, cut.values)
    np.testing.assert_array_equal(np.load(io.BytesIO(cut.npy())), cut.values)


@given(
    array=hnp.arrays(
        np.float32,
        st.tuples(st.integers(1, 30), st.integers(1, 30)),
        elements=st.one_of(st.floats(-100, 100, width=32), st.sampled_from((np.nan, np.inf, -np.inf))),
    ),
    cells=st.integers(1, 8),
)
def test_cells_are_those_of_their_elements(array: np.ndarray, cells: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slices, "CELLS", cells)
        patch.setattr(slices, "_BLOCK", 40)
        about, (least, largest, mean, flags) = picture(ArraySlice.of(array))
    height, width = about["row_step"], about["column_step"]
    assert least.shape[0] <= cells and least.shape[1] <= cells
    for row in range(least.shape[0]):
        for column in range(least.shape[1]):
            part = array[row * height : (row + 1) * height, column * width : (column + 1) * width]
            finite = part[np.isfinite(part)]
            found = NAN * np.isnan(part).any() + POSITIVE_INF * np.isposinf(part).any()
            assert flags[row, column] == found + NEGATIVE_INF * np.isneginf(part).any()
            if finite.size:
                assert least[row, column] == finite.min() and largest[row, column] == finite.max()
                np.testing.assert_allclose(mean[row, column], finite.mean(dtype=np.float64), rtol=1e-4, atol=1e-4)
            else:
                assert np.isnan(least[row, column]) and np.isnan(largest[row, column]) and np.isnan(mean[row, column])


def test_one_nan_among_a_hundred_million_elements_is_seen() -> None:
    array = np.zeros((10_000, 10_000), np.float16)
    array[7_777, 3_333] = np.nan
    _, (*_, flags) = picture(ArraySlice.of(array, "7000:8600"))
    assert flags.sum() == NAN


@pytest.mark.parametrize("dtype", [bool, np.int64, np.uint8, np.float64, np.complex64, ml_dtypes.bfloat16])
@pytest.mark.parametrize("shape", [(), (5,), (3, 4), (2, 3, 4)])
def test_numbers_of_all_kinds(dtype: Any, shape: tuple[int, ...]) -> None:
    array = np.ones(shape, dtype)
    about, (least, largest, *_) = picture(ArraySlice.of(array))
    assert least.min() == largest.max() == 1 and about["rows"] * about["columns"] == math.prod(shape[-2:])
    assert len(ArraySlice.of(array).text()["text"]) == about["rows"]


def test_wide_numbers_stay_finite() -> None:
    _, (least, largest, _, flags) = picture(ArraySlice.of(np.array([1e300, -1e300])))
    assert np.isfinite(least).all() and np.isfinite(largest).all() and not flags.any()


def test_text_is_exact_and_bounded() -> None:
    text = ArraySlice.of(np.array([0.1, np.nan, 1e-45], np.float32)).text()
    assert text["text"] == [["0.1", "nan", "1e-45"]] and (text["rows"], text["columns"]) == (1, 3)
    wide = ArraySlice.of(np.zeros((500, 500), np.uint8)).text()
    assert (len(wide["text"]), len(wide["text"][0]), wide["rows"]) == (200, 50, 500)


def test_the_first_look_is_bounded() -> None:
    array = np.broadcast_to(np.float32(0), (2, 1 << 15, 1 << 15))
    assert ArraySlice.of(array).index == "0, 0:512, 0:32768"
    assert ArraySlice.of(array[0, 0]).index == ":"


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("0, 0, 0, 0", "at most 3 parts"),
        (":, :, :", "all but two axes"),
        ("9", "axis 0: expected a number below 2, got 9"),
        ("::0", "step of at least 1"),
        ("__import__('os')", "axis 0: expected a number or a range"),
        ("0, 0, 1e3", "axis 2"),
        ("9" * 40, "axis 0"),
        ("\x00", "axis 0"),
    ],
)
def test_what_is_no_index(expression: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ArraySlice.of(np.zeros((2, 3, 4)), expression)


def test_too_much_and_nothing() -> None:
    with pytest.raises(ConfigError, match="elements at a time"):
        ArraySlice.of(np.broadcast_to(np.uint8(0), (1 << 13, 1 << 13)), ":, :")
    assert picture(ArraySlice.of(np.zeros((0, 4))))[0]["cell_rows"] == 0
    with pytest.raises(ConfigError, match="tensor of numbers"):
        ArraySlice.of(np.array(["a"]))
    with pytest.raises(ConfigError, match="with elements"):
        ArraySlice.of(np.zeros((0, 2, 2)))

"""A picture of a part of a tensor: each cell has the colour of its mean, and what is not finite is seen."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as hnp

from msdump.errors import ConfigError
from msdump.viewing import pictures
from msdump.viewing.slices import ArraySlice

Image = pytest.importorskip("PIL.Image")


def drawn(array: np.ndarray, cells: int = 512) -> tuple[np.ndarray, float, float]:
    content, least, largest = pictures.png(ArraySlice.of(array), cells)
    return np.asarray(Image.open(io.BytesIO(content)).convert("RGB")), least, largest


@given(hnp.arrays(np.float32, hnp.array_shapes(min_dims=0, max_dims=2, max_side=9)))
def test_what_is_not_finite_is_red_or_orange(array: np.ndarray) -> None:
    pixels, least, largest = drawn(array)
    shape = array.reshape((1,) * (2 - array.ndim) + array.shape).shape
    zoom = pixels.shape[0] // shape[0]
    cells = pixels[::zoom, ::zoom]
    assert cells.shape[:2] == shape
    red, orange = ((cells == color).all(axis=2) for color in (pictures._NAN_COLOR, pictures._INF_COLOR))
    assert np.array_equal(red, np.isnan(array).reshape(shape))
    assert np.array_equal(orange, np.isinf(array).reshape(shape))
    finite = array[np.isfinite(array)]
    assert (least, largest) == (finite.min(), finite.max()) if finite.size else np.isnan(least)


def test_a_larger_value_is_never_darker() -> None:
    pixels, least, largest = drawn(np.arange(40, dtype=np.float32).reshape(1, 40))
    brightness = pixels[0].astype(int).sum(axis=1)
    assert (np.diff(brightness) >= 0).all() and brightness[0] < brightness[-1] and (least, largest) == (0, 39)


def test_cells_bound_the_picture() -> None:
    noise = np.random.default_rng(0).normal(size=(1000, 700)).astype(np.float32)
    noise[999, 699] = np.nan
    content, *_ = pictures.png(ArraySlice.of(noise), 64)
    assert len(content) < 6000
    pixels, *_ = drawn(noise, 64)
    assert max(pixels.shape) <= 64 * pictures._MOST_ZOOM and tuple(pixels[-1, -1]) == pictures._NAN_COLOR


def test_a_part_without_elements_has_no_picture() -> None:
    with pytest.raises(ConfigError, match="a part with elements"):
        pictures.png(ArraySlice.of(np.zeros((0, 3), np.float32)))

"""A part of a tensor as a PNG: dark where it is small, light where it is large, red where it is not finite."""

from __future__ import annotations

import io

import numpy as np

from msdump.errors import ConfigError
from msdump.tensors.arrays import Array
from msdump.viewing.slices import NAN, ArraySlice

_SIDE = 256  # pixels of the longer side, at least
_MOST_ZOOM = 32  # pixels of a cell
_LEVELS = 32
_NAN, _INF = _LEVELS, _LEVELS + 1  # places in the palette, behind the levels
_ENDS = np.array([[20, 24, 60], [38, 110, 160], [235, 232, 180]], np.float64)  # small, middle, large
_NAN_COLOR, _INF_COLOR = (220, 20, 30), (255, 140, 0)


def png(part: ArraySlice, cells: int | None = None) -> tuple[bytes, float, float]:
    """A picture of the means of cells.

    cells    at most so many in each direction; None: as many as the page has
    Returns: the file, and the least and the largest mean, which are the darkest and the lightest; NaN without a finite
             element. Cells with a NaN are red, those with an Inf orange.
    Raises:  ConfigError without Pillow, and for a part without elements.
    """
    if part.values.size == 0:
        raise ConfigError(f"index: expected a part with elements, got shape {list(part.values.shape)}.")
    try:
        from PIL import Image
    except ImportError as error:
        raise ConfigError("--picture: expected Pillow, got none. Install it: pip install 'msdump[images]'.") from error
    table = part.cells(cells)
    finite = table.mean[np.isfinite(table.mean)]
    least, largest = (float(finite.min()), float(finite.max())) if finite.size else (np.nan, np.nan)
    levels = _levels(table.mean, least, largest)
    levels[table.flags != 0] = _INF
    levels[(table.flags & NAN) != 0] = _NAN
    zoom = max(1, min(_MOST_ZOOM, _SIDE // max(levels.shape)))
    picture = Image.fromarray(np.kron(levels, np.ones((zoom, zoom), np.uint8)))
    picture.putpalette(_palette())
    file = io.BytesIO()
    picture.save(file, "PNG", optimize=True)
    return file.getvalue(), least, largest


def _levels(means: Array, least: float, largest: float) -> Array:
    """Each mean as a place in the palette; that of the middle where all are equal."""
    half = largest / 2 - least / 2  # halves first, as the distance may be too large for a float
    with np.errstate(invalid="ignore"):
        shares = (means.astype(np.float64) / 2 - least / 2) / half if half else np.full(means.shape, 0.5)
    return np.asarray(np.nan_to_num(shares * (_LEVELS - 1)).round(), np.uint8)


def _palette() -> list[int]:
    places = np.linspace(0, len(_ENDS) - 1, _LEVELS)
    colors = np.stack([np.interp(places, range(len(_ENDS)), _ENDS[:, channel]) for channel in range(3)], axis=1)
    return [*map(int, colors.round().ravel()), *_NAN_COLOR, *_INF_COLOR]

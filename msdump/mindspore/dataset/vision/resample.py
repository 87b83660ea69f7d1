"""Resizing of arrays: every output pixel is a weighted sum of a few input pixels, one axis after the other.

NEAREST, LINEAR, CUBIC and AREA sample as OpenCV does, which MindSpore uses; ANTIALIAS and PILCUBIC as Pillow does.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from msdump.mindspore.dataset.vision.utils import Inter
from msdump.tensors.arrays import Array


def resize(image: Array, height: int, width: int, inter: Inter) -> Array:
    """`image` in another size.

    Shapes: image (H, W) or (H, W, C) -> (height, width[, C])
    Dtypes: kept. Integers and bool are rounded to the nearest and clipped to their range.
    Edges:  the size it already has -> a copy, bit for bit.
    """
    if image.shape[:2] == (height, width):
        return image.copy()
    if inter is Inter.NEAREST:
        rows, columns = _nearest(image.shape[0], height), _nearest(image.shape[1], width)
        return np.ascontiguousarray(image[rows][:, columns])
    if inter is Inter.LINEAR and image.dtype == np.uint8:
        return _linear_bytes(image, height, width)
    is_wide = image.dtype == np.float64 or image.dtype.itemsize > 4 or image.dtype in (np.int32, np.uint32)
    work = image.astype(np.float64 if is_wide else np.float32)
    work = _along_columns(work, width, inter)
    work = _along_rows(work, height, inter)
    return from_float(work, image.dtype)


def _linear_bytes(image: Array, height: int, width: int) -> Array:
    """Linear resizing of bytes in fixed point.   Source: OpenCV, resize.cpp: weights of 11 bits, cut in two steps"""
    down, across = taps(image.shape[0], height, Inter.LINEAR), taps(image.shape[1], width, Inter.LINEAR)
    rest = (1,) * (image.ndim - 2)
    fixed_across, fixed_down = (np.rint(weights * 2048.0).astype(np.int64) for _, weights in (across, down))
    work = image.astype(np.int64)
    lines = sum(
        work[:, place] * weight.reshape(1, -1, *rest) for place, weight in zip(across[0], fixed_across, strict=True)
    )
    total = sum(
        ((np.asarray(lines)[place] >> 4) * weight.reshape(-1, 1, *rest)) >> 16
        for place, weight in zip(down[0], fixed_down, strict=True)
    )
    return ((np.asarray(total) + 2) >> 2).astype(np.uint8)


def from_float(values: Array, dtype: np.dtype[Any]) -> Array:
    """Floats as `dtype`; integers rounded half to even and clipped to their range, NaN becomes 0."""
    if dtype.kind == "f":
        return values.astype(dtype, copy=False)
    if dtype.kind == "b":
        return np.asarray(values >= 0.5)
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    rounded = np.rint(values, out=values)
    if not np.isfinite(rounded).all():
        rounded = np.nan_to_num(rounded, copy=False, nan=0.0)
    return np.clip(rounded, low, high, out=rounded).astype(dtype)


def _along_rows(image: Array, height: int, inter: Inter) -> Array:
    if image.shape[0] == height:
        return image
    places, weights = taps(image.shape[0], height, inter)
    shape = (height,) + (1,) * (image.ndim - 1)
    total: Array = image[places[0]] * weights[0].astype(image.dtype).reshape(shape)
    for place, weight in zip(places[1:], weights[1:], strict=True):
        total += image[place] * weight.astype(image.dtype).reshape(shape)
    return total


def _along_columns(image: Array, width: int, inter: Inter) -> Array:
    if image.shape[1] == width:
        return image
    return np.ascontiguousarray(np.swapaxes(_along_rows(np.swapaxes(image, 0, 1), width, inter), 0, 1))


@lru_cache(maxsize=64)
def taps(size: int, new_size: int, inter: Inter) -> tuple[Array, Array]:
    """Which old pixels make a new one, and with which weights; the weights of a new pixel add up to 1.

    Shapes: -> places (taps, new_size) int, weights (taps, new_size) float64
    """
    if inter is Inter.LINEAR or (inter is Inter.AREA and new_size >= size):
        return _interpolation(size, new_size, 1, _triangle)
    if inter is Inter.CUBIC:
        return _interpolation(size, new_size, 2, lambda distance: _cubic(distance, -0.75))
    if inter is Inter.AREA:
        return _area(size, new_size)
    if inter is Inter.PILCUBIC:
        return _filtered(size, new_size, 2.0, lambda distance: _cubic(distance, -0.5))
    return _filtered(size, new_size, 3.0, _lanczos)


def _nearest(size: int, new_size: int) -> Array:
    return np.minimum(np.arange(new_size) * size // new_size, size - 1)


def _centers(size: int, new_size: int) -> Array:
    return (np.arange(new_size) + 0.5) * (size / new_size) - 0.5


def _interpolation(size: int, new_size: int, reach: int, kernel: Callable[[Array], Array]) -> tuple[Array, Array]:
    """Taps at distance below `reach`, however small the new image is; the edge pixel is repeated."""
    centers = _centers(size, new_size)
    first = np.floor(centers).astype(np.int64) - (reach - 1)
    places = first[None, :] + np.arange(2 * reach)[:, None]
    weights = kernel(np.abs(places - centers))
    return np.clip(places, 0, size - 1), weights / weights.sum(axis=0)


def _filtered(size: int, new_size: int, support: float, kernel: Callable[[Array], Array]) -> tuple[Array, Array]:
    """Taps under a filter that is stretched when the image shrinks, so that every old pixel counts."""
    scale = size / new_size
    stretch = max(scale, 1.0)
    centers = (np.arange(new_size) + 0.5) * scale
    # Source: Pillow, Resample.c: int() of a positive number, window cut at the edges, then normalised.
    first = np.maximum((centers - support * stretch + 0.5).astype(np.int64), 0)
    last = np.minimum((centers + support * stretch + 0.5).astype(np.int64), size)
    places = first[None, :] + np.arange(math.ceil(support * stretch) * 2 + 1)[:, None]
    weights = kernel(np.abs((places + 0.5 - centers) / stretch))
    weights[places >= last] = 0.0
    return np.clip(places, 0, size - 1), weights / weights.sum(axis=0)


def _area(size: int, new_size: int) -> tuple[Array, Array]:
    """Taps weighted by how much of the old pixel lies under the new one."""
    scale = size / new_size
    starts = np.arange(new_size) * scale
    places = np.floor(starts).astype(np.int64)[None, :] + np.arange(math.ceil(scale) + 1)[:, None]
    overlap = np.minimum(places + 1, starts + scale) - np.maximum(places, starts)
    weights = np.clip(overlap, 0.0, None)
    return np.clip(places, 0, size - 1), weights / weights.sum(axis=0)


def _triangle(distance: Array) -> Array:
    return np.clip(1.0 - distance, 0.0, None)


def _cubic(distance: Array, a: float) -> Array:
    near = ((a + 2.0) * distance - (a + 3.0)) * distance**2 + 1.0
    far = a * (((distance - 5.0) * distance + 8.0) * distance - 4.0)
    return np.where(distance < 1.0, near, np.where(distance < 2.0, far, 0.0))


def _lanczos(distance: Array) -> Array:
    return np.where(distance < 3.0, np.sinc(distance) * np.sinc(distance / 3.0), 0.0)

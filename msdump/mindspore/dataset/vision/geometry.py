"""Transforms that move pixels: resize, crop, flip, pad."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from msdump.errors import ConfigError
from msdump.mindspore.dataset import checks
from msdump.mindspore.dataset.rows import RandomTransform
from msdump.mindspore.dataset.vision.pixels import Decode
from msdump.mindspore.dataset.vision.utils import (
    Border,
    ImageTransform,
    Inter,
    image_array,
    is_pillow,
    pillow,
    pillow_filter,
)
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


class Resize(ImageTransform, takes="size interpolation:Inter=Inter.LINEAR"):
    """Another size; one int: the shorter side gets it, the other keeps the proportion.

    Dtypes: kept; uint8 is rounded to the nearest.
    """

    def _set_up(self, size: int | Sequence[int]) -> None:
        self.size = checks.size_pair("Resize(size)", size)
        self._keeps_proportion = not isinstance(size, Sequence)

    def of_array(self, image: Array) -> Array:
        return resize(image, *self._new_size(*image.shape[:2]), self.interpolation)

    def of_pillow(self, image: Any) -> Any:
        height, width = self._new_size(image.height, image.width)
        return image.resize((width, height), pillow_filter("Resize", self.interpolation))

    def _new_size(self, old_height: int, old_width: int) -> tuple[int, int]:
        height, width = self.size
        if self._keeps_proportion:
            shorter = min(old_height, old_width)
            height, width = old_height * height // shorter, old_width * width // shorter
        return height, width


class Crop(ImageTransform, takes="coordinates size:sides"):
    """The part of `size` whose upper left corner is at `coordinates` (row, column)."""

    def _set_up(self, coordinates: Sequence[int]) -> None:
        if len(coordinates) != 2:
            raise ConfigError(f"Crop(coordinates): expected (row, column), got {tuple(coordinates)}.")
        self.coordinates = [checks.whole_number("Crop(coordinates)", place, 0) for place in coordinates]

    def of_array(self, image: Array) -> Array:
        return crop("Crop", image, *self.coordinates, *self.size)


class CenterCrop(ImageTransform, takes="size:sides"):
    """The middle part of `size`. A side that is too short is padded with zeros on both ends."""

    def of_pillow(self, image: Any) -> Any:
        array = self._filled(np.asarray(image))
        row, column = (round((have - want) / 2) for have, want in zip(array.shape[:2], self.size, strict=True))
        return from_array(array[row : row + self.size[0], column : column + self.size[1]])

    def of_array(self, image: Array) -> Array:
        array = self._filled(image)
        row, column = ((have - want) // 2 for have, want in zip(array.shape[:2], self.size, strict=True))
        return crop("CenterCrop", array, row, column, *self.size)

    def _filled(self, array: Array) -> Array:
        rows, columns = (max(want - have, 0) for have, want in zip(array.shape[:2], self.size, strict=True))
        left, top = columns // 2, rows // 2
        borders = (left, top, columns - left, rows - top)
        return pad(array, borders, (0,), Border.CONSTANT) if any(borders) else array


class Pad(ImageTransform, takes="padding:borders fill_value:fill=0 padding_mode:Border=Border.CONSTANT"):
    """A border around the image: one width, (left and right, top and bottom), or (left, top, right, bottom)."""

    def of_array(self, image: Array) -> Array:
        return pad(image, self.padding, self.fill_value, self.padding_mode)

    def of_pillow(self, image: Any) -> Any:
        return from_array(self.of_array(np.asarray(image)))


class RandomCrop(
    RandomTransform,
    takes="size:sides padding=None pad_if_needed=False fill_value:fill=0 padding_mode:Border=Border.CONSTANT",
):
    """A part of `size` at a random place, after `padding`. `pad_if_needed` pads images that are too small."""

    def _set_up(self, padding: int | Sequence[int] | None) -> None:
        self.padding = checks.borders("RandomCrop(padding)", 0 if padding is None else padding)

    def draw(self, generator: np.random.Generator, *values: Any) -> Any:
        (image,) = values
        array = image_array("RandomCrop", image)
        left, top, right, bottom = self.padding
        if self.pad_if_needed:
            down = max(self.size[0] - array.shape[0] - top - bottom, 0)
            across = max(self.size[1] - array.shape[1] - left - right, 0)
            left, top, right, bottom = left + across, top + down, right + across, bottom + down
        if left or top or right or bottom:
            array = pad(array, (left, top, right, bottom), self.fill_value, self.padding_mode)
        room = [max(have - want, 0) + 1 for have, want in zip(array.shape[:2], self.size, strict=True)]
        row, column = (int(generator.integers(places)) for places in room)
        return like(image, crop("RandomCrop", array, row, column, *self.size))


class RandomResizedCrop(
    RandomTransform,
    takes="size:sides scale:positive_range=(0.08,1.0) ratio:positive_range=(0.75,1.3333333333333333) "
    "interpolation:Inter=Inter.BILINEAR max_attempts:whole=10",
):
    """A part of random area and shape, resized to `size`."""

    def draw(self, generator: np.random.Generator, *values: Any) -> Any:
        (image,) = values
        array = image_array("RandomResizedCrop", image)
        row, column, height, width = self._part(generator, array.shape[0], array.shape[1])
        if is_pillow(image):
            part = image.crop((column, row, column + width, row + height))
            return part.resize(self.size[::-1], pillow_filter("RandomResizedCrop", self.interpolation))
        rows, columns = self.size
        return resize(array[row : row + height, column : column + width], rows, columns, self.interpolation)

    def _part(self, generator: np.random.Generator, rows: int, columns: int) -> tuple[int, int, int, int]:
        """Row, column, height and width of the part, for an image of `rows` x `columns`."""
        low, high = (math.log(bound) for bound in self.ratio)
        for _ in range(self.max_attempts):
            area = rows * columns * generator.uniform(*self.scale)
            ratio = math.exp(generator.uniform(low, high))
            width, height = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < width <= columns and 0 < height <= rows:
                row, column = generator.integers(rows - height + 1), generator.integers(columns - width + 1)
                return int(row), int(column), height, width
        width = min(columns, max(round(rows * self.ratio[1]), 1))
        height = min(rows, max(round(columns / self.ratio[0]), 1))
        return (rows - height) // 2, (columns - width) // 2, height, width


class RandomCropDecodeResize(RandomResizedCrop):
    """`RandomResizedCrop` of an image that is still encoded."""

    def draw(self, generator: np.random.Generator, *values: Any) -> Any:
        (encoded,) = values
        return super().draw(generator, Decode()(encoded))


class HorizontalFlip(ImageTransform):
    """Left and right exchanged.   axis: the one that is exchanged"""

    axis = 1

    def of_array(self, image: Array) -> Array:
        return np.ascontiguousarray(np.flip(image, self.axis))


class VerticalFlip(HorizontalFlip):
    """Up and down exchanged."""

    axis = 0


class RandomHorizontalFlip(RandomTransform, takes="prob:chance=0.5"):
    """Left and right exchanged, with probability `prob`."""

    axis = 1

    def draw(self, generator: np.random.Generator, *values: Any) -> Any:
        (image,) = values
        array = image_array(type(self).__name__, image)
        return like(image, np.flip(array, self.axis)) if generator.random() < self.prob else image


class RandomVerticalFlip(RandomHorizontalFlip):
    """Up and down exchanged, with probability `prob`."""

    axis = 0


def like(image: Any, array: Array) -> Any:
    """`array` as a Pillow image when `image` is one, else whole in memory."""
    return from_array(array) if is_pillow(image) else np.ascontiguousarray(array)


def from_array(array: Array) -> Any:
    """A Pillow image."""
    return pillow("vision").fromarray(np.ascontiguousarray(array))


def crop(where: str, array: Array, row: int, column: int, height: int, width: int) -> Array:
    if row + height > array.shape[0] or column + width > array.shape[1]:
        raise ConfigError(
            f"{where}: expected an image of at least {row + height} x {column + width} pixels, got "
            f"{array.shape[0]} x {array.shape[1]}. Make the size smaller, or pad the image."
        )
    return np.ascontiguousarray(array[row : row + height, column : column + width])


def pad(array: Array, borders: tuple[int, int, int, int], fill: tuple[float, ...], mode: Border) -> Array:
    left, top, right, bottom = borders
    widths = [(top, bottom), (left, right)] + [(0, 0)] * (array.ndim - 2)
    if mode is not Border.CONSTANT:
        return np.pad(array, widths, mode=mode.value)
    channels = array.shape[2] if array.ndim == 3 else 1
    if array.ndim == 3 and len(fill) not in (1, channels):
        raise ConfigError(f"fill_value: expected 1 or {channels} values for {array.shape}, got {len(fill)}.")
    shape = (array.shape[0] + top + bottom, array.shape[1] + left + right, *array.shape[2:])
    padded = np.empty(shape, array.dtype)
    padded[...] = np.asarray(fill if array.ndim == 3 else fill[0]).astype(array.dtype)
    padded[top : top + array.shape[0], left : left + array.shape[1]] = array
    return padded

"""Transforms that move pixels: resize, crop, flip, pad."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from msdump.arrays import Array
from msdump.errors import ConfigError, did_you_mean
from msdump.frontends.mindspore.dataset import checks
from msdump.frontends.mindspore.dataset.rows import RandomTransform
from msdump.frontends.mindspore.dataset.vision.pixels import Decode
from msdump.frontends.mindspore.dataset.vision.resample import resize
from msdump.frontends.mindspore.dataset.vision.utils import Border, Inter, image_array


class Resize:
    """Another size; one int: the shorter side gets it, the other keeps the proportion.

    Dtypes: kept; uint8 is rounded to the nearest.
    """

    def __init__(self, size: int | Sequence[int], interpolation: Inter = Inter.LINEAR) -> None:
        self._size = checks.size_pair("Resize(size)", size)
        self._keeps_proportion = not isinstance(size, Sequence)
        self._interpolation = _inter("Resize(interpolation)", interpolation)

    def __call__(self, image: Any) -> Array:
        array = image_array("Resize", image)
        height, width = self._size
        if self._keeps_proportion:
            old_height, old_width = array.shape[:2]
            shorter = min(old_height, old_width)
            height, width = old_height * height // shorter, old_width * width // shorter
        return resize(array, height, width, self._interpolation)


class Crop:
    """The part of `size` whose upper left corner is at `coordinates` (row, column)."""

    def __init__(self, coordinates: Sequence[int], size: int | Sequence[int]) -> None:
        if len(coordinates) != 2:
            raise ConfigError(f"Crop(coordinates): expected (row, column), got {tuple(coordinates)}.")
        self._row = checks.whole_number("Crop(coordinates)", coordinates[0], 0)
        self._column = checks.whole_number("Crop(coordinates)", coordinates[1], 0)
        self._size = checks.size_pair("Crop(size)", size)

    def __call__(self, image: Any) -> Array:
        return _crop("Crop", image_array("Crop", image), self._row, self._column, *self._size)


class CenterCrop:
    """The middle part of `size`. A side that is too short is padded with zeros on both ends."""

    def __init__(self, size: int | Sequence[int]) -> None:
        self._height, self._width = checks.size_pair("CenterCrop(size)", size)

    def __call__(self, image: Any) -> Array:
        array = image_array("CenterCrop", image)
        missing_rows = max(self._height - array.shape[0], 0)
        missing_columns = max(self._width - array.shape[1], 0)
        if missing_rows or missing_columns:
            left, top = missing_columns // 2, missing_rows // 2
            array = _pad(array, (left, top, missing_columns - left, missing_rows - top), (0,), Border.CONSTANT)
        row = (array.shape[0] - self._height) // 2
        column = (array.shape[1] - self._width) // 2
        return _crop("CenterCrop", array, row, column, self._height, self._width)


class Pad:
    """A border around the image: one width, (left and right, top and bottom), or (left, top, right, bottom)."""

    def __init__(
        self,
        padding: int | Sequence[int],
        fill_value: int | Sequence[int] = 0,
        padding_mode: Border | str = Border.CONSTANT,
    ) -> None:
        self._borders = checks.borders("Pad(padding)", padding)
        self._fill = _fill_values("Pad(fill_value)", fill_value)
        self._mode = _border("Pad(padding_mode)", padding_mode)

    def __call__(self, image: Any) -> Array:
        return _pad(image_array("Pad", image), self._borders, self._fill, self._mode)


class RandomCrop(RandomTransform):
    """A part of `size` at a random place, after `padding`. `pad_if_needed` pads images that are too small."""

    def __init__(
        self,
        size: int | Sequence[int],
        padding: int | Sequence[int] | None = None,
        pad_if_needed: bool = False,
        fill_value: int | Sequence[int] = 0,
        padding_mode: Border | str = Border.CONSTANT,
    ) -> None:
        self._height, self._width = checks.size_pair("RandomCrop(size)", size)
        self._borders = None if padding is None else checks.borders("RandomCrop(padding)", padding)
        self._pads_if_needed = bool(pad_if_needed)
        self._fill = _fill_values("RandomCrop(fill_value)", fill_value)
        self._mode = _border("RandomCrop(padding_mode)", padding_mode)

    def draw(self, generator: np.random.Generator, *values: Any) -> Array:
        (image,) = values
        array = image_array("RandomCrop", image)
        if self._borders is not None:
            array = _pad(array, self._borders, self._fill, self._mode)
        if self._pads_if_needed:
            rows, columns = max(self._height - array.shape[0], 0), max(self._width - array.shape[1], 0)
            array = _pad(array, (columns, rows, columns, rows), self._fill, self._mode)
        row = int(generator.integers(max(array.shape[0] - self._height, 0) + 1))
        column = int(generator.integers(max(array.shape[1] - self._width, 0) + 1))
        return _crop("RandomCrop", array, row, column, self._height, self._width)


class RandomResizedCrop(RandomTransform):
    """A part of random area and shape, resized to `size`."""

    def __init__(
        self,
        size: int | Sequence[int],
        scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3.0 / 4.0, 4.0 / 3.0),
        interpolation: Inter = Inter.BILINEAR,
        max_attempts: int = 10,
    ) -> None:
        self._size = checks.size_pair("RandomResizedCrop(size)", size)
        self._scale = _range("RandomResizedCrop(scale)", scale)
        self._ratio = _range("RandomResizedCrop(ratio)", ratio)
        self._interpolation = _inter("RandomResizedCrop(interpolation)", interpolation)
        self._max_attempts = checks.whole_number("RandomResizedCrop(max_attempts)", max_attempts)

    def draw(self, generator: np.random.Generator, *values: Any) -> Array:
        (image,) = values
        array = image_array("RandomResizedCrop", image)
        row, column, height, width = self._part(generator, array.shape[0], array.shape[1])
        return resize(array[row : row + height, column : column + width], *self._size, self._interpolation)

    def _part(self, generator: np.random.Generator, rows: int, columns: int) -> tuple[int, int, int, int]:
        low, high = (math.log(bound) for bound in self._ratio)
        for _ in range(self._max_attempts):
            area = rows * columns * generator.uniform(*self._scale)
            ratio = math.exp(generator.uniform(low, high))
            width, height = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < width <= columns and 0 < height <= rows:
                row, column = generator.integers(rows - height + 1), generator.integers(columns - width + 1)
                return int(row), int(column), height, width
        width = min(columns, max(round(rows * self._ratio[1]), 1))
        height = min(rows, max(round(columns / self._ratio[0]), 1))
        return (rows - height) // 2, (columns - width) // 2, height, width


class RandomCropDecodeResize(RandomResizedCrop):
    """`RandomResizedCrop` of an image that is still encoded."""

    def draw(self, generator: np.random.Generator, *values: Any) -> Array:
        (encoded,) = values
        return super().draw(generator, Decode()(encoded))


class HorizontalFlip:
    """Left and right exchanged."""

    def __call__(self, image: Any) -> Array:
        return np.ascontiguousarray(image_array("HorizontalFlip", image)[:, ::-1])


class VerticalFlip:
    """Up and down exchanged."""

    def __call__(self, image: Any) -> Array:
        return np.ascontiguousarray(image_array("VerticalFlip", image)[::-1])


class RandomHorizontalFlip(RandomTransform):
    """Left and right exchanged, with probability `prob`."""

    def __init__(self, prob: float = 0.5) -> None:
        self._probability = checks.probability("RandomHorizontalFlip(prob)", prob)

    def draw(self, generator: np.random.Generator, *values: Any) -> Array:
        (image,) = values
        array = image_array("RandomHorizontalFlip", image)
        return HorizontalFlip()(array) if generator.random() < self._probability else array


class RandomVerticalFlip(RandomTransform):
    """Up and down exchanged, with probability `prob`."""

    def __init__(self, prob: float = 0.5) -> None:
        self._probability = checks.probability("RandomVerticalFlip(prob)", prob)

    def draw(self, generator: np.random.Generator, *values: Any) -> Array:
        (image,) = values
        array = image_array("RandomVerticalFlip", image)
        return VerticalFlip()(array) if generator.random() < self._probability else array


def _crop(where: str, array: Array, row: int, column: int, height: int, width: int) -> Array:
    if row + height > array.shape[0] or column + width > array.shape[1]:
        raise ConfigError(
            f"{where}: expected an image of at least {row + height} x {column + width} pixels, got "
            f"{array.shape[0]} x {array.shape[1]}. Make the size smaller, or pad the image."
        )
    return np.ascontiguousarray(array[row : row + height, column : column + width])


def _pad(array: Array, borders: tuple[int, int, int, int], fill: tuple[float, ...], mode: Border) -> Array:
    left, top, right, bottom = borders
    widths = [(top, bottom), (left, right)] + [(0, 0)] * (array.ndim - 2)
    if mode is not Border.CONSTANT:
        return np.pad(array, widths, mode=mode.value)
    channels = array.shape[2] if array.ndim == 3 else 1
    if len(fill) not in (1, channels):
        raise ConfigError(f"fill_value: expected 1 or {channels} values for {array.shape}, got {len(fill)}.")
    shape = (array.shape[0] + top + bottom, array.shape[1] + left + right, *array.shape[2:])
    padded = np.empty(shape, array.dtype)
    padded[...] = np.asarray(fill if array.ndim == 3 else fill[0]).astype(array.dtype)
    padded[top : top + array.shape[0], left : left + array.shape[1]] = array
    return padded


def _inter(where: str, value: Any) -> Inter:
    if not isinstance(value, Inter):
        names = ", ".join(f"Inter.{member.name}" for member in Inter)
        raise TypeError(f"{where}: expected one of {names}, got {type(value).__name__} {value!r}.")
    return value


def _border(where: str, value: Any) -> Border:
    try:
        return Border(value)
    except ValueError as error:
        names = [member.value for member in Border]
        raise ConfigError(
            f"{where}: expected one of {names}, got {value!r}. {did_you_mean(str(value), names)}".rstrip()
        ) from error


def _fill_values(where: str, value: Any) -> tuple[float, ...]:
    values = tuple(value) if isinstance(value, Sequence) else (value,)
    for number in values:
        if isinstance(number, bool) or not isinstance(number, (int, float)) or not 0 <= number <= 255:
            raise ConfigError(f"{where}: expected numbers in [0, 255], got {number!r}.")
    return values


def _range(where: str, value: Sequence[float]) -> tuple[float, float]:
    if len(value) != 2 or not 0 < value[0] <= value[1]:
        raise ConfigError(f"{where}: expected (low, high) with 0 < low <= high, got {tuple(value)}.")
    return float(value[0]), float(value[1])

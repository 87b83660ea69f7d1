"""Transforms that cut an image in parts, cover a part, or put it on a larger canvas."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from msdump.errors import ConfigError
from msdump.mindspore.dataset import checks
from msdump.mindspore.dataset.rows import RandomTransform
from msdump.mindspore.dataset.vision.geometry import Resize, fill_values, from_float, pad
from msdump.mindspore.dataset.vision.utils import (
    Border,
    ImageTransform,
    Inter,
    RandomImageTransform,
    SliceMode,
    number,
    number_range,
)
from msdump.tensors.arrays import Array


class RandomResize(RandomImageTransform):
    """`Resize` with a way to interpolate that is drawn each time."""

    def __init__(self, size: int | Sequence[int]) -> None:
        self._size = size
        checks.size_pair("RandomResize(size)", size)

    def choose(self, generator: np.random.Generator, image: Any) -> Callable[[Any], Any]:
        inter = (Inter.LINEAR, Inter.NEAREST, Inter.CUBIC, Inter.AREA)[int(generator.integers(4))]
        return lambda image: Resize(self._size, inter)(np.asarray(image))


class SlicePatches(ImageTransform):
    """`num_height` x `num_width` patches, row by row. An image that does not divide is padded or loses its rest."""

    def __init__(
        self, num_height: int = 1, num_width: int = 1, slice_mode: SliceMode = SliceMode.PAD, fill_value: int = 0
    ) -> None:
        self._rows = checks.whole_number("SlicePatches(num_height)", num_height)
        self._columns = checks.whole_number("SlicePatches(num_width)", num_width)
        if not isinstance(slice_mode, SliceMode):
            raise TypeError(f"SlicePatches(slice_mode): expected a SliceMode, got {type(slice_mode).__name__}.")
        self._mode, self._fill = slice_mode, fill_values("SlicePatches(fill_value)", fill_value)

    def of_array(self, image: Array) -> tuple[Array, ...]:
        height, width = image.shape[:2]
        if self._rows > height or self._columns > width:
            raise ConfigError(
                f"SlicePatches: expected at least {self._rows} x {self._columns} pixels, got {height} x {width}."
            )
        if self._mode is SliceMode.PAD:
            image = pad(image, (0, 0, -width % self._columns, -height % self._rows), self._fill, Border.CONSTANT)
        tall, wide = image.shape[0] // self._rows, image.shape[1] // self._columns
        return tuple(
            np.ascontiguousarray(image[row * tall : (row + 1) * tall, column * wide : (column + 1) * wide])
            for row in range(self._rows)
            for column in range(self._columns)
        )


class RandomErasing(RandomTransform):
    """A random rectangle of a (C, H, W) array covered, with probability `prob`.

    value   a number, one for each channel, or "random": normal noise
    """

    def __init__(
        self,
        prob: float = 0.5,
        scale: Sequence[float] = (0.02, 0.33),
        ratio: Sequence[float] = (0.3, 3.3),
        value: float | str | Sequence[float] = 0,
        inplace: bool = False,
        max_attempts: int = 10,
    ) -> None:
        self._probability = checks.probability("RandomErasing(prob)", prob)
        self._scale = number_range("RandomErasing(scale)", scale, 0.0)
        self._ratio = number_range("RandomErasing(ratio)", ratio, 0.0)
        if isinstance(value, str) and value != "random":
            raise ConfigError(f'RandomErasing(value): expected numbers or "random", got {value!r}.')
        self._value = value if isinstance(value, str) else fill_values("RandomErasing(value)", value)
        self._inplace = bool(inplace)
        self._attempts = checks.whole_number("RandomErasing(max_attempts)", max_attempts)

    def draw(self, generator: np.random.Generator, *values: Any) -> Any:
        (image,) = values
        if not isinstance(image, np.ndarray) or image.ndim != 3:
            raise TypeError("RandomErasing: expected an array of shape (C, H, W). Use ToTensor() before it.")
        if generator.random() >= self._probability:
            return image
        channels, height, width = image.shape
        for _ in range(self._attempts):
            area = generator.uniform(*self._scale) * height * width
            ratio = generator.uniform(*self._ratio)
            wide = round(math.sqrt(area * ratio))
            tall = round(wide / ratio) if ratio else 0
            if tall < height and wide < width:
                top, left = int(generator.integers(height - tall + 1)), int(generator.integers(width - wide + 1))
                result = image if self._inplace else image.copy()
                cover = (
                    generator.normal(size=(channels, tall, wide))
                    if isinstance(self._value, str)
                    else np.asarray(self._value)[:, None, None]
                )
                result[:, top : top + tall, left : left + wide] = cover
                return result
        return image


class GaussianBlur(ImageTransform):
    """Gaussian filter of `kernel_size` (odd; width and height); `sigma` None: from the size as OpenCV does."""

    def __init__(self, kernel_size: int | Sequence[int], sigma: float | Sequence[float] | None = None) -> None:
        self._sizes = checks.size_pair("GaussianBlur(kernel_size)", kernel_size)
        if any(size % 2 == 0 for size in self._sizes):
            raise ConfigError(f"GaussianBlur(kernel_size): expected odd numbers, got {kernel_size!r}.")
        sigmas = list(sigma) if isinstance(sigma, (list, tuple)) else [sigma, sigma]
        if len(sigmas) != 2:
            raise ConfigError(f"GaussianBlur(sigma): expected a number or two, got {sigma!r}.")
        self._sigmas = [0.0 if value is None else number("GaussianBlur(sigma)", value, 0.0) for value in sigmas]

    def of_array(self, image: Array) -> Array:
        weights = [_gauss(size, sigma) for size, sigma in zip(self._sizes, self._sigmas, strict=True)]
        if image.dtype == np.uint8:
            # Source: OpenCV's fixed point: weights of 8 bits along each axis, one half added at the end.
            across, down = (_fixed(line) for line in weights)
            total = _filtered(_filtered(image.astype(np.int64), 1, across), 0, down)
            return np.asarray(((total + (1 << 15)) >> 16).astype(np.uint8))
        work = _filtered(_filtered(image.astype(np.float64), 1, weights[0]), 0, weights[1])
        return from_float(work, image.dtype)


def _gauss(size: int, sigma: float) -> Array:
    sigma = sigma if sigma > 0 else 0.15 * size + 0.35
    weights = np.exp(-((np.arange(size) - (size - 1) / 2) ** 2) / (2 * sigma**2))
    return np.asarray(weights / weights.sum())


def _fixed(weights: Array) -> Array:
    """Symmetric weights as 256ths with the sum 256; what rounding takes from one goes to the next."""
    numbers, rest = np.zeros(len(weights), np.int64), 0.0
    middle = len(weights) // 2
    for place in range(middle):
        exact = float(weights[place]) * 256.0 + rest
        numbers[place] = numbers[-1 - place] = round(exact)
        rest = exact - float(numbers[place])
    numbers[middle] = 256 - int(numbers.sum())
    return numbers


def _filtered(image: Array, axis: int, weights: Array) -> Array:
    reach = len(weights) // 2
    length = image.shape[axis]
    widths = [(reach, reach) if axis == place else (0, 0) for place in range(image.ndim)]
    padded = np.pad(image, widths, "reflect") if length > 1 else np.pad(image, widths, "edge")
    parts = [weight * np.take(padded, range(shift, shift + length), axis) for shift, weight in enumerate(weights)]
    return np.asarray(sum(parts[1:], parts[0]))

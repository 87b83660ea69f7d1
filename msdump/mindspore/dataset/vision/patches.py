"""Transforms that cut an image in parts, cover a part, or put it on a larger canvas."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from msdump.errors import ConfigError
from msdump.mindspore.dataset import checks
from msdump.mindspore.dataset.rows import RandomTransform
from msdump.mindspore.dataset.vision.geometry import Resize, from_float, pad
from msdump.mindspore.dataset.vision.utils import (
    Border,
    ImageTransform,
    Inter,
    RandomImageTransform,
    SliceMode,
    fill_values,
    image_array,
    number,
)
from msdump.tensors.arrays import Array


class RandomResize(RandomImageTransform, takes="size"):
    """`Resize` with a way to interpolate that is drawn each time."""

    def _set_up(self) -> None:
        checks.size_pair("RandomResize(size)", self.size)

    def choose(self, generator: np.random.Generator, image: Any) -> Callable[[Any], Any]:
        inter = (Inter.LINEAR, Inter.NEAREST, Inter.CUBIC, Inter.AREA)[int(generator.integers(4))]
        return lambda image: Resize(self.size, inter)(np.asarray(image))


class SlicePatches(
    ImageTransform,
    takes="num_height:whole=1 num_width:whole=1 slice_mode:SliceMode=SliceMode.PAD fill_value:fill=0",
):
    """`num_height` x `num_width` patches, row by row. An image that does not divide is padded or loses its rest."""

    def of_array(self, image: Array) -> tuple[Array, ...]:
        (height, width), rows, columns = image.shape[:2], self.num_height, self.num_width
        if rows > height or columns > width:
            raise ConfigError(f"SlicePatches: expected at least {rows} x {columns} pixels, got {height} x {width}.")
        if self.slice_mode is SliceMode.PAD:
            image = pad(image, (0, 0, -width % columns, -height % rows), self.fill_value, Border.CONSTANT)
        tall, wide = image.shape[0] // rows, image.shape[1] // columns
        return tuple(
            np.ascontiguousarray(image[row * tall : (row + 1) * tall, column * wide : (column + 1) * wide])
            for row in range(rows)
            for column in range(columns)
        )


class RandomErasing(
    RandomTransform,
    takes="prob:chance=0.5 scale:range=(0.02,0.33) ratio:range=(0.3,3.3) value=0 inplace=False max_attempts:whole=10",
):
    """A random rectangle of a (C, H, W) array covered, with probability `prob`.

    value   a number, one for each channel, or "random": normal noise
    """

    def _set_up(self, value: float | str | Sequence[float]) -> None:
        if isinstance(value, str) and value != "random":
            raise ConfigError(f'RandomErasing(value): expected numbers or "random", got {value!r}.')
        self.value = value if isinstance(value, str) else fill_values("RandomErasing(value)", value)

    def draw(self, generator: np.random.Generator, *values: Any) -> Any:
        (image,) = values
        if not isinstance(image, np.ndarray) or image.ndim != 3:
            raise TypeError("RandomErasing: expected an array of shape (C, H, W). Use ToTensor() before it.")
        if generator.random() >= self.prob:
            return image
        height, width = image.shape[1:]
        for _ in range(self.max_attempts):
            area = generator.uniform(*self.scale) * height * width
            ratio = generator.uniform(*self.ratio)
            wide = round(math.sqrt(area * ratio))
            tall = round(wide / ratio) if ratio else 0
            if tall < height and wide < width:
                top, left = int(generator.integers(height - tall + 1)), int(generator.integers(width - wide + 1))
                result = image if self.inplace else image.copy()
                is_noise = isinstance(self.value, str)
                part = result[:, top : top + tall, left : left + wide]
                part[...] = generator.normal(size=part.shape) if is_noise else np.reshape(self.value, (-1, 1, 1))
                return result
        return image


class CutOut(RandomTransform, takes="length:whole num_patches:whole=1 is_hwc=True"):
    """Squares of zeros of `length` pixels at random places of a (H, W, C) array, or (C, H, W) without `is_hwc`."""

    def draw(self, generator: np.random.Generator, *values: Any) -> Any:
        result = np.array(image_array("CutOut", *values))
        planes = result if self.is_hwc else np.moveaxis(result, 0, -1)
        for _ in range(self.num_patches):
            starts = [int(generator.integers(max(size - self.length, 0) + 1)) for size in planes.shape[:2]]
            planes[tuple(slice(start, start + self.length) for start in starts)] = 0
        return result


class GaussianBlur(ImageTransform, takes="kernel_size sigma=None"):
    """Gaussian filter of `kernel_size` (odd; width and height); `sigma` None: from the size as OpenCV does."""

    def _set_up(self, kernel_size: int | Sequence[int], sigma: float | Sequence[float] | None) -> None:
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

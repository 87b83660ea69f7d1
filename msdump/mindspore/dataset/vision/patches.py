"""Transforms that cut an image in parts, cover a part, or put it on a larger canvas."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from msdump.errors import ConfigError
from msdump.mindspore.dataset import checks
from msdump.mindspore.dataset.rows import RandomTransform
from msdump.mindspore.dataset.vision.base import (
    ImageTransform,
    RandomImageTransform,
    number,
    number_range,
)
from msdump.mindspore.dataset.vision.geometry import (
    CenterCrop,
    Resize,
    border_of,
    crop,
    fill_values,
    inter_of,
    pad,
)
from msdump.mindspore.dataset.vision.resample import from_float
from msdump.mindspore.dataset.vision.utils import Border, Inter, SliceMode, is_pillow
from msdump.tensors.arrays import Array


class ResizedCrop(ImageTransform):
    """The part at (`top`, `left`) of `height` x `width` pixels, resized to `size`."""

    def __init__(
        self,
        top: int,
        left: int,
        height: int,
        width: int,
        size: int | Sequence[int],
        interpolation: Inter = Inter.BILINEAR,
    ) -> None:
        self._corner = (
            checks.whole_number("ResizedCrop(top)", top, 0),
            checks.whole_number("ResizedCrop(left)", left, 0),
        )
        self._part = (
            checks.whole_number("ResizedCrop(height)", height),
            checks.whole_number("ResizedCrop(width)", width),
        )
        self._resize = Resize(size, inter_of("ResizedCrop(interpolation)", interpolation))

    def of_array(self, image: Array) -> Any:
        return self._resize(crop("ResizedCrop", image, *self._corner, *self._part))


class RandomResize(RandomImageTransform):
    """`Resize` with a way to interpolate that is drawn each time."""

    def __init__(self, size: int | Sequence[int]) -> None:
        self._size = size
        checks.size_pair("RandomResize(size)", size)

    def choose(self, generator: np.random.Generator, image: Any) -> Callable[[Any], Any]:
        inter = (Inter.LINEAR, Inter.NEAREST, Inter.CUBIC, Inter.AREA)[int(generator.integers(4))]
        return lambda image: Resize(self._size, inter)(np.asarray(image))


class PadToSize(ImageTransform):
    """The image on a canvas of `size`; `offset` (top, left) places it, None: in the middle."""

    def __init__(
        self,
        size: int | Sequence[int],
        offset: int | Sequence[int] | None = None,
        fill_value: int | Sequence[int] = 0,
        padding_mode: Border = Border.CONSTANT,
    ) -> None:
        self._size = checks.size_pair("PadToSize(size)", size)
        given = [offset, offset] if isinstance(offset, int) else list(offset or [])
        self._offset = [checks.whole_number("PadToSize(offset)", place, 0) for place in given]
        if len(self._offset) not in (0, 2):
            raise ConfigError(f"PadToSize(offset): expected an int, (top, left) or none, got {offset!r}.")
        self._fill = fill_values("PadToSize(fill_value)", fill_value)
        self._mode = border_of("PadToSize(padding_mode)", padding_mode)

    def of_array(self, image: Array) -> Array:
        rows, columns = (size - have for size, have in zip(self._size, image.shape[:2], strict=True))
        top, left = self._offset or (rows // 2, columns // 2)
        if rows < top or columns < left:
            raise ConfigError(
                f"PadToSize: expected an image that fits into {self._size} at {(top, left)}, got {image.shape[:2]}."
            )
        return pad(image, (left, top, columns - left, rows - top), self._fill, self._mode)


class FiveCrop:
    """The four corners (upper left, upper right, lower left, lower right) and the middle, each of `size`."""

    def __init__(self, size: int | Sequence[int]) -> None:
        self._size = checks.size_pair(f"{type(self).__name__}(size)", size)

    def __call__(self, image: Any) -> tuple[Any, ...]:
        height, width = self._size
        if not is_pillow(image):
            raise TypeError(
                f"{type(self).__name__}: expected a Pillow image, got {type(image).__name__}. Use ToPIL() before it."
            )
        if image.height < height or image.width < width:
            raise ConfigError(
                f"{type(self).__name__}: expected an image of at least {height} x {width} pixels, got "
                f"{image.height} x {image.width}."
            )
        corners = [(x, y) for y in (0, image.height - height) for x in (0, image.width - width)]
        parts = [image.crop((x, y, x + width, y + height)) for x, y in corners]
        return (*parts, CenterCrop(self._size)(image))


class TenCrop(FiveCrop):
    """`FiveCrop` of the image and of its mirror image: left-right, or upside down with `use_vertical_flip`."""

    def __init__(self, size: int | Sequence[int], use_vertical_flip: bool = False) -> None:
        super().__init__(size)
        if not isinstance(use_vertical_flip, bool):
            raise TypeError(f"TenCrop(use_vertical_flip): expected a bool, got {type(use_vertical_flip).__name__}.")
        self._flip = 1 if use_vertical_flip else 0  # Pillow's numbers of the two transpositions

    def __call__(self, image: Any) -> tuple[Any, ...]:
        first = super().__call__(image)
        return (*first, *super().__call__(image.transpose(self._flip)))


class SlicePatches(ImageTransform):
    """`num_height` x `num_width` patches, row by row. An image that does not divide is padded or loses its rest."""

    def __init__(
        self,
        num_height: int = 1,
        num_width: int = 1,
        slice_mode: SliceMode = SliceMode.PAD,
        fill_value: int = 0,
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


class Erase(ImageTransform):
    """The part at (`top`, `left`) covered with `value`: a number, or one for each channel."""

    def __init__(
        self,
        top: int,
        left: int,
        height: int,
        width: int,
        value: float | Sequence[float] = 0,
        inplace: bool = False,
    ) -> None:
        self._top, self._left = checks.whole_number("Erase(top)", top, 0), checks.whole_number("Erase(left)", left, 0)
        self._height = checks.whole_number("Erase(height)", height)
        self._width = checks.whole_number("Erase(width)", width)
        self._value = fill_values("Erase(value)", value)
        if not isinstance(inplace, bool):
            raise TypeError(f"Erase(inplace): expected a bool, got {type(inplace).__name__}.")

    def of_array(self, image: Array) -> Array:
        if image.ndim != 3:
            raise ConfigError(f"Erase: expected an image of shape (H, W, C), got {image.shape}.")
        if self._height > image.shape[0] or self._width > image.shape[1]:
            raise ConfigError(f"Erase: expected a part inside of {image.shape}, got {self._height} x {self._width}.")
        result = image.copy()
        part = result[self._top : self._top + self._height, self._left : self._left + self._width]
        part[...] = np.asarray(self._value).astype(image.dtype)
        return result


class CutOut(RandomImageTransform):
    """`num_patches` squares of side `length`, with random middles, set to 0; (C, H, W) with `is_hwc=False`."""

    def __init__(self, length: int, num_patches: int = 1, is_hwc: bool = True) -> None:
        self._length = checks.whole_number("CutOut(length)", length)
        self._patches = checks.whole_number("CutOut(num_patches)", num_patches)
        if not isinstance(is_hwc, bool):
            raise TypeError(f"CutOut(is_hwc): expected a bool, got {type(is_hwc).__name__}.")
        self._is_hwc = is_hwc

    def choose(self, generator: np.random.Generator, image: Any) -> Callable[[Any], Any]:
        array = np.asarray(image)
        if array.ndim != 3:
            raise ConfigError(f"CutOut: expected an image with three dimensions, got {array.shape}.")
        height, width = array.shape[:2] if self._is_hwc else array.shape[1:]
        if self._length > height or self._length > width:
            raise ConfigError(f"CutOut(length): expected at most {min(height, width)}, got {self._length}.")
        result = array.copy()
        planes = result if self._is_hwc else result.transpose(1, 2, 0)
        for _ in range(self._patches):
            row, column = int(generator.integers(height)), int(generator.integers(width))
            top, left = max(row - self._length // 2, 0), max(column - self._length // 2, 0)
            planes[top : row - self._length // 2 + self._length, left : column - self._length // 2 + self._length] = 0
        return lambda _: result


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

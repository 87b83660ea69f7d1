"""Transforms that change colors: brightness, contrast, hue, histogram, number of levels.

Arrays are computed as OpenCV does it (rounded half to even), Pillow images as Pillow does it, as in MindSpore.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from msdump.errors import ConfigError
from msdump.mindspore.dataset import checks
from msdump.mindspore.dataset.vision.geometry import from_float
from msdump.mindspore.dataset.vision.utils import (
    ImageTransform,
    RandomImageTransform,
    byte_array,
    color_array,
    number,
    pillow,
)
from msdump.tensors.arrays import Array

# Source: OpenCV's conversion to gray, fixed point of 15 bits for bytes; ITU-R 601.
_GRAY_WEIGHTS, _GRAY_BITS = (9798, 19235, 3735), 15
_GRAY_SHARES = np.array([0.299, 0.587, 0.114], np.float32)


def gray_of(image: Array) -> Array:
    """Luminance of (H, W, 3).   Shapes: -> (H, W), dtype kept"""
    if image.dtype == np.uint8:
        total = image.astype(np.int64) @ np.array(_GRAY_WEIGHTS, np.int64)
        return ((total + (1 << (_GRAY_BITS - 1))) >> _GRAY_BITS).astype(np.uint8)
    return from_float(image.astype(np.float32) @ _GRAY_SHARES, image.dtype)


def blended(first: Array | float, second: Array, share: float) -> Array:
    """`first * (1 - share) + second * share` in the dtype of `second`."""
    # Source: OpenCV's addWeighted: float32, the second product rounded, the first one fused with the sum.
    factor = np.float32(share)
    rounded = (second.astype(np.float32) * factor).astype(np.float64)
    total = np.asarray(first, np.float64) * np.float64(np.float32(1.0) - factor) + rounded
    return from_float(total.astype(np.float32), second.dtype)


class Enhance(ImageTransform):
    """`factor` between a degenerate image (0) and the image itself (1); above 1 beyond it."""

    _pillow_enhancer = ""

    def _set_up(self, **factor: float) -> None:
        (self.factor,) = factor.values()

    def of_pillow(self, image: Any) -> Any:
        pillow(type(self).__name__)
        from PIL import ImageEnhance

        return getattr(ImageEnhance, self._pillow_enhancer)(image).enhance(self.factor)


class AdjustBrightness(Enhance, takes="brightness_factor:strength"):
    """All values times `brightness_factor`."""

    _pillow_enhancer = "Brightness"

    def of_array(self, image: Array) -> Array:
        return blended(0.0, image, self.factor)


class AdjustContrast(Enhance, takes="contrast_factor:strength"):
    """Away from, or toward, the mean luminance."""

    _pillow_enhancer = "Contrast"

    def of_array(self, image: Array) -> Array:
        mean = float(gray_of(color_array("AdjustContrast", image)).mean())
        return blended(float(int(mean + 0.5)) if image.dtype == np.uint8 else mean, image, self.factor)


class AdjustSaturation(Enhance, takes="saturation_factor:strength"):
    """Away from, or toward, the gray image."""

    _pillow_enhancer = "Color"

    def of_array(self, image: Array) -> Array:
        gray = gray_of(color_array("AdjustSaturation", image))[:, :, None].astype(np.float64)
        return blended(gray, image, self.factor)


class AdjustSharpness(Enhance, takes="sharpness_factor:strength"):
    """Away from, or toward, a smoothed image; the outermost pixels stay."""

    def of_array(self, image: Array) -> Array:
        return blended(smoothed(image).astype(np.float64), image, self.factor)

    def of_pillow(self, image: Any) -> Any:
        return self.of_array(np.asarray(image))


def smoothed(image: Array) -> Array:
    """Each inner pixel the mean of its 3 x 3 neighbours, itself with weight 5 of 13."""
    work = image.astype(np.float64)
    total = 4.0 * work[1:-1, 1:-1]
    for row in range(3):
        for column in range(3):
            total += work[row : image.shape[0] - 2 + row, column : image.shape[1] - 2 + column]
    result = image.copy()
    result[1:-1, 1:-1] = from_float(total / 13.0, image.dtype)
    return result


class AdjustHue(ImageTransform, takes="hue_factor"):
    """The hue turned by `hue_factor` of a whole turn, in [-0.5, 0.5]. Hues have 256 steps."""

    def _set_up(self, hue_factor: float) -> None:
        self._factor = number("AdjustHue(hue_factor)", hue_factor, -0.5, 0.5)

    def of_array(self, image: Array) -> Array:
        hue, saturation, value = rgb_to_hsv(byte_array("AdjustHue", color_array("AdjustHue", image)) / 255.0)
        # Source: OpenCV's full-range HSV: 256 steps when it counts them, 255 when it reads them.
        turned = (np.rint(hue * 256.0) + int(self._factor * 255)) % 256
        rounded = np.rint(saturation * 255.0) / 255.0
        return from_float(hsv_to_rgb(turned / 255.0, rounded, value) * 255.0, image.dtype)

    def of_pillow(self, image: Any) -> Any:
        if image.mode in ("L", "1", "I", "F"):
            return image
        hue, saturation, value = image.convert("HSV").split()
        turned = (np.asarray(hue).astype(np.int64) + int(self._factor * 255)) % 256
        module = pillow("AdjustHue")
        planes = (module.fromarray(turned.astype(np.uint8)), saturation, value)
        return module.merge("HSV", planes).convert(image.mode)


def rgb_to_hsv(image: Array) -> tuple[Array, Array, Array]:
    """Hue, saturation in [0, 1], and value, of (..., 3).   Source: the formulas of Python's colorsys"""
    work = image.astype(np.float64)
    red, green, blue = work[..., 0], work[..., 1], work[..., 2]
    largest, smallest = work.max(axis=-1), work.min(axis=-1)
    spread = largest - smallest
    safe = np.where(spread == 0, 1.0, spread)
    from_red, from_green, from_blue = ((largest - plane) / safe for plane in (red, green, blue))
    sector = np.where(
        red == largest,
        from_blue - from_green,
        np.where(green == largest, 2.0 + from_red - from_blue, 4.0 + from_green - from_red),
    )
    hue = np.where(spread == 0, 0.0, (sector / 6.0) % 1.0)
    saturation = np.where(spread == 0, 0.0, spread / np.where(largest == 0, 1.0, largest))
    return hue, saturation, largest


def hsv_to_rgb(hue: Array, saturation: Array, value: Array) -> Array:
    """Red, green and blue as the last axis.   Source: the formulas of Python's colorsys"""
    whole = np.trunc(hue * 6.0)
    part = hue * 6.0 - whole
    low = value * (1.0 - saturation)
    falling, rising = value * (1.0 - saturation * part), value * (1.0 - saturation * (1.0 - part))
    sector = (whole.astype(np.int64) % 6)[..., None]
    planes = [
        (value, rising, low),
        (falling, value, low),
        (low, value, rising),
        (low, falling, value),
        (rising, low, value),
        (value, low, falling),
    ]
    return np.select([sector == number for number in range(6)], [np.stack(plane, axis=-1) for plane in planes])


class Invert(ImageTransform):
    """`255 - image`."""

    def of_array(self, image: Array) -> Array:
        if image.ndim != 3:
            raise ConfigError(f"Invert: expected an image of shape (H, W, C), got {image.shape}.")
        return np.asarray(image.dtype.type(255) - image)

    def of_pillow(self, image: Any) -> Any:
        return pillow("Invert").fromarray(255 - np.asarray(image))


class Posterize(ImageTransform, takes="bits:whole_from_0"):
    """Only the `bits` highest bits of each value."""

    def _set_up(self) -> None:
        if self.bits > 8:
            raise ConfigError(f"Posterize(bits): expected an int in [0, 8], got {self.bits}.")

    def of_array(self, image: Array) -> Array:
        return byte_array("Posterize", image) & np.uint8((0xFF << (8 - self.bits)) & 0xFF)


class Solarize(ImageTransform, takes="threshold"):
    """`255 - value` for values in the range `threshold`: (low, high), or one number for (number, 255)."""

    def _set_up(self, threshold: float | Sequence[float]) -> None:
        bounds = tuple(threshold) if isinstance(threshold, (tuple, list)) else (threshold, 255)
        if len(bounds) != 2:
            raise ConfigError(f"Solarize(threshold): expected a number or (low, high), got {bounds}.")
        self._low = number("Solarize(threshold)", bounds[0], 0, 255)
        self._high = number("Solarize(threshold)", bounds[1], self._low, 255)

    def of_array(self, image: Array) -> Array:
        is_inside = (image >= self._low) & (image <= self._high)
        return np.where(is_inside, image.dtype.type(255) - image, image)


class Equalize(ImageTransform):
    """Each channel's histogram flattened."""

    def of_array(self, image: Array) -> Array:
        return _by_channel("Equalize", image, _equalized)

    def of_pillow(self, image: Any) -> Any:
        pillow("Equalize")
        from PIL import ImageOps

        return ImageOps.equalize(image)


def _by_channel(where: str, image: Array, compute: Callable[[Array], Array]) -> Array:
    planes = byte_array(where, image).reshape(*image.shape[:2], -1)
    return np.stack([compute(plane) for plane in np.moveaxis(planes, -1, 0)], axis=-1).reshape(image.shape)


def _equalized(plane: Array) -> Array:
    counts = np.bincount(plane.reshape(-1), minlength=256)
    first = int(np.flatnonzero(counts)[0])
    if counts[first] == plane.size:
        return plane.copy()
    scale = np.float32(255.0) / np.float32(plane.size - counts[first])
    sums = np.cumsum(counts) - counts[first]
    sums[: first + 1] = 0
    levels = from_float((sums.astype(np.float32) * scale).astype(np.float64), np.dtype(np.uint8))
    return levels[plane]


class AutoContrast(ImageTransform, takes="cutoff=0.0 ignore=None"):
    """Each channel stretched to 0 ... 255 after `cutoff` percent at both ends; `ignore`: values that do not count."""

    def _set_up(self, cutoff: float, ignore: int | Sequence[int] | None) -> None:
        self._cutoff = number("AutoContrast(cutoff)", cutoff, 0.0, 50.0)
        given = [] if ignore is None else (list(ignore) if isinstance(ignore, (list, tuple)) else [ignore])
        self._ignore = [checks.whole_number("AutoContrast(ignore)", value, 0) for value in given]

    def of_array(self, image: Array) -> Array:
        return _by_channel("AutoContrast", image, self._stretched)

    def _stretched(self, plane: Array) -> Array:
        counts = np.bincount(plane.reshape(-1), minlength=256)
        counts[[value for value in self._ignore if value < 256]] = 0
        below, total = np.cumsum(counts), int(counts.sum())
        cut = int(total * self._cutoff / 100.0)
        inside = np.flatnonzero((below > cut) & (total - (below - counts) > cut))
        if not len(inside) or inside[0] == inside[-1]:
            return plane.copy()
        scale = np.float32(255.0) / np.float32(int(inside[-1]) - int(inside[0]))
        levels = np.clip(np.arange(256, dtype=np.float32) * scale - np.float32(inside[0]) * scale, 0, 255)
        return np.asarray(levels.astype(np.uint8)[plane])

    def of_pillow(self, image: Any) -> Any:
        pillow("AutoContrast")
        from PIL import ImageOps

        return ImageOps.autocontrast(image, self._cutoff, self._ignore or None)


class ConvertColor(ImageTransform, takes="convert_mode:ConvertMode"):
    """Channels in another order, gray, or with alpha (255, or 1 for floats)."""

    def of_array(self, image: Array) -> Array:
        name, planes = self.convert_mode.name, np.atleast_3d(image)
        source, target = ("" if part == "GRAY" else part for part in name.removeprefix("COLOR_").split("2"))
        if planes.shape[2] != len(source or "G"):
            raise ConfigError(f"ConvertColor({name}): expected {len(source or 'G')} channels, got {image.shape}.")
        by_name = {letter: planes[:, :, source.find(letter)] for letter in source or "RGB"}
        if not target:
            return gray_of(np.stack([by_name[letter] for letter in "RGB"], axis=2))
        alpha = np.full_like(planes[:, :, 0], 1 if image.dtype.kind == "f" else 255)
        return np.stack([by_name.get(letter, alpha) for letter in target], axis=2)


class Grayscale(ImageTransform, takes="num_output_channels=1"):
    """Luminance (ITU-R 601) of bytes, in 1 or 3 equal channels.   Shapes: (H, W, 3) -> (H, W) or (H, W, 3)"""

    def _set_up(self, num_output_channels: int) -> None:
        if num_output_channels not in (1, 3):
            raise ConfigError(f"Grayscale(num_output_channels): expected 1 or 3, got {num_output_channels!r}.")
        self._mode = "L" if num_output_channels == 1 else "RGB"

    def of_array(self, image: Array) -> Array:
        return np.asarray(self.of_pillow(pillow("Grayscale").fromarray(byte_array("Grayscale", image))))

    def of_pillow(self, image: Any) -> Any:
        return image.convert("L").convert(self._mode)


class RandomGrayscale(RandomImageTransform, takes="prob:chance=0.1"):
    """`Grayscale` with as many channels as before, with probability `prob`."""

    def choose(self, generator: np.random.Generator, image: Any) -> Any:
        channels = 1 if getattr(image, "mode", "") == "L" else 3
        return Grayscale(channels) if generator.random() < self.prob else None

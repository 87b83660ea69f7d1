"""Color transforms whose strength, or whether they happen at all, is drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from msdump.errors import ConfigError
from msdump.mindspore.dataset import checks
from msdump.mindspore.dataset.vision.base import (
    ImageTransform,
    RandomImageTransform,
    Sometimes,
    number,
    number_range,
)
from msdump.mindspore.dataset.vision.color import (
    AdjustBrightness,
    AdjustContrast,
    AdjustHue,
    AdjustSaturation,
    AdjustSharpness,
    AutoContrast,
    Equalize,
    Invert,
    Posterize,
    Solarize,
)
from msdump.mindspore.dataset.vision.resample import from_float
from msdump.mindspore.dataset.vision.utils import is_pillow, pillow

# Source: the principal components of ImageNet's colors (AlexNet, section 4.1).
_COLOR_VALUES = np.array([0.2175, 0.0188, 0.0045])
_COLOR_VECTORS = np.array([[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]])


class RandomAdjustSharpness(Sometimes):
    """`AdjustSharpness(degree)` with probability `prob`."""

    def __init__(self, degree: float, prob: float = 0.5) -> None:
        super().__init__(prob)
        self._inner = AdjustSharpness(degree)


class RandomAutoContrast(Sometimes):
    """`AutoContrast(cutoff, ignore)` with probability `prob`."""

    def __init__(self, cutoff: float = 0.0, ignore: int | Sequence[int] | None = None, prob: float = 0.5) -> None:
        super().__init__(prob)
        self._inner = AutoContrast(cutoff, ignore).of_pixels


class RandomEqualize(Sometimes):
    """`Equalize` with probability `prob`."""

    def __init__(self, prob: float = 0.5) -> None:
        super().__init__(prob)
        self._inner = Equalize().of_pixels


class RandomInvert(Sometimes):
    """`Invert` with probability `prob`."""

    def __init__(self, prob: float = 0.5) -> None:
        super().__init__(prob)
        self._inner = Invert().of_pixels


class RandomColor(RandomImageTransform):
    """`AdjustSaturation` with a factor drawn from `degrees`."""

    def __init__(self, degrees: Sequence[float] = (0.1, 1.9)) -> None:
        self._degrees = number_range("RandomColor(degrees)", degrees, 0.0)

    def choose(self, generator: np.random.Generator, image: Any) -> Callable[[Any], Any]:
        return AdjustSaturation(generator.uniform(*self._degrees))


class RandomSharpness(RandomImageTransform):
    """`AdjustSharpness` with a factor drawn from `degrees`."""

    def __init__(self, degrees: Sequence[float] = (0.1, 1.9)) -> None:
        self._degrees = number_range("RandomSharpness(degrees)", degrees, 0.0)

    def choose(self, generator: np.random.Generator, image: Any) -> Callable[[Any], Any]:
        factor = generator.uniform(*self._degrees)
        if not is_pillow(image):
            return AdjustSharpness(factor)
        from PIL import ImageEnhance

        return lambda image: ImageEnhance.Sharpness(image).enhance(factor)


class RandomPosterize(RandomImageTransform):
    """`Posterize` with a number of bits drawn from `bits`: (low, high), or one int."""

    def __init__(self, bits: int | Sequence[int] = (8, 8)) -> None:
        pair = tuple(bits) if isinstance(bits, (list, tuple)) else (bits, bits)
        self._bits = [checks.whole_number("RandomPosterize(bits)", value) for value in pair]
        if len(self._bits) != 2 or not 1 <= self._bits[0] <= self._bits[1] <= 8:
            raise ConfigError(f"RandomPosterize(bits): expected 1 <= low <= high <= 8, got {bits!r}.")

    def choose(self, generator: np.random.Generator, image: Any) -> Callable[[Any], Any]:
        return Posterize(int(generator.integers(self._bits[0], self._bits[1] + 1)))


class RandomSolarize(RandomImageTransform):
    """`Solarize` between two numbers drawn from `threshold`; above one when they are equal."""

    def __init__(self, threshold: Sequence[float] = (0, 255)) -> None:
        self._threshold = number_range("RandomSolarize(threshold)", threshold, 0.0, 255.0)

    def choose(self, generator: np.random.Generator, image: Any) -> Callable[[Any], Any]:
        low, high = sorted(int(value) for value in generator.integers(*_whole(self._threshold), size=2))
        return Solarize(low) if low == high else Solarize((low, high))


def _whole(pair: tuple[float, float]) -> tuple[int, int]:
    return int(pair[0]), int(pair[1]) + 1


class RandomColorAdjust(RandomImageTransform):
    """Brightness, contrast, saturation and hue with drawn factors, in random order.

    Each is (low, high), or one number v for (max(0, 1 - v), 1 + v), for hue (-v, v).
    """

    def __init__(
        self,
        brightness: float | Sequence[float] = (1, 1),
        contrast: float | Sequence[float] = (1, 1),
        saturation: float | Sequence[float] = (1, 1),
        hue: float | Sequence[float] = (0, 0),
    ) -> None:
        around_one = (("brightness", brightness), ("contrast", contrast), ("saturation", saturation))
        self._ranges = [_factors(f"RandomColorAdjust({name})", value, 1.0, 0.0, None) for name, value in around_one]
        self._ranges.append(_factors("RandomColorAdjust(hue)", hue, 0.0, -0.5, 0.5))

    def choose(self, generator: np.random.Generator, image: Any) -> Callable[[Any], Any]:
        transforms: tuple[Callable[[float], ImageTransform], ...] = (
            AdjustBrightness,
            AdjustContrast,
            AdjustSaturation,
            AdjustHue,
        )
        chosen = [
            transform(generator.uniform(*bounds))
            for transform, bounds, neutral in zip(transforms, self._ranges, (1.0, 1.0, 1.0, 0.0), strict=True)
            if bounds != (neutral, neutral)
        ]
        order = generator.permutation(len(chosen))

        def adjust(image: Any) -> Any:
            for place in order:
                image = chosen[place](image)
            return image

        return adjust


def _factors(where: str, value: Any, middle: float, low: float, high: float | None) -> tuple[float, float]:
    if isinstance(value, (list, tuple)):
        return number_range(where, value, low, high)
    spread = number(where, value, 0.0, high)
    return max(low, middle - spread), middle + spread


class RandomLighting(RandomImageTransform):
    """Noise along the principal components of ImageNet's colors, of strength `alpha`."""

    def __init__(self, alpha: float = 0.05) -> None:
        self._alpha = number("RandomLighting(alpha)", alpha, 0.0)

    def choose(self, generator: np.random.Generator, image: Any) -> Callable[[Any], Any]:
        shift = _COLOR_VECTORS @ (_COLOR_VALUES * generator.normal(0.0, self._alpha, 3)) * 255.0

        def light(image: Any) -> Any:
            array = np.asarray(image)
            if array.ndim != 3 or array.shape[2] != 3:
                raise ConfigError(f"RandomLighting: expected an image of shape (H, W, 3), got {array.shape}.")
            result = from_float(array.astype(np.float64) + shift, array.dtype)
            return pillow("RandomLighting").fromarray(result) if is_pillow(image) else result

        return light

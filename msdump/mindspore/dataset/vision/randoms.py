"""Transforms whose strength, or whether they happen at all, is drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from msdump.errors import ConfigError
from msdump.mindspore.dataset import checks
from msdump.mindspore.dataset.rows import RandomTransform, apply_operation
from msdump.mindspore.dataset.vision.color import (
    AdjustBrightness,
    AdjustContrast,
    AdjustHue,
    AdjustSaturation,
    AdjustSharpness,
    Posterize,
    Solarize,
)
from msdump.mindspore.dataset.vision.utils import RandomImageTransform, is_pillow, number, number_range


class RandomColor(RandomImageTransform, takes="degrees:range=(0.1,1.9)"):
    """`AdjustSaturation` with a factor drawn from `degrees`."""

    def choose(self, generator: np.random.Generator, image: Any) -> Callable[[Any], Any]:
        return AdjustSaturation(generator.uniform(*self.degrees))


class RandomSharpness(RandomImageTransform, takes="degrees:range=(0.1,1.9)"):
    """`AdjustSharpness` with a factor drawn from `degrees`."""

    def choose(self, generator: np.random.Generator, image: Any) -> Callable[[Any], Any]:
        factor = generator.uniform(*self.degrees)
        if not is_pillow(image):
            return AdjustSharpness(factor)
        from PIL import ImageEnhance

        return lambda image: ImageEnhance.Sharpness(image).enhance(factor)


class RandomPosterize(RandomImageTransform, takes="bits=(8,8)"):
    """`Posterize` with a number of bits drawn from `bits`: (low, high), or one int."""

    def _set_up(self, bits: int | Sequence[int]) -> None:
        pair = tuple(bits) if isinstance(bits, (list, tuple)) else (bits, bits)
        self._bits = [checks.whole_number("RandomPosterize(bits)", value) for value in pair]
        if len(self._bits) != 2 or not 1 <= self._bits[0] <= self._bits[1] <= 8:
            raise ConfigError(f"RandomPosterize(bits): expected 1 <= low <= high <= 8, got {bits!r}.")

    def choose(self, generator: np.random.Generator, image: Any) -> Callable[[Any], Any]:
        return Posterize(int(generator.integers(self._bits[0], self._bits[1] + 1)))


class RandomSolarize(RandomImageTransform, takes="threshold=(0,255)"):
    """`Solarize` between two numbers drawn from `threshold`; above one when they are equal."""

    def _set_up(self, threshold: Sequence[float]) -> None:
        low, high = number_range("RandomSolarize(threshold)", threshold, 0.0, 255.0)
        self._bounds = int(low), int(high) + 1

    def choose(self, generator: np.random.Generator, image: Any) -> Callable[[Any], Any]:
        low, high = sorted(int(value) for value in generator.integers(*self._bounds, size=2))
        return Solarize(low) if low == high else Solarize((low, high))


class RandomColorAdjust(RandomImageTransform, takes="brightness=(1,1) contrast=(1,1) saturation=(1,1) hue=(0,0)"):
    """Brightness, contrast, saturation and hue with drawn factors, in random order.

    Each is (low, high), or one number v for (max(0, 1 - v), 1 + v), for hue (-v, v).
    """

    def _set_up(self, hue: float | Sequence[float], **around_one: float | Sequence[float]) -> None:
        self._ranges = [
            _factors(f"RandomColorAdjust({name})", value, 1.0, 0.0, None) for name, value in around_one.items()
        ]
        self._ranges.append(_factors("RandomColorAdjust(hue)", hue, 0.0, -0.5, 0.5))

    def choose(self, generator: np.random.Generator, image: Any) -> Callable[[Any], Any]:
        transforms: tuple[Any, ...] = (AdjustBrightness, AdjustContrast, AdjustSaturation, AdjustHue)
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


class RandomSelectSubpolicy(RandomTransform, takes="policy"):
    """One of the lists of (transform, probability), its transforms one after the other."""

    def _set_up(self, policy: Sequence[Sequence[tuple[Callable[..., Any], float]]]) -> None:
        where = "RandomSelectSubpolicy(policy)"
        if not isinstance(policy, list) or not policy or not all(isinstance(part, list) and part for part in policy):
            raise ConfigError(f"{where}: expected lists of (transform, probability), got {policy!r}.")
        for part in policy:
            checks.operations(where, [pair[0] for pair in part])
        self._policy = [[(transform, checks.probability(where, prob)) for transform, prob in part] for part in policy]

    def draw(self, generator: np.random.Generator, *values: Any) -> Any:
        for transform, prob in self._policy[int(generator.integers(len(self._policy)))]:
            if generator.random() < prob:
                values = apply_operation(transform, values, lambda: generator)
        return values[0] if len(values) == 1 else values

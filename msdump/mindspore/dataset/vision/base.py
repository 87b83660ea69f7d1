"""What the transforms of one image share: arrays in, arrays out; Pillow images where MindSpore keeps them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from msdump.errors import ConfigError
from msdump.mindspore.dataset.rows import RandomTransform, apply_operation
from msdump.mindspore.dataset.vision.utils import image_array, is_pillow
from msdump.mindspore.located import located_class
from msdump.tensors.arrays import Array


class ImageTransform(ABC):
    """A transform of one image that draws no numbers."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        located_class(cls)

    def __call__(self, image: Any) -> Any:
        return self.of_pillow(image) if is_pillow(image) else self.of_array(image_array(type(self).__name__, image))

    @abstractmethod
    def of_array(self, image: Array) -> Any:
        """The result for an (H, W) or (H, W, C) array."""

    def of_pixels(self, image: Any) -> Any:
        """The result as an array, whatever comes in."""
        return self.of_array(image_array(type(self).__name__, image))

    def of_pillow(self, image: Any) -> Any:
        """The result for a Pillow image: an array, unless the transform has a form of its own."""
        return self.of_array(image_array(type(self).__name__, image))


class RandomImageTransform(RandomTransform):
    """A transform that draws numbers and then is one that draws none."""

    @abstractmethod
    def choose(self, generator: np.random.Generator, image: Any) -> Callable[[Any], Any] | None:
        """The transform to use; None: leave the image as it is."""

    def draw(self, generator: np.random.Generator, *values: Any) -> Any:
        (image,) = values
        if not is_pillow(image):
            image = image_array(type(self).__name__, image)
        chosen = self.choose(generator, image)
        return image if chosen is None else apply_operation(chosen, (image,), lambda: generator)[0]


def height_and_width(image: Any) -> tuple[int, int]:
    """Of an array or a Pillow image."""
    if is_pillow(image):
        return image.height, image.width
    return int(image.shape[0]), int(image.shape[1])


def color_array(where: str, image: Array) -> Array:
    """`image` when it is (H, W, 3).   Raises: ConfigError."""
    if image.ndim != 3 or image.shape[2] != 3:
        raise ConfigError(f"{where}: expected an image of shape (H, W, 3), got {image.shape}.")
    return image


def byte_array(where: str, image: Array) -> Array:
    """`image` when its pixels are uint8.   Raises: ConfigError."""
    if image.dtype != np.uint8:
        raise ConfigError(f"{where}: expected uint8 pixels, got {image.dtype}.")
    return image


def number_range(where: str, value: Any, low: float, high: float | None = None) -> tuple[float, float]:
    """(low, high) of a pair of numbers.   Raises: TypeError, ConfigError."""
    if not isinstance(value, (tuple, list)):
        raise TypeError(f"{where}: expected a pair of numbers, got {type(value).__name__} {value!r}.")
    if len(value) != 2 or not value[0] <= value[1] or value[0] < low or (high is not None and value[1] > high):
        limits = f"at least {low}" if high is None else f"in [{low}, {high}]"
        raise ConfigError(f"{where}: expected (low, high), both {limits}, got {tuple(value)}.")
    return float(value[0]), float(value[1])


def number(where: str, value: Any, low: float | None = None, high: float | None = None) -> float:
    """`value` as a float in a range.   Raises: TypeError, ConfigError."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{where}: expected a number, got {type(value).__name__} {value!r}.")
    if not np.isfinite(value) or (low is not None and value < low) or (high is not None and value > high):
        raise ConfigError(f"{where}: expected a number in [{low}, {high}], got {value}.")
    return float(value)

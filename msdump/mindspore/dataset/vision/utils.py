"""`mindspore.dataset.vision.utils`: ways to resize and to pad, and what transforms of images share."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from enum import Enum, IntEnum
from typing import Any

import numpy as np

from msdump.errors import ConfigError, did_you_mean
from msdump.mindspore.common.declared import KINDS, Declared
from msdump.mindspore.dataset import checks
from msdump.mindspore.dataset.rows import RandomTransform, apply_operation, define_enums, kind_of
from msdump.mindspore.located import located_class
from msdump.mindspore.names import explain_missing
from msdump.tensors.arrays import Array

__all__ = ["AutoAugmentPolicy", "Border", "ConvertMode", "ImageBatchFormat", "ImageReadMode", "Inter", "SliceMode"]


class Inter(IntEnum):
    """How `Resize` computes a pixel between pixels."""

    NEAREST = 0
    ANTIALIAS = 1
    BILINEAR = LINEAR = 2
    BICUBIC = CUBIC = 3
    AREA = 4
    PILCUBIC = 5


class Border(str, Enum):
    """What pads an image: one value, its edge, or its mirror image without or with the edge itself."""

    CONSTANT = "constant"
    EDGE = "edge"
    REFLECT = "reflect"
    SYMMETRIC = "symmetric"


class AutoAugmentPolicy(str, Enum):
    """Which data a policy of `AutoAugment` was learned from."""

    IMAGENET = "imagenet"
    CIFAR10 = "cifar10"
    SVHN = "svhn"


class ConvertMode(IntEnum):
    """From which order of channels to which; red and blue change places in the same way from both sides."""

    COLOR_BGR2BGRA = COLOR_RGB2RGBA = 0
    COLOR_BGRA2BGR = COLOR_RGBA2RGB = 1
    COLOR_BGR2RGBA = COLOR_RGB2BGRA = 2
    COLOR_RGBA2BGR = COLOR_BGRA2RGB = 3
    COLOR_BGR2RGB = COLOR_RGB2BGR = 4
    COLOR_BGRA2RGBA = COLOR_RGBA2BGRA = 5
    COLOR_BGR2GRAY = 6
    COLOR_RGB2GRAY = 7
    COLOR_GRAY2BGR = COLOR_GRAY2RGB = 8
    COLOR_GRAY2BGRA = COLOR_GRAY2RGBA = 9
    COLOR_BGRA2GRAY = 10
    COLOR_RGBA2GRAY = 11


class ImageBatchFormat(IntEnum):
    """Where the channels of a batch of images are."""

    NHWC = 0
    NCHW = 1


class ImageReadMode(IntEnum):
    """Which channels `read_image` gives."""

    UNCHANGED = 0
    GRAYSCALE = 1
    COLOR = 2


class SliceMode(IntEnum):
    """What `SlicePatches` does with an image that does not divide: pad it, or drop the rest."""

    PAD = 0
    DROP = 1


def is_pillow(image: Any) -> bool:
    """Is it an image of Pillow? Does not import Pillow."""
    return type(image).__module__.partition(".")[0] == "PIL"


def image_array(where: str, image: Any) -> Array:
    """An (H, W) or (H, W, C) array of an array or a Pillow image.   Raises: TypeError, ConfigError."""
    array = np.asarray(image)
    if array.dtype.kind not in "uifb":
        raise TypeError(f"{where}: expected an image, got {type(image).__name__} of dtype {array.dtype}.")
    if array.ndim not in (2, 3):
        hint = " Is Decode() missing before it?" if array.ndim == 1 else ""
        raise ConfigError(f"{where}: expected an image of shape (H, W) or (H, W, C), got {array.shape}.{hint}")
    if 0 in array.shape:
        raise ConfigError(f"{where}: expected an image with pixels, got shape {array.shape}.")
    return array


def pillow_filter(where: str, inter: Inter) -> int:
    """Pillow's number of a way to interpolate.   Raises: TypeError for one that Pillow has not."""
    numbers = {Inter.NEAREST: 0, Inter.BILINEAR: 2, Inter.BICUBIC: 3, Inter.ANTIALIAS: 1}
    if inter not in numbers:
        raise TypeError(f"{where}: expected NEAREST, BILINEAR, BICUBIC or ANTIALIAS for a Pillow image, got {inter!r}.")
    return numbers[inter]


def pillow(where: str) -> Any:
    """The module `PIL.Image`.   Raises: ImportError that says how to install it."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError(f"{where}: needs Pillow. Install it: pip install 'msdump[images]'") from error
    return Image


class ImageTransform(Declared, ABC, takes=""):
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


def positive_range(where: str, value: Sequence[float]) -> tuple[float, float]:
    """(low, high) with 0 < low <= high.   Raises: ConfigError."""
    if len(value) != 2 or not 0 < value[0] <= value[1]:
        raise ConfigError(f"{where}: expected (low, high) with 0 < low <= high, got {tuple(value)}.")
    return float(value[0]), float(value[1])


def symmetric_range(where: str, value: Any) -> tuple[float, float]:
    """(low, high), of one number: (-number, number).   Raises: TypeError, ConfigError."""
    if isinstance(value, (list, tuple)):
        return number_range(where, value, -math.inf)
    positive = number(where, value, 0.0)
    return -positive, positive


def border_of(where: str, value: Any) -> Border:
    """Raises: ConfigError with the nearest for what is no way to pad."""
    try:
        return Border(value)
    except ValueError as error:
        names = [member.value for member in Border]
        raise ConfigError(
            f"{where}: expected one of {names}, got {value!r}. {did_you_mean(str(value), names)}".rstrip()
        ) from error


def fill_values(where: str, value: Any) -> tuple[float, ...]:
    """One number or several, in [0, 255].   Raises: ConfigError."""
    values = tuple(value) if isinstance(value, Sequence) else (value,)
    for number in values:
        if isinstance(number, bool) or not isinstance(number, (int, float)) or not 0 <= number <= 255:
            raise ConfigError(f"{where}: expected numbers in [0, 255], got {number!r}.")
    return values


define_enums(AutoAugmentPolicy, Border, ConvertMode, ImageBatchFormat, ImageReadMode, Inter, SliceMode)
KINDS |= {
    "Border": kind_of(border_of),
    "sides": kind_of(checks.size_pair),
    "borders": kind_of(checks.borders),
    "fill": kind_of(fill_values),
    "real": kind_of(number),
    "strength": kind_of(number, 0.0),
    "alpha": kind_of(number, 1e-9),
    "range": kind_of(number_range, 0.0),
    "positive_range": kind_of(positive_range),
    "symmetric_range": kind_of(symmetric_range),
}

__getattr__ = explain_missing(__name__)

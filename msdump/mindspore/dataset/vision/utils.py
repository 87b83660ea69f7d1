"""`mindspore.dataset.vision.utils`: names for ways to resize and to pad, and what a transform takes as an image."""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import Any

import numpy as np

from msdump.errors import ConfigError
from msdump.mindspore.names import explain_missing
from msdump.tensors.arrays import Array

__all__ = [
    "Border",
    "ImageReadMode",
    "Inter",
    "SliceMode",
]


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


__getattr__ = explain_missing(__name__)

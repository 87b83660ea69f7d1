"""`mindspore.dataset.vision.utils`: names for ways to resize and to pad, and what a transform takes as an image."""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import Any

import numpy as np

from msdump.arrays import Array
from msdump.errors import ConfigError
from msdump.frontends.mindspore.names import explain_missing

__all__ = ["Border", "Inter"]


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


def pillow(where: str) -> Any:
    """The module `PIL.Image`.   Raises: ImportError that says how to install it."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError(f"{where}: needs Pillow. Install it with: pip install Pillow") from error
    return Image


__getattr__ = explain_missing(__name__)

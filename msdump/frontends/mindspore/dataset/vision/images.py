"""What a transform takes as an image, and the arrays it works on."""

from __future__ import annotations

from typing import Any

import numpy as np

from msdump.arrays import Array
from msdump.errors import ConfigError


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

"""Images and bytes from and to files, and what an image is like."""

from __future__ import annotations

import io
import os
from pathlib import Path

import numpy as np

from msdump.errors import ConfigError, FormatError
from msdump.mindspore.dataset import checks
from msdump.mindspore.dataset.vision.utils import ImageReadMode, pillow
from msdump.tensors.arrays import Array

_COLOR_MODES = {ImageReadMode.GRAYSCALE: "L", ImageReadMode.COLOR: "RGB"}


def read_file(filename: str | os.PathLike[str]) -> Array:
    """Bytes of a file.   Shapes: -> (N,) uint8   Raises: TypeError, ConfigError (no such file)."""
    path = Path(checks.path_like("read_file(filename)", filename))
    if not path.is_file():
        raise ConfigError(f"read_file: expected a file, got none at {str(path)!r}.")
    return np.fromfile(path, np.uint8)


def read_image(filename: str | os.PathLike[str], mode: ImageReadMode = ImageReadMode.UNCHANGED) -> Array:
    """Pixels of an image file.   Shapes: -> (H, W, C)   Raises: TypeError, ConfigError, FormatError."""
    if not isinstance(mode, ImageReadMode):
        raise TypeError(f"read_image(mode): expected an ImageReadMode, got {type(mode).__name__}.")
    data = read_file(filename)
    module = pillow("read_image")
    try:
        image = module.open(io.BytesIO(data.tobytes()))
        image.load()
    except (OSError, ValueError, SyntaxError) as error:
        raise FormatError(f"{os.fspath(filename)}: expected an image that Pillow can read, got: {error}") from error
    if mode is not ImageReadMode.UNCHANGED:
        image = image.convert(_COLOR_MODES[mode])
    elif image.mode in ("P", "1", "CMYK"):
        image = image.convert("RGB")
    array = np.asarray(image)
    return array[:, :, None] if array.ndim == 2 else array

"""Images and bytes from and to files, and what an image is like."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import numpy as np

from msdump.errors import ConfigError, FormatError
from msdump.mindspore.dataset import checks
from msdump.mindspore.dataset.vision.utils import ImageReadMode, image_array, is_pillow, pillow
from msdump.tensors.arrays import Array

_COLOR_MODES = {ImageReadMode.GRAYSCALE: "L", ImageReadMode.COLOR: "RGB"}


def read_file(filename: str | os.PathLike[str]) -> Array:
    """Bytes of a file.   Shapes: -> (N,) uint8   Raises: TypeError, ConfigError (no such file)."""
    path = Path(checks.path_like("read_file(filename)", filename))
    if not path.is_file():
        raise ConfigError(f"read_file: expected a file, got none at {str(path)!r}.")
    return np.fromfile(path, np.uint8)


def write_file(filename: str | os.PathLike[str], data: Any) -> None:
    """Write the bytes of a 1-d uint8 array.   Raises: TypeError, ConfigError."""
    path = Path(checks.path_like("write_file(filename)", filename))
    array = np.asarray(data)
    if array.dtype != np.uint8 or array.ndim != 1:
        raise ConfigError(f"write_file(data): expected a 1-d uint8 array, got {array.dtype} {array.shape}.")
    path.write_bytes(array.tobytes())


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


def encode_jpeg(image: Any, quality: int = 75) -> Array:
    """Bytes of a JPEG file.   Shapes: (H, W), (H, W, 1) or (H, W, 3) uint8 -> (N,) uint8"""
    if checks.whole_number("encode_jpeg(quality)", quality) > 100:
        raise ConfigError(f"encode_jpeg(quality): expected an int in [1, 100], got {quality}.")
    return _encoded("encode_jpeg", image, "JPEG", quality=quality)


def encode_png(image: Any, compression_level: int = 6) -> Array:
    """Bytes of a PNG file.   Shapes: (H, W), (H, W, 1) or (H, W, 3) uint8 -> (N,) uint8"""
    if checks.whole_number("encode_png(compression_level)", compression_level, 0) > 9:
        raise ConfigError(f"encode_png(compression_level): expected an int in [0, 9], got {compression_level}.")
    return _encoded("encode_png", image, "PNG", compress_level=compression_level)


def write_jpeg(filename: str | os.PathLike[str], image: Any, quality: int = 75) -> None:
    """Write an image as a JPEG file."""
    write_file(filename, encode_jpeg(image, quality))


def write_png(filename: str | os.PathLike[str], image: Any, compression_level: int = 6) -> None:
    """Write an image as a PNG file."""
    write_file(filename, encode_png(image, compression_level))


def get_image_size(image: Any) -> list[int]:
    """[height, width] of an array or a Pillow image."""
    return [int(side) for side in image_array("get_image_size", image).shape[:2]]


def get_image_num_channels(image: Any) -> int:
    """Channels of an array or a Pillow image."""
    if is_pillow(image):
        return len(image.getbands())
    array = image_array("get_image_num_channels", image)
    return int(array.shape[2]) if array.ndim == 3 else 1


def _encoded(where: str, image: Any, form: str, **options: int) -> Array:
    array = image_array(where, image)
    if array.dtype != np.uint8 or (array.ndim == 3 and array.shape[2] not in (1, 3)):
        raise ConfigError(f"{where}: expected uint8 (H, W), (H, W, 1) or (H, W, 3), got {array.dtype} {array.shape}.")
    planes = array[:, :, 0] if array.ndim == 3 and array.shape[2] == 1 else array
    target = io.BytesIO()
    pillow(where).fromarray(np.ascontiguousarray(planes)).save(target, form, **options)
    return np.frombuffer(target.getvalue(), np.uint8)

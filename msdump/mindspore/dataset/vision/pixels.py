"""Transforms that change what a pixel says: its scale, dtype, channels, encoding; and files of images."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from msdump.errors import ConfigError, FormatError
from msdump.mindspore.common.dtype import DType, dtype_name
from msdump.mindspore.dataset import checks
from msdump.mindspore.dataset.vision.utils import ImageReadMode, image_array, is_pillow, pillow
from msdump.mindspore.names import publish
from msdump.tensors.arrays import Array


class Rescale:
    """`image * rescale + shift` in float32."""

    def __init__(self, rescale: float, shift: float) -> None:
        self._rescale = np.float32(_number("Rescale(rescale)", rescale))
        self._shift = np.float32(_number("Rescale(shift)", shift))

    def __call__(self, image: Any) -> Array:
        values = np.asarray(image).astype(np.float32)
        values *= self._rescale
        if self._shift != 0:
            values += self._shift
        return values


class Normalize:
    """`(image - mean) / std` for each channel, in float32.

    Shapes: (H, W, C) with `is_hwc`, else (C, H, W); a 2-d image has one channel.
    Edges:  one mean and one std count for all channels.
    """

    def __init__(self, mean: Sequence[float], std: Sequence[float], is_hwc: bool = True) -> None:
        self._mean = np.array([_number("Normalize(mean)", value) for value in mean], np.float32)
        self._std = np.array([_number("Normalize(std)", value) for value in std], np.float32)
        if self._mean.shape != self._std.shape or not self._mean.size:
            raise ConfigError(f"Normalize: expected as many means as stds, got {len(mean)} and {len(std)}.")
        if not (self._std > 0).all():
            raise ConfigError(f"Normalize(std): expected positive numbers, got {list(std)}.")
        self._is_hwc = is_hwc

    def __call__(self, image: Any) -> Array:
        array = image_array("Normalize", image)
        axis = -1 if self._is_hwc else 0
        channels = array.shape[axis] if array.ndim == 3 else 1
        if self._mean.size not in (1, channels):
            raise ConfigError(
                f"Normalize: expected {self._mean.size} channels, as many as means, got shape {array.shape}."
            )
        shape = (-1, 1, 1) if array.ndim == 3 and not self._is_hwc else (-1,)
        values = array.astype(np.float32)
        values -= self._mean.reshape(shape)
        values /= self._std.reshape(shape)
        return values


class HWC2CHW:
    """Channels first; a 2-d image stays as it is."""

    def __call__(self, image: Any) -> Array:
        array = image_array("HWC2CHW", image)
        return array if array.ndim == 2 else np.ascontiguousarray(array.transpose(2, 0, 1))


class ToTensor:
    """Channels first, divided by 255.

    Shapes: (H, W) -> (1, H, W); (H, W, C) -> (C, H, W)
    """

    def __init__(self, output_type: Any = np.float32) -> None:
        self._dtype = _numpy_dtype(output_type)

    def __call__(self, image: Any) -> Array:
        array = image_array("ToTensor", image)
        planes = array[None] if array.ndim == 2 else array.transpose(2, 0, 1)
        if is_pillow(image):  # MindSpore has two ways, which differ in the last bit
            return np.asarray((planes / self._dtype.type(255)).astype(self._dtype, copy=False))
        return (planes.astype(np.float32) * np.float32(1.0 / 255.0)).astype(self._dtype, copy=False)


class ToType:
    """Another dtype."""

    def __init__(self, data_type: Any) -> None:
        self._dtype = _numpy_dtype(data_type)

    def __call__(self, image: Any) -> Array:
        return np.asarray(image).astype(self._dtype)


class Decode:
    """Pixels of an encoded image (JPEG, PNG, BMP, GIF, TIFF, ...), always RGB.

    Shapes: (N,) uint8 bytes -> (H, W, 3) uint8, or a Pillow image with `to_pil`
    """

    def __init__(self, to_pil: bool = False) -> None:
        self._to_pil = to_pil

    def __call__(self, encoded: Any) -> Any:
        image_module = pillow("Decode")
        data = encoded if isinstance(encoded, bytes) else np.asarray(encoded)
        if isinstance(data, np.ndarray):
            if data.ndim != 1 or data.dtype != np.uint8:
                raise ConfigError(f"Decode: expected encoded bytes (1-d uint8), got {data.dtype} {data.shape}.")
            data = data.tobytes()
        try:
            image = image_module.open(io.BytesIO(data)).convert("RGB")
        except OSError as error:
            raise FormatError(
                f"Decode: expected an image that Pillow can read, got {len(data)} bytes. {error}"
            ) from error
        return image if self._to_pil else np.asarray(image)


class ToPIL:
    """A Pillow image of uint8 pixels (or of floats with one channel)."""

    def __call__(self, image: Any) -> Any:
        array = image_array("ToPIL", image)
        if array.ndim == 3 and array.shape[2] == 1:
            array = array[:, :, 0]
        return pillow("ToPIL").fromarray(np.ascontiguousarray(array))


class ToNumpy:
    """An array of a Pillow image."""

    def __call__(self, image: Any) -> Array:
        return np.array(image)


def _number(where: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{where}: expected a number, got {type(value).__name__} {value!r}.")
    return float(value)


def _numpy_dtype(what: Any) -> np.dtype[Any]:
    return DType(dtype_name(what)).numpy


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


def get_image_size(image: Any) -> list[int]:
    """[height, width] of an array or a Pillow image."""
    return [int(side) for side in image_array("get_image_size", image).shape[:2]]


publish(__name__, tells_line=False)

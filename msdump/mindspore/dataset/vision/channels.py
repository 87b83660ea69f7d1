"""Transforms that change how many channels there are, and in which order."""

from __future__ import annotations

from typing import Any

import numpy as np

from msdump.errors import ConfigError
from msdump.mindspore.dataset.vision.base import ImageTransform, Sometimes
from msdump.mindspore.dataset.vision.color import gray_of
from msdump.mindspore.dataset.vision.utils import ConvertMode, is_pillow
from msdump.tensors.arrays import Array

# mode -> (channels that are read, or 1 for the gray one; whether alpha is added)
_ORDERS: dict[ConvertMode, tuple[tuple[int, ...], bool]] = {
    ConvertMode.COLOR_BGR2BGRA: ((0, 1, 2), True),
    ConvertMode.COLOR_BGRA2BGR: ((0, 1, 2), False),
    ConvertMode.COLOR_BGR2RGBA: ((2, 1, 0), True),
    ConvertMode.COLOR_RGBA2BGR: ((2, 1, 0), False),
    ConvertMode.COLOR_BGR2RGB: ((2, 1, 0), False),
    ConvertMode.COLOR_BGRA2RGBA: ((2, 1, 0, 3), False),
    ConvertMode.COLOR_GRAY2BGR: ((0, 0, 0), False),
    ConvertMode.COLOR_GRAY2BGRA: ((0, 0, 0), True),
}
_GRAY_ORDERS = {
    ConvertMode.COLOR_BGR2GRAY: (2, 1, 0),
    ConvertMode.COLOR_RGB2GRAY: (0, 1, 2),
    ConvertMode.COLOR_BGRA2GRAY: (2, 1, 0),
    ConvertMode.COLOR_RGBA2GRAY: (0, 1, 2),
}


class ConvertColor(ImageTransform):
    """Channels in another order, gray, or with alpha (255, or 1 for floats)."""

    def __init__(self, convert_mode: ConvertMode) -> None:
        if not isinstance(convert_mode, ConvertMode):
            raise TypeError(f"ConvertColor(convert_mode): expected a ConvertMode, got {type(convert_mode).__name__}.")
        self._mode = convert_mode

    def of_array(self, image: Array) -> Array:
        planes = image if image.ndim == 3 else image[:, :, None]
        source = self._mode.name.removeprefix("COLOR_").partition("2")[0]
        if planes.shape[2] != {"GRAY": 1}.get(source, len(source)):
            raise ConfigError(
                f"ConvertColor({self._mode.name}): expected {source} channels, got an image of shape {image.shape}."
            )
        if self._mode in _GRAY_ORDERS:
            return gray_of(planes[:, :, list(_GRAY_ORDERS[self._mode])])
        order, adds_alpha = _ORDERS[self._mode]
        picked = planes[:, :, list(order)]
        if adds_alpha:
            alpha = np.full_like(picked[:, :, :1], 1 if image.dtype.kind == "f" else 255)
            picked = np.concatenate([picked, alpha], axis=2)
        return np.ascontiguousarray(picked)


class Grayscale(ImageTransform):
    """Luminance (ITU-R 601), in 1 or 3 equal channels.

    Shapes: (H, W, 3) -> (H, W) or (H, W, 3); MindSpore takes Pillow images only
    """

    def __init__(self, num_output_channels: int = 1) -> None:
        if num_output_channels not in (1, 3):
            raise ConfigError(f"Grayscale(num_output_channels): expected 1 or 3, got {num_output_channels!r}.")
        self._channels = num_output_channels

    def of_array(self, image: Array) -> Array:
        if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3:
            raise ConfigError(f"Grayscale: expected uint8 (H, W, 3), got {image.dtype} {image.shape}.")
        # Source: Pillow's conversion to "L", 16-bit fixed point.
        gray = ((image.astype(np.uint32) @ np.array([19595, 38470, 7471], np.uint32) + 0x8000) >> 16).astype(np.uint8)
        return gray if self._channels == 1 else np.repeat(gray[:, :, None], 3, axis=2)

    def of_pillow(self, image: Any) -> Any:
        gray = image.convert("L")
        return gray if self._channels == 1 else gray.convert("RGB")


class RandomGrayscale(Sometimes):
    """`Grayscale` with as many channels as before, with probability `prob`."""

    def __init__(self, prob: float = 0.1) -> None:
        super().__init__(prob)

    @staticmethod
    def _inner(image: Any) -> Any:
        if is_pillow(image):
            return Grayscale(1 if image.mode == "L" else 3)(image)
        return Grayscale(3)(image)

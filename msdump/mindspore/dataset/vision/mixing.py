"""Transforms of whole batches of images and their one-hot labels: MixUp and CutMix."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from msdump.errors import ConfigError
from msdump.mindspore.dataset import checks
from msdump.mindspore.dataset.rows import RandomTransform
from msdump.mindspore.dataset.vision.base import number
from msdump.mindspore.dataset.vision.resample import from_float
from msdump.mindspore.dataset.vision.utils import ImageBatchFormat
from msdump.tensors.arrays import Array


class MixUpBatch(RandomTransform):
    """Each image mixed with another of the batch, and so their labels; the share comes from Beta(alpha, alpha).

    Shapes: images (N, H, W, C) or (N, C, H, W), labels (N, classes) or (N, L, classes), one-hot
    Dtypes: images kept, labels float32
    """

    def __init__(self, alpha: float = 1.0) -> None:
        self._alpha = number("MixUpBatch(alpha)", alpha, 1e-9)

    def draw(self, generator: np.random.Generator, *values: Any) -> Any:
        images, labels = _batch("MixUpBatch", values)
        share = float(generator.beta(self._alpha, self._alpha))
        order = generator.permutation(len(images))
        mixed = images.astype(np.float64) * share + images[order].astype(np.float64) * (1.0 - share)
        return from_float(mixed, images.dtype), _mixed_labels(labels, order, np.full(len(labels), share))


class CutMixBatch(RandomTransform):
    """A rectangle of each image from another of the batch, with probability `prob`; labels by area, float32."""

    def __init__(self, image_batch_format: Any, alpha: float = 1.0, prob: float = 1.0) -> None:
        if not isinstance(image_batch_format, ImageBatchFormat):
            raise TypeError(f"CutMixBatch: expected an ImageBatchFormat, got {image_batch_format!r}.")
        self._is_hwc = image_batch_format is ImageBatchFormat.NHWC
        self._alpha = number("CutMixBatch(alpha)", alpha, 1e-9)
        self._probability = checks.probability("CutMixBatch(prob)", prob)

    def draw(self, generator: np.random.Generator, *values: Any) -> Any:
        images, labels = _batch("CutMixBatch", values)
        result = images.copy()
        planes = result if self._is_hwc else result.transpose(0, 2, 3, 1)
        sources = images if self._is_hwc else images.transpose(0, 2, 3, 1)
        order, shares = generator.permutation(len(images)), np.ones(len(images))
        height, width = planes.shape[1:3]
        for place, other in enumerate(order):
            share = float(generator.beta(self._alpha, self._alpha))
            row, column = int(generator.integers(height)), int(generator.integers(width))
            if generator.random() >= self._probability:
                continue
            cut = math.sqrt(1.0 - share)
            top, bottom = _span(row, int(height * cut), height)
            left, right = _span(column, int(width * cut), width)
            planes[place, top:bottom, left:right] = sources[other, top:bottom, left:right]
            shares[place] = 1.0 - (bottom - top) * (right - left) / (height * width)
        return result, _mixed_labels(labels, order, shares)


class MixUp:
    """`MixUpBatch` for a function of a batch: images and labels in float64, each image mixed with the next one.

    is_single   mix within the batch; otherwise with the batch of the call before
    """

    def __init__(self, batch_size: int, alpha: float, is_single: bool = True) -> None:
        self._batch_size = checks.whole_number("MixUp(batch_size)", batch_size)
        self._alpha = number("MixUp(alpha)", alpha, 1e-9)
        if not isinstance(is_single, bool):
            raise TypeError(f"MixUp(is_single): expected a bool, got {type(is_single).__name__}.")
        self._is_single = is_single
        self._before: tuple[Array, Array] | None = None
        self._random = _Shares(self._alpha)

    def __call__(self, image: Any, label: Any) -> tuple[Array, Array]:
        images, labels = np.asarray(image), np.asarray(label)
        if images.ndim != 4 or labels.ndim != 2 or len(images) != self._batch_size or len(labels) != self._batch_size:
            raise ConfigError(
                f"MixUp: expected {self._batch_size} images of rank 3 and one-hot labels, got {images.shape} and "
                f"{labels.shape}."
            )
        others = (np.roll(images, -1, axis=0), np.roll(labels, -1, axis=0)) if self._is_single else self._before
        self._before = (images, labels)
        if others is None:
            return images.astype(np.float64), labels.astype(np.float64)
        shares = self._random(self._batch_size)
        sides = shares.reshape(-1, 1, 1, 1), shares.reshape(-1, 1)
        return sides[0] * images + (1 - sides[0]) * others[0], sides[1] * labels + (1 - sides[1]) * others[1]


class _Shares(RandomTransform):
    """Shares of MixUp, from the generator of transforms that are called by hand."""

    def __init__(self, alpha: float) -> None:
        self._alpha = alpha

    def draw(self, generator: np.random.Generator, *values: Any) -> Any:
        return generator.beta(self._alpha, self._alpha, values[0])


def _batch(where: str, values: tuple[Any, ...]) -> tuple[Array, Array]:
    if len(values) != 2:
        raise ConfigError(f"{where}: expected two columns, images and labels, got {len(values)}.")
    images, labels = np.asarray(values[0]), np.asarray(values[1])
    if images.ndim != 4 or labels.ndim not in (2, 3) or len(images) != len(labels):
        raise ConfigError(
            f"{where}: expected a batch of images (N, H, W, C) and one-hot labels (N, classes), got {images.shape} and "
            f"{labels.shape}. Use OneHot and batch before it."
        )
    return images, labels


def _mixed_labels(labels: Array, order: Array, shares: Array) -> Array:
    sides = shares.reshape(-1, *[1] * (labels.ndim - 1))
    return (labels * sides + labels[order] * (1.0 - sides)).astype(np.float32)


def _span(middle: int, length: int, size: int) -> tuple[int, int]:
    return max(middle - length // 2, 0), min(middle + length // 2, size)

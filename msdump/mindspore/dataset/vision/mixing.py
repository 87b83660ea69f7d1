"""MixUp and CutMix: transforms of whole batches of images and their one-hot labels."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from msdump.errors import ConfigError
from msdump.mindspore.dataset.rows import RandomTransform
from msdump.mindspore.dataset.vision.geometry import from_float
from msdump.mindspore.dataset.vision.utils import ImageBatchFormat
from msdump.tensors.arrays import Array


class _Mixing(RandomTransform):
    """Mixes each image with another of the batch, and so their labels; the share comes from Beta(alpha, alpha).

    Shapes: images (N, H, W, C) or (N, C, H, W), labels (N, classes) or (N, L, classes), one-hot
    Dtypes: images kept, labels float32
    """

    def draw(self, generator: np.random.Generator, *values: Any) -> Any:
        images, labels = (np.asarray(value) for value in values) if len(values) == 2 else (np.empty(0), np.empty(0))
        if images.ndim != 4 or labels.ndim not in (2, 3) or len(images) != len(labels):
            raise ConfigError(
                f"{type(self).__name__}: expected a batch of images (N, H, W, C) and one-hot labels (N, classes), got "
                f"{images.shape} and {labels.shape}. Use OneHot and batch before it."
            )
        order = generator.permutation(len(images))
        mixed, shares = self.mixed(generator, images, images[order])
        sides = np.reshape(shares, (-1, *[1] * (labels.ndim - 1)))
        return mixed, (labels * sides + labels[order] * (1.0 - sides)).astype(np.float32)

    @abstractmethod
    def mixed(self, generator: np.random.Generator, images: Array, others: Array) -> tuple[Array, Any]:
        """The images, and how much of each is its own."""


class MixUpBatch(_Mixing, takes="alpha:alpha=1.0"):
    """Sums of the images and the others, all with one share."""

    def mixed(self, generator: np.random.Generator, images: Array, others: Array) -> tuple[Array, Any]:
        share = float(generator.beta(self.alpha, self.alpha))
        sums = images.astype(np.float64) * share + others.astype(np.float64) * (1.0 - share)
        return from_float(sums, images.dtype), share


class MixUp(RandomTransform, takes="batch_size:whole alpha:alpha is_single:bool=True"):
    """Each image of a batch mixed with the next one, or, unless `is_single`, with what came of the batch before."""

    _before: tuple[Array, ...] = ()

    def draw(self, generator: np.random.Generator, *values: Any) -> Any:
        if len(values) != 2 or {len(each) for each in values} != {self.batch_size}:
            raise ConfigError(
                f"MixUp: expected {self.batch_size} images and one-hot labels. Use OneHot and batch before."
            )
        others = [np.roll(each, -1, 0) for each in values] if self.is_single else self._before or values
        shares = generator.beta(self.alpha, self.alpha, self.batch_size)
        sides = [shares.reshape(-1, *[1] * (each.ndim - 1)) for each in values]
        mixed = [side * each + (1 - side) * other for side, each, other in zip(sides, values, others, strict=True)]
        self._before = tuple(mixed)
        return self._before


class CutMixBatch(_Mixing, takes="image_batch_format:ImageBatchFormat alpha:alpha=1.0 prob:chance=1.0"):
    """A rectangle of each image from the other one, with probability `prob`; the share is that of the area."""

    def mixed(self, generator: np.random.Generator, images: Array, others: Array) -> tuple[Array, Any]:
        result, shares = images.copy(), np.ones(len(images))
        is_last = self.image_batch_format is ImageBatchFormat.NHWC
        planes, sources = (array if is_last else array.transpose(0, 2, 3, 1) for array in (result, others))
        for place, plane in enumerate(planes):
            cut = np.sqrt(1.0 - generator.beta(self.alpha, self.alpha))
            middles = [(int(generator.integers(size)), int(size * cut) // 2, size) for size in plane.shape[:2]]
            if generator.random() < self.prob:
                part = tuple(slice(max(at - half, 0), min(at + half, size)) for at, half, size in middles)
                plane[part] = sources[place][part]
                shares[place] = 1.0 - plane[part].size / plane.size
        return result, shares

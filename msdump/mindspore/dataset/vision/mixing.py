"""MixUp: a transform of whole batches of images and their one-hot labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from msdump.errors import ConfigError
from msdump.mindspore.dataset.rows import RandomTransform
from msdump.mindspore.dataset.vision.geometry import from_float
from msdump.mindspore.dataset.vision.utils import number


class MixUpBatch(RandomTransform, takes="alpha=1.0"):
    """Each image mixed with another of the batch, and so their labels; the share comes from Beta(alpha, alpha).

    Shapes: images (N, H, W, C) or (N, C, H, W), labels (N, classes) or (N, L, classes), one-hot
    Dtypes: images kept, labels float32
    """

    def _set_up(self, alpha: float) -> None:
        self._alpha = number("MixUpBatch(alpha)", alpha, 1e-9)

    def draw(self, generator: np.random.Generator, *values: Any) -> Any:
        images, labels = (np.asarray(value) for value in values) if len(values) == 2 else (np.empty(0), np.empty(0))
        if images.ndim != 4 or labels.ndim not in (2, 3) or len(images) != len(labels):
            raise ConfigError(
                f"MixUpBatch: expected a batch of images (N, H, W, C) and one-hot labels (N, classes), got "
                f"{images.shape} and {labels.shape}. Use OneHot and batch before it."
            )
        share, order = float(generator.beta(self._alpha, self._alpha)), generator.permutation(len(images))
        mixed = images.astype(np.float64) * share + images[order].astype(np.float64) * (1.0 - share)
        return from_float(mixed, images.dtype), (labels * share + labels[order] * (1.0 - share)).astype(np.float32)

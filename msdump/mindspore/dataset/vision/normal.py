"""Transforms of the whole array at once: a fourth channel for Normalize, and a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from msdump.errors import ConfigError
from msdump.mindspore.dataset.vision.pixels import Normalize
from msdump.mindspore.dataset.vision.utils import image_array
from msdump.tensors.arrays import Array


class NormalizePad:
    """`Normalize`, then one more channel of zeros.

    Dtypes: `dtype` "float32" or "float16"
    """

    def __init__(
        self, mean: Sequence[float], std: Sequence[float], dtype: str = "float32", is_hwc: bool = True
    ) -> None:
        if dtype not in ("float32", "float16"):
            raise ConfigError(f'NormalizePad(dtype): expected "float32" or "float16", got {dtype!r}.')
        self._normalize, self._dtype, self._is_hwc = Normalize(mean, std, is_hwc), np.dtype(dtype), is_hwc

    def __call__(self, image: Any) -> Array:
        values = self._normalize(image_array("NormalizePad", image))
        planes = values if values.ndim == 3 else values[:, :, None]
        axis = 2 if self._is_hwc else 0
        zeros = np.zeros_like(np.take(planes, [0], axis))
        return np.concatenate([planes, zeros], axis).astype(self._dtype)


class LinearTransformation:
    """The flattened array less `mean_vector`, times `transformation_matrix`, in its old shape: whitening."""

    def __init__(self, transformation_matrix: Array, mean_vector: Array) -> None:
        for name, value in (("transformation_matrix", transformation_matrix), ("mean_vector", mean_vector)):
            if not isinstance(value, np.ndarray):
                raise TypeError(f"LinearTransformation({name}): expected an array, got {type(value).__name__}.")
        if transformation_matrix.ndim != 2 or len(set(transformation_matrix.shape)) != 1:
            raise ConfigError(
                f"LinearTransformation(transformation_matrix): expected a square matrix, got "
                f"{transformation_matrix.shape}."
            )
        if mean_vector.shape != transformation_matrix.shape[:1]:
            raise ConfigError(
                f"LinearTransformation(mean_vector): expected {transformation_matrix.shape[0]} numbers, got shape "
                f"{mean_vector.shape}."
            )
        self._matrix, self._mean = transformation_matrix, mean_vector

    def __call__(self, image: Any) -> Array:
        if not isinstance(image, np.ndarray):
            raise TypeError(f"LinearTransformation: expected an array, got {type(image).__name__}.")
        if image.size != len(self._mean):
            raise ConfigError(f"LinearTransformation: expected {len(self._mean)} values, got shape {image.shape}.")
        return ((image.reshape(1, -1) - self._mean) @ self._matrix).reshape(image.shape)

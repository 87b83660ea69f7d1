"""Transforms of an image together with its bounding boxes: rows of (x, y, width, height, ...)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from msdump.errors import ConfigError
from msdump.mindspore.dataset import checks
from msdump.mindspore.dataset.rows import RandomTransform, apply_operation
from msdump.mindspore.dataset.vision.geometry import (
    RandomCrop,
    RandomResizedCrop,
    Resize,
    crop,
    pad,
)
from msdump.mindspore.dataset.vision.patches import RandomResize
from msdump.mindspore.dataset.vision.resample import resize
from msdump.mindspore.dataset.vision.utils import Border, Inter, image_array
from msdump.tensors.arrays import Array


class _WithBoxes(RandomTransform):
    """Takes an image and its boxes, and gives both. Boxes keep the dtype they come with."""

    def draw(self, generator: np.random.Generator, *values: Any) -> Any:
        where = type(self).__name__
        if len(values) != 2:
            raise ConfigError(f"{where}: expected two columns, image and boxes, got {len(values)}.")
        image, boxes = image_array(where, values[0]), np.asarray(values[1])
        if boxes.ndim != 2 or boxes.shape[1] < 4:
            raise ConfigError(f"{where}: expected boxes of shape (N, 4) or more columns, got {boxes.shape}.")
        ends = boxes[:, :2] + boxes[:, 2:4]
        if (boxes[:, :4] < 0).any() or (ends > (image.shape[1], image.shape[0])).any():
            raise ConfigError(f"{where}: expected boxes inside of the image {image.shape[:2]}, got {boxes.tolist()}.")
        return self.moved(generator, image, boxes.copy())

    def moved(self, generator: np.random.Generator, image: Array, boxes: Array) -> tuple[Array, Array]:
        """The new image and the new boxes; `boxes` is an own copy."""
        raise NotImplementedError


class RandomHorizontalFlipWithBBox(_WithBoxes):
    """`RandomHorizontalFlip` of the image and its boxes."""

    axis = 1

    def __init__(self, prob: float = 0.5) -> None:
        self._probability = checks.probability(f"{type(self).__name__}(prob)", prob)

    def moved(self, generator: np.random.Generator, image: Array, boxes: Array) -> tuple[Array, Array]:
        if generator.random() >= self._probability:
            return image, boxes
        # Boxes begin with (x, y, width, height).
        start, size = 1 - self.axis, 3 - self.axis
        boxes[:, start] = image.shape[self.axis] - boxes[:, start] - boxes[:, size]
        return np.ascontiguousarray(np.flip(image, self.axis)), boxes


class RandomVerticalFlipWithBBox(RandomHorizontalFlipWithBBox):
    """`RandomVerticalFlip` of the image and its boxes."""

    axis = 0


class ResizeWithBBox(_WithBoxes):
    """`Resize` of the image and its boxes."""

    def __init__(self, size: int | Sequence[int], interpolation: Inter = Inter.LINEAR) -> None:
        self._resize = Resize(size, interpolation)

    def moved(self, generator: np.random.Generator, image: Array, boxes: Array) -> tuple[Array, Array]:
        return _resized(image, boxes, self._resize.of_array(image))


class RandomResizeWithBBox(_WithBoxes):
    """`RandomResize` of the image and its boxes."""

    def __init__(self, size: int | Sequence[int]) -> None:
        self._resize = RandomResize(size)

    def moved(self, generator: np.random.Generator, image: Array, boxes: Array) -> tuple[Array, Array]:
        return _resized(image, boxes, self._resize.draw(generator, image))


class RandomCropWithBBox(_WithBoxes):
    """`RandomCrop` of the image; boxes are cut at its edges, and those outside are dropped."""

    def __init__(
        self,
        size: int | Sequence[int],
        padding: int | Sequence[int] | None = None,
        pad_if_needed: bool = False,
        fill_value: int | Sequence[int] = 0,
        padding_mode: Border = Border.CONSTANT,
    ) -> None:
        self._crop = RandomCrop(size, padding, pad_if_needed, fill_value, padding_mode)

    def moved(self, generator: np.random.Generator, image: Array, boxes: Array) -> tuple[Array, Array]:
        borders, row, column, height, width = self._crop.plan(generator, image.shape[0], image.shape[1])
        padded = pad(image, borders, self._crop.fill, self._crop.mode)
        boxes[:, :2] = boxes[:, :2] + np.array([borders[0], borders[1]]).astype(boxes.dtype)
        part = crop("RandomCropWithBBox", padded, row, column, height, width)
        return part, _cut(boxes, row, column, height, width)


class RandomResizedCropWithBBox(_WithBoxes):
    """`RandomResizedCrop` of the image; boxes are cut at its edges, and those outside are dropped."""

    def __init__(
        self,
        size: int | Sequence[int],
        scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3.0 / 4.0, 4.0 / 3.0),
        interpolation: Inter = Inter.BILINEAR,
        max_attempts: int = 10,
    ) -> None:
        self._crop = RandomResizedCrop(size, scale, ratio, interpolation, max_attempts)
        self._size, self._inter = checks.size_pair("RandomResizedCropWithBBox(size)", size), interpolation

    def moved(self, generator: np.random.Generator, image: Array, boxes: Array) -> tuple[Array, Array]:
        row, column, height, width = self._crop.part(generator, image.shape[0], image.shape[1])
        part = np.ascontiguousarray(image[row : row + height, column : column + width])
        return _resized(part, _cut(boxes, row, column, height, width), resize(part, *self._size, self._inter))


class BoundingBoxAugment(_WithBoxes):
    """A transform of some of the boxes' contents; `ratio` is the share of boxes that get it."""

    def __init__(self, transform: Callable[[Any], Any], ratio: float = 0.3) -> None:
        if isinstance(transform, type) or not callable(transform):
            raise TypeError(f"BoundingBoxAugment(transform): expected a transform, got {transform!r}.")
        self._transform = transform
        self._ratio = checks.probability("BoundingBoxAugment(ratio)", ratio)

    def moved(self, generator: np.random.Generator, image: Array, boxes: Array) -> tuple[Array, Array]:
        count = max(int(len(boxes) * self._ratio), 1)
        result = image.copy()
        for place in generator.permutation(len(boxes))[:count]:
            x, y, width, height = (int(value) for value in boxes[place, :4])
            part = result[y : y + height, x : x + width]
            if part.size:
                new = apply_operation(self._transform, (np.ascontiguousarray(part),), lambda: generator)[0]
                part[...] = resize(np.asarray(new), height, width, Inter.LINEAR)
        return result, boxes


def _resized(image: Array, boxes: Array, new: Array) -> tuple[Array, Array]:
    scale_x, scale_y = new.shape[1] / image.shape[1], new.shape[0] / image.shape[0]
    boxes[:, :4] = boxes[:, :4] * np.array([scale_x, scale_y, scale_x, scale_y])
    return new, boxes


def _cut(boxes: Array, row: int, column: int, height: int, width: int) -> Array:
    """Boxes as seen from a part of the image; one box of zeros where none is left."""
    starts = np.clip(boxes[:, :2] - (column, row), 0, (width, height))
    ends = np.clip(boxes[:, :2] + boxes[:, 2:4] - (column, row), 0, (width, height))
    boxes[:, :2], boxes[:, 2:4] = starts, ends - starts
    kept = boxes[(boxes[:, 2] > 0) & (boxes[:, 3] > 0)]
    return kept if len(kept) else np.zeros_like(boxes[:1])

"""Distances between the surfaces of a segmentation and its label."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, final

import numpy as np

from msdump.mindspore.names import publish
from msdump.mindspore.train.metrics.base import (
    BatchMetric,
    array_of,
    expect_one_of,
    expect_type,
    expect_update,
)
from msdump.tensors.arrays import Array

_DISTANCES = ("euclidean", "chessboard", "taxicab")
# Points of one side that are compared with the other side at a time: a bound on memory.
_BLOCK = 1024


class _SurfaceMetric(BatchMetric):
    """The last batch counts: (predicted value, true value, label index), edges of the elements that are the label."""

    INPUTS = "predicted value, true value, label index"

    def __init__(self, distance_metric: str) -> None:
        super().__init__()
        expect_one_of(type(self).__name__, "distance_metric", distance_metric, _DISTANCES)
        self.distance_metric = distance_metric
        self.clear()

    def clear(self) -> None:
        self._predicted: Array = np.zeros(0, bool)
        self._true: Array = np.zeros(0, bool)
        self._is_update = False

    def take(self, predicted: Any, true: Any, label: Any) -> None:
        name = type(self).__name__
        predicted, true, label = array_of(predicted), array_of(true), label
        if not isinstance(label, int | float):
            raise ValueError(f"For '{name}.update', the label index must be int or float, but got {type(label)}.")
        if predicted.size == 0 or predicted.shape != true.shape:
            raise ValueError(
                f"For '{name}.update', expected predicted and true values of one shape that is not empty, but got "
                f"{predicted.shape} and {true.shape}."
            )
        if label not in predicted and label not in true:
            raise ValueError(f"For '{name}.update', the label index {label} is in neither value.")
        self._predicted = edges(predicted if predicted.dtype == bool else predicted == label)
        self._true = edges(true if true.dtype == bool else true == label)

    def _distances(self, is_reversed: bool = False) -> Array:
        """From each edge element of the predicted value to the nearest of the true one; or the other way round."""
        pair = (self._true, self._predicted) if is_reversed else (self._predicted, self._true)
        return nearest(*pair, self.distance_metric)


def edges(mask: Array) -> Array:
    """Elements of a mask with a neighbour along an axis that is outside of it, or outside of the array."""
    inner = mask.copy()
    for axis in range(mask.ndim):
        padded = np.pad(mask, [(1, 1) if each == axis else (0, 0) for each in range(mask.ndim)])
        inner &= padded.take(range(mask.shape[axis]), axis) & padded.take(range(2, mask.shape[axis] + 2), axis)
    return mask & ~inner


def nearest(points: Array, others: Array, metric: str) -> Array:
    """Distance of each element of the mask `points` to the nearest of `others`: infinite when there is none."""
    starts, ends = np.argwhere(points), np.argwhere(others)
    if not len(ends):
        return np.full(len(starts), np.inf)
    blocks = [starts[begin : begin + _BLOCK] for begin in range(0, len(starts), _BLOCK)]
    return np.concatenate([np.empty(0), *(_least(block, ends, metric) for block in blocks)])


def _least(starts: Array, ends: Array, metric: str) -> Array:
    steps = np.abs(starts[:, None] - ends[None])
    if metric == "euclidean":
        return np.asarray(np.sqrt((steps**2).sum(axis=2)).min(axis=1))
    return np.asarray((steps.max(axis=2) if metric == "chessboard" else steps.sum(axis=2)).min(axis=1))


@final
class HausdorffDistance(_SurfaceMetric):
    """The largest distance from one edge to the other, or a percentile of them; both ways unless `directed`."""

    def __init__(
        self,
        distance_metric: str = "euclidean",
        percentile: float | None = None,
        directed: bool = False,
        crop: bool = True,
    ) -> None:
        super().__init__(distance_metric)
        if percentile is not None:
            expect_type("HausdorffDistance", "percentile", percentile, float)
        expect_type("HausdorffDistance", "directed", directed, bool)
        expect_type("HausdorffDistance", "crop", crop, bool)
        self.percentile, self.directed, self.crop = percentile, directed, crop

    def eval(self) -> Any:
        expect_update(self._is_update)
        one = self._largest(self._distances())
        return one if self.directed else max(one, self._largest(self._distances(is_reversed=True)))

    def _largest(self, distances: Array) -> Any:
        if not distances.size:
            return np.inf
        if not self.percentile:
            return distances.max()
        if not 0 <= self.percentile <= 100:
            raise ValueError(
                f"For 'HausdorffDistance', the value of the argument 'percentile' must be [0, 100], but got "
                f"{self.percentile}."
            )
        return np.percentile(distances, self.percentile)


class _Mean(_SurfaceMetric):
    """One number of the distances one way, or of both ways when `symmetric`."""

    def __init__(self, symmetric: bool = False, distance_metric: str = "euclidean") -> None:
        super().__init__(distance_metric)
        expect_type(type(self).__name__, "symmetric", symmetric, bool)
        self.symmetric = symmetric

    @abstractmethod
    def mean(self, distances: Array) -> Any:
        """One number of the distances of one way."""

    @abstractmethod
    def joined(self, both: Array) -> Any:
        """One number of those of both ways."""

    def eval(self) -> Any:
        expect_update(self._is_update)
        ways = [self._distances(), self._distances(is_reversed=True)][: 1 + self.symmetric]
        if not all(way.size for way in ways):
            return np.inf
        numbers = np.array([self.mean(way) for way in ways])
        return self.joined(numbers) if self.symmetric else numbers[0]


@final
class MeanSurfaceDistance(_Mean):
    """Mean distance from one edge to the other."""

    def mean(self, distances: Array) -> Any:
        return distances.mean()

    def joined(self, both: Array) -> Any:
        return both.mean()


@final
class RootMeanSquareDistance(_Mean):
    """Mean square of the distances; its root only when `symmetric`.   Source: MindSpore 2.0 and 2.7."""

    def mean(self, distances: Array) -> Any:
        return (distances**2).mean()

    def joined(self, both: Array) -> Any:
        return np.sqrt(both.mean())


publish(__name__)

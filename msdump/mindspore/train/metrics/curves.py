"""Confusion matrices, receiver operating characteristics, the area below a curve, and how masks fit each other."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from msdump.mindspore.common import declared as _declared
from msdump.mindspore.names import publish
from msdump.mindspore.train.metrics.base import BatchMetric, MeanMetric, array_of, expect_type, reversed_order
from msdump.tensors.arrays import Array

_SUM_AXES = {"no_norm": None, "target": (1,), "prediction": (0,), "all": (0, 1)}


def _expect_update(metric: BatchMetric) -> None:
    if not metric._is_update:
        raise RuntimeError("Please call the 'update' method before calling 'eval' method.")


@final
class ConfusionMatrix(BatchMetric):
    """Samples by true class (rows) and predicted class (columns).

    normalize   over rows (target), columns (prediction), all elements (all), or not at all (no_norm)
    """

    def __init__(self, num_classes: int, normalize: str = "no_norm", threshold: float = 0.5) -> None:
        super().__init__()
        expect_type("ConfusionMatrix", "num_classes", num_classes, int)
        expect_type("ConfusionMatrix", "threshold", threshold, float)
        if normalize not in _SUM_AXES:
            raise ValueError(
                f"For 'ConfusionMatrix', 'normalize' must be one of {list(_SUM_AXES)}, but got {normalize!r}."
            )
        self.num_classes, self.normalize, self.threshold = num_classes, normalize, threshold
        self.clear()

    def clear(self) -> None:
        self.confusion_matrix = np.zeros((self.num_classes, self.num_classes))
        self._is_update = False

    def take(self, predicted: Any, true: Any) -> None:
        """Predicted: scores with classes on axis 1, class indices, or scores of class 1 for the threshold."""
        predicted, true = array_of(predicted), array_of(true)
        if predicted.ndim not in (true.ndim, true.ndim + 1):
            raise ValueError(
                "For 'ConfusionMatrix.update', expected predicted values of as many dimensions as the true values or "
                f"one more, but got {predicted.ndim} and {true.ndim}."
            )
        if predicted.ndim == true.ndim + 1:
            predicted = predicted.argmax(axis=1)
        elif predicted.dtype.kind == "f":
            predicted = predicted >= self.threshold
        cells = true.reshape(-1).astype(np.int64) * self.num_classes + predicted.reshape(-1).astype(np.int64)
        self.confusion_matrix += np.bincount(cells, minlength=self.num_classes**2).reshape(self.num_classes, -1)

    def eval(self) -> Array:
        _expect_update(self)
        axes, counts = _SUM_AXES[self.normalize], self.confusion_matrix
        totals = np.ones(()) if axes is None else counts.sum(axis=axes, keepdims=True)
        return counts / np.where(totals == 0, 1, totals)


@final
class ROC(BatchMetric):
    """(false positive rate, true positive rate, falling thresholds); lists of them for several classes."""

    def __init__(self, class_num: int | None = None, pos_label: int | None = None) -> None:
        super().__init__()
        for name, number in (("class_num", class_num), ("pos_label", pos_label)):
            if number is not None:
                expect_type("ROC", name, number, int)
        self.class_num, self.pos_label = class_num, pos_label
        self.clear()

    def clear(self) -> None:
        self._scores: Array = np.empty(0)
        self._labels: Array = np.empty(0)
        self._is_update = False

    def take(self, predicted: Any, true: Any) -> None:
        """Scores of the shape of the labels, or [samples, classes] for several classes. The last batch counts."""
        scores, labels = array_of(predicted), array_of(true)
        is_single = scores.ndim == labels.ndim
        classes = 1 if is_single else scores.shape[1] if scores.ndim == labels.ndim + 1 else -1
        fits = self.class_num in (None, 1) if is_single else self.class_num == classes and self.pos_label is None
        if not fits:
            raise ValueError(
                f"For 'ROC', 'class_num' {self.class_num} and 'pos_label' {self.pos_label} do not fit a predicted "
                f"value of shape {scores.shape} and a true value of shape {labels.shape}."
            )
        if is_single:
            self.class_num, self.pos_label = 1, 1 if self.pos_label is None else self.pos_label
        # Source: MindSpore's rows of several classes are those of the reshaped array, not of its transpose.
        self._scores = scores.reshape(-1) if is_single else scores.reshape(classes, -1)
        self._labels = labels.reshape(-1)

    def eval(self) -> Any:
        _expect_update(self)
        if self.class_num == 1:
            return _roc(self._scores.reshape(-1), self._labels == self.pos_label)
        classes = range(self.class_num or 0)
        return tuple(map(list, zip(*(_roc(self._scores[:, c], self._labels == c) for c in classes), strict=True)))


def _roc(scores: Array, is_positive: Array) -> tuple[Array, Array, Array]:
    """Raises: ValueError when all samples are positive, or none is."""
    order = np.argsort(reversed_order(scores), kind="stable")
    scores, positive = scores[order], is_positive[order].astype(np.int64)
    # One point for each distinct score, at its last sample.
    last = np.append(np.flatnonzero(np.diff(scores)), scores.size - 1)
    hits = np.concatenate([[0], np.cumsum(positive)[last]])
    misses = np.concatenate([[0], 1 + last]) - hits
    for count, kind in ((misses[-1], "negative"), (hits[-1], "positive")):
        if count <= 0:
            raise ValueError(f"For 'ROC.eval', there is no {kind} samples in true value, the {kind} rate is undefined.")
    return misses / misses[-1], hits / hits[-1], np.concatenate([[scores[0] + 1], scores[last]])


def auc(x: Array, y: Array, reorder: bool = False) -> Any:
    """Area below the curve through (x, y), by trapezia. `reorder` sorts by x, then y.

    Raises: TypeError for anything but arrays; ValueError when x neither rises nor falls, or has less than 2 points.
    """
    if not isinstance(x, np.ndarray) or not isinstance(y, np.ndarray):
        raise TypeError(f"For 'auc', the argument 'x' and 'y' must all be np.ndarray, but got {type(x)}, {type(y)}.")
    if len(x) != len(y) or len(x) < 2 or max(x.size, y.size) > len(x):
        raise ValueError(f"For 'auc', expected columns of as many x as y, 2 or more, but got {x.shape} and {y.shape}.")
    x, y = x.reshape(-1), y.reshape(-1)
    if reorder:
        order = np.lexsort((y, x))
        x, y = x[order], y[order]
    steps = np.diff(x)
    if (steps < 0).any() and (steps > 0).any():
        raise ValueError(f"For 'auc', expected x that rises or falls, but got {x}. Set reorder=True.")
    return ((y[1:] + y[:-1]) / 2 * np.abs(steps)).sum()


@final
class Dice(MeanMetric):
    """Twice the common part of two masks over both. Each batch is one pair; the sum is divided by the samples."""

    def __init__(self, smooth: float = 1e-5) -> None:
        super().__init__()
        if isinstance(smooth, bool) or not isinstance(smooth, int | float) or smooth <= 0:
            raise ValueError(f"For 'Dice', the argument 'smooth' must be a float > 0, but got {smooth!r}.")
        self.smooth = smooth

    def take(self, predicted: Any, true: Any) -> None:
        predicted, true = array_of(predicted), array_of(true)
        if predicted.shape != true.shape:
            raise ValueError(
                "For 'Dice.update', predicted value (input[0]) and true value (input[1]) should have same shape, but "
                f"got {predicted.shape} and {true.shape}."
            )
        common, both = (predicted * true).sum(), (predicted**2).sum() + (true**2).sum()
        self._sum += 2 * float(common) / float(both + self.smooth)
        self._count += len(true)


# Distance -> its norm.
_NORMS = {"euclidean": 2, "chessboard": np.inf, "taxicab": 1}
_declared.KINDS["distance"] = _declared.Kind(fits=_NORMS.__contains__, must=f"be in {list(_NORMS)}")
_PERCENT = _declared.Kind(fits=lambda value: value is None or 0 <= value <= 100, must="be from 0 to 100")
_declared.KINDS["percentile"] = _PERCENT


class _Borders(_declared.Declared, BatchMetric):
    """A number of the distances from the border of one mask to that of the other, and back where both ways count."""

    INPUTS = "predicted value, true value, label index"
    crop = False
    number: Any = staticmethod(np.mean)
    joined: Any = staticmethod(np.mean)

    def _set_up(self) -> None:
        self.clear()

    def clear(self) -> None:
        self._borders: list[Array] = []
        self._is_update = False

    def take(self, predicted: Any, true: Any, label: Any) -> None:
        masks = [each if each.dtype == bool else each == label for each in map(array_of, (predicted, true))]
        if not masks[0].size or masks[0].shape != masks[1].shape:
            raise ValueError(
                f"For '{type(self).__name__}.update', expected predicted and true values of one shape, with elements, "
                f"but got {masks[0].shape} and {masks[1].shape}."
            )
        # Source: the crop leaves the box of both masks; an axis along which it has one element is none.
        box = np.argwhere(masks[0] | masks[1])
        axes = np.flatnonzero(np.ptp(box, axis=0)) if self.crop and len(box) else ()
        self._borders = [np.argwhere(_border(mask, axes if len(axes) else range(mask.ndim))) for mask in masks]

    def eval(self) -> Any:
        _expect_update(self)
        ways = [self._borders, self._borders[::-1]][: 1 + self.is_both]
        found = [_distances(_NORMS[self.distance_metric], *way) for way in ways]
        return self.joined([self.number(each) if each.size else np.inf for each in found])


def _border(mask: Array, axes: Any) -> Array:
    """Elements of a mask with a neighbor outside it; nothing beyond the picture is inside."""
    inner = mask.copy()
    for axis in axes:
        lines, kept = np.moveaxis(mask, axis, 0), np.moveaxis(inner, axis, 0)
        kept[[0, -1]] = False
        kept[1:] &= lines[:-1]
        kept[:-1] &= lines[1:]
    return mask & ~inner


def _distances(norm: float, places: Array, others: Array) -> Array:
    """From each place to the nearest of the others.   Shapes: [N, axes], [M, axes] -> [N]."""
    if not len(others):
        return np.full(len(places), np.inf)
    # A few at a time, because all pairs may be more than the memory holds.
    parts = (places[start : start + 64, None] - others for start in range(0, len(places), 64))
    return np.concatenate([np.zeros(0), *(np.linalg.norm(part, norm, axis=2).min(axis=1) for part in parts)])


@final
class HausdorffDistance(
    _Borders,
    takes="distance_metric:distance='euclidean' percentile:percentile=None directed:bool=False crop:bool=True",
):
    """The largest distance, or a percentile; `directed`: of the predicted border alone, else of the farther way."""

    joined = staticmethod(np.max)
    is_both = property(lambda self: not self.directed)

    def number(self, distances: Array) -> Any:
        return np.percentile(distances, self.percentile) if self.percentile else distances.max()


@final
class MeanSurfaceDistance(_Borders, takes="symmetric:bool=False distance_metric:distance='euclidean'"):
    """The mean distance of the predicted border; `symmetric`: the mean of both ways."""

    is_both = property(lambda self: self.symmetric)


publish(__name__)

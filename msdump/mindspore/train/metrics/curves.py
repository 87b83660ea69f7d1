"""Receiver operating characteristic, and the area below a curve."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from msdump.mindspore.names import publish
from msdump.mindspore.train.metrics.base import (
    BatchMetric,
    array_of,
    expect_type,
    expect_update,
    reversed_order,
)
from msdump.tensors.arrays import Array

Curve = tuple[Array, Array, Array]


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
        if scores.ndim == labels.ndim:
            if self.class_num not in (None, 1):
                raise ValueError(
                    "For 'ROC', when predicted value (input[0]) and true value (input[1]) have the same shape, the "
                    f"'class_num' must be 1, but got {self.class_num}."
                )
            self.class_num, self.pos_label = 1, 1 if self.pos_label is None else self.pos_label
            scores = scores.reshape(-1)
        elif scores.ndim == labels.ndim + 1:
            if self.pos_label is not None:
                raise ValueError(f"For 'ROC', expected no 'pos_label' with several classes, but got {self.pos_label}.")
            if self.class_num != scores.shape[1]:
                raise ValueError(
                    f"For 'ROC', the 'class_num' must equal the number of classes from predicted value, but got "
                    f"'class_num' {self.class_num}, the number of classes {scores.shape[1]}."
                )
            scores = np.moveaxis(scores, 1, -1).reshape(-1, scores.shape[1])
        else:
            raise ValueError(
                f"For 'ROC', expected predicted values of as many dimensions as the true values or one more, but got "
                f"{scores.ndim} and {labels.ndim}."
            )
        self._scores, self._labels = scores, labels.reshape(-1)

    def eval(self) -> Any:
        expect_update(self._is_update)
        if self.class_num == 1:
            return _roc(self._scores.reshape(-1), self._labels == self.pos_label)
        classes = range(self.class_num or 0)
        return tuple(map(list, zip(*(_roc(self._scores[:, c], self._labels == c) for c in classes), strict=True)))


def _roc(scores: Array, is_positive: Array) -> Curve:
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
    thresholds = np.concatenate([[scores[0] + 1], scores[last]])
    return misses / misses[-1], hits / hits[-1], thresholds


def auc(x: Array, y: Array, reorder: bool = False) -> Any:
    """Area below the curve through (x, y), by trapezia. `reorder` sorts by x, then y.

    Raises: TypeError for anything but arrays; ValueError when x neither rises nor falls, or has less than 2 points.
    """
    if not isinstance(x, np.ndarray) or not isinstance(y, np.ndarray):
        raise TypeError(f"For 'auc', the argument 'x' and 'y' must all be np.ndarray, but got {type(x)}, {type(y)}.")
    if len(x) != len(y):
        raise ValueError(f"For 'auc', expected as many x as y, but got {len(x)} and {len(y)}.")
    x, y = _column(x), _column(y)
    if len(x) < 2:
        raise ValueError(f"For 'auc', expected at least 2 points, but got {len(x)}.")
    sign = 1
    if reorder:
        order = np.lexsort((y, x))
        x, y = x[order], y[order]
    elif (np.diff(x) < 0).any():
        if (np.diff(x) > 0).any():
            raise ValueError(f"For 'auc', expected x that rises or falls, but got {x}. Set reorder=True.")
        sign = -1
    return sign * ((y[1:] + y[:-1]) / 2 * np.diff(x)).sum()


def _column(array: Array) -> Array:
    if array.ndim == 1 or (array.ndim == 2 and array.shape[1] == 1):
        return array.reshape(-1)
    raise ValueError(f"For 'auc', expected one column, but got an array of shape {array.shape}.")


publish(__name__)

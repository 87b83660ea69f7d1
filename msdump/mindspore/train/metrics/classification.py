"""Metrics of classifications: the part of samples that are right, and what each class got and missed.

Labels are class indices of the shape of the outputs without axis 1, or one-hot rows of the outputs' shape.
"""

from __future__ import annotations

import sys
from abc import abstractmethod
from typing import Any, final

import numpy as np

from msdump.mindspore.names import publish
from msdump.mindspore.train.metrics.base import (
    BatchMetric,
    MeanMetric,
    Metric,
    array_of,
    expect_inputs,
    expect_samples,
    expect_type,
    is_one_hot,
    rearrange_inputs,
    reversed_order,
)
from msdump.tensors.arrays import Array

_PAIR = "predicted value, true value"
_TYPES = ("classification", "multilabel")
_TINY = sys.float_info.min


class EvaluationBase(Metric):
    """What the metrics of classes share: `eval_type` and the check of shapes."""

    def __init__(self, eval_type: str | None) -> None:
        super().__init__()
        if eval_type not in _TYPES:
            raise TypeError(f"The argument 'eval_type' must be in {list(_TYPES)}, but got {eval_type}.")
        self._type = eval_type
        self._class_num = 0
        self.clear()

    def _pair(self, inputs: tuple[Any, ...]) -> tuple[Array, Array]:
        """Outputs and labels; one-hot labels of a classification become indices."""
        expect_inputs(self, inputs, _PAIR)
        predicted, true = array_of(inputs[0]), array_of(inputs[1])
        is_classification = self._type == "classification"
        if is_classification and predicted.ndim == true.ndim and is_one_hot(true):
            true = true.argmax(axis=1)
        expected = (predicted.shape[0], *predicted.shape[2:]) if is_classification else predicted.shape
        if true.shape != expected:
            raise ValueError(
                f"For '{type(self).__name__}.update' of {self._type}, expected true values of shape {expected} with "
                f"predicted values of shape {predicted.shape}, but got {true.shape}."
            )
        if not is_classification and not (np.isin(predicted, (0, 1)).all() and np.isin(true, (0, 1)).all()):
            raise ValueError("In multilabel case, all elements in y_pred (predicted value) and y should be 0 or 1.")
        self._class_num = checked_classes(self, self._class_num, predicted)
        return predicted, true


def checked_classes(metric: Metric, before: int, predicted: Array) -> int:
    """Number of classes.   Raises: ValueError when batches disagree."""
    if before not in (0, predicted.shape[1]):
        raise ValueError(
            f"For '{type(metric).__name__}.update', class number not match, last input predicted data contain "
            f"{before} classes, but current predicted data contain {predicted.shape[1]} classes."
        )
    return int(predicted.shape[1])


def _one_hot_rows(metric: Metric, predicted: Array, true: Array, classes: int) -> tuple[Array, Array]:
    """One row of zeros and a one per sample: of the largest output, and of the label."""
    if true.size and true.max() + 1 > classes:
        raise ValueError(
            f"For '{type(metric).__name__}.update', expected labels below the {classes} classes of the predicted "
            f"value, but got {true.max()}."
        )
    rows = np.eye(classes)
    return rows[predicted.argmax(axis=1).reshape(-1)], rows[true.reshape(-1).astype(np.int64)]


@final
class Accuracy(EvaluationBase):
    """Part of the samples that are right; for multilabel, of the rows that are right in all classes."""

    def __init__(self, eval_type: str | None = "classification") -> None:
        super().__init__(eval_type)

    def clear(self) -> None:
        self._correct, self._total, self._class_num = 0, 0, 0

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        predicted, true = self._pair(inputs)
        if self._type == "classification":
            right = (predicted.argmax(axis=1) == true).reshape(-1)
        else:
            rows = [array.swapaxes(1, array.ndim - 1).reshape(-1, self._class_num) for array in (predicted, true)]
            right = (rows[0] == rows[1]).all(axis=1)
        self._correct, self._total = self._correct + int(right.sum()), self._total + right.size

    def eval(self) -> float:
        expect_samples(self, self._total)
        return self._correct / self._total


class _Rate(EvaluationBase):
    """Right ones per class over a count that `base` chooses; for multilabel one number per sample."""

    def __init__(self, eval_type: str = "classification") -> None:
        super().__init__(eval_type)

    def clear(self) -> None:
        self._class_num = 0
        is_multilabel = self._type == "multilabel"
        self._true: Any = np.empty(0) if is_multilabel else 0
        self._base: Any = np.empty(0) if is_multilabel else 0

    @abstractmethod
    def base(self, predicted: Array, true: Array) -> Array:
        """Which of the two rows is counted below the fraction."""

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        predicted, true = self._pair(inputs)
        if self._type == "classification":
            predicted, true = _one_hot_rows(self, predicted, true, self._class_num)
        else:
            predicted, true = (array.swapaxes(1, 0).reshape(self._class_num, -1) for array in (predicted, true))
        right, base = (predicted * true).sum(axis=0), self.base(predicted, true).sum(axis=0)
        if self._type == "multilabel":
            self._true, self._base = np.concatenate([self._true, right]), np.concatenate([self._base, base])
        else:
            self._true, self._base = self._true + right, self._base + base

    def eval(self, average: bool = False) -> Any:
        """One number per class, or their mean."""
        expect_type(type(self).__name__, "average", average, bool)
        expect_samples(self, self._class_num)
        rates = self._true / (self._base + _TINY)
        return rates.mean() if average else rates


@final
class Precision(_Rate):
    """Of what was given as a class, the part that is of it."""

    def base(self, predicted: Array, true: Array) -> Array:
        return predicted


@final
class Recall(_Rate):
    """Of what is of a class, the part that was given as it."""

    def base(self, predicted: Array, true: Array) -> Array:
        return true


class Fbeta(BatchMetric):
    """Precision and recall in one number per class: (1 + b^2) right / (b^2 true + given)."""

    def __init__(self, beta: float) -> None:
        super().__init__()
        if not beta > 0:
            raise ValueError(f"For 'Fbeta', the argument 'beta' must be greater than 0, but got {beta}.")
        self.beta = beta
        self.clear()

    def clear(self) -> None:
        self._class_num = 0
        self._right: Any = 0
        self._true: Any = 0
        self._given: Any = 0

    def take(self, predicted: Any, true: Any) -> None:
        predicted, true = array_of(predicted), array_of(true)
        if predicted.ndim == true.ndim and is_one_hot(true):
            true = true.argmax(axis=1)
        self._class_num = checked_classes(self, self._class_num, predicted)
        given, is_true = _one_hot_rows(self, predicted, true, self._class_num)
        self._right = self._right + (given * is_true).sum(axis=0)
        self._true, self._given = self._true + is_true.sum(axis=0), self._given + given.sum(axis=0)

    def eval(self, average: bool = False) -> Any:
        """One number per class, or their mean."""
        expect_type(type(self).__name__, "average", average, bool)
        expect_samples(self, self._class_num)
        square = self.beta**2
        rates = (1 + square) * self._right / (square * self._true + self._given + _TINY)
        return rates.mean() if average else rates


@final
class F1(Fbeta):
    """Fbeta with beta 1."""

    def __init__(self) -> None:
        super().__init__(1.0)


class TopKCategoricalAccuracy(MeanMetric):
    """Part of the samples whose label is among the k largest outputs."""

    def __init__(self, k: int) -> None:
        super().__init__()
        expect_type("TopKCategoricalAccuracy", "k", k, int)
        if k < 1:
            raise ValueError(f"For 'TopKCategoricalAccuracy', the argument 'k' must be at least 1, but got {k}.")
        self.k = k

    def take(self, predicted: Any, true: Any) -> None:
        predicted, true = array_of(predicted), array_of(true)
        if predicted.ndim == true.ndim and is_one_hot(true):
            true = true.argmax(axis=1)
        best = np.argsort(reversed_order(predicted), axis=1, kind="stable")[:, : self.k]
        self._sum += int((best == true.reshape(-1, 1)).any(axis=1).sum())
        self._count += true.size


@final
class Top1CategoricalAccuracy(TopKCategoricalAccuracy):
    """Part of the samples whose label is the largest output."""

    def __init__(self) -> None:
        super().__init__(1)


@final
class Top5CategoricalAccuracy(TopKCategoricalAccuracy):
    """Part of the samples whose label is among the five largest outputs."""

    def __init__(self) -> None:
        super().__init__(5)


publish(__name__)

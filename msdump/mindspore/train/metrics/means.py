"""Metrics that are means: of the loss, of errors, of the surprise of labels."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, final

import numpy as np

from msdump.mindspore.names import publish
from msdump.mindspore.train.metrics.base import (
    MeanMetric,
    array_of,
    expect_samples,
    expect_type,
)
from msdump.tensors.arrays import Array


@final
class Loss(MeanMetric):
    """Mean of the losses of all batches."""

    INPUTS = "loss"

    def take(self, loss: Any) -> None:
        loss = array_of(loss)
        if loss.ndim > 1:
            raise ValueError(
                f"For 'Loss.update', the dimension of your input (loss) must be 0 or 1, but got {loss.ndim}."
            )
        self._sum, self._count = self._sum + float(loss.mean()), self._count + 1


class _Error(MeanMetric):
    """Mean over samples of what `errors` sums per element."""

    @abstractmethod
    def errors(self, difference: Array) -> Array:
        """Error of each element."""

    def take(self, predicted: Any, true: Any) -> None:
        predicted, true = array_of(predicted), array_of(true)
        difference = true.reshape(predicted.shape).astype(np.float64) - predicted
        self._sum, self._count = self._sum + float(self.errors(difference).sum()), self._count + len(true)


@final
class MAE(_Error):  # noqa: N818
    """Mean absolute error."""

    def errors(self, difference: Array) -> Array:
        return np.abs(difference)


@final
class MSE(_Error):  # noqa: N818
    """Mean squared error."""

    def errors(self, difference: Array) -> Array:
        return np.square(difference)


@final
class Perplexity(MeanMetric):
    """e to the mean of -log of the probability of each label. Samples with `ignore_label` do not count."""

    INPUTS = "predicted value, label"

    def __init__(self, ignore_label: int | None = None) -> None:
        super().__init__()
        if ignore_label is not None:
            expect_type("Perplexity", "ignore_label", ignore_label, int)
        self.ignore_label = ignore_label

    def take(self, predicted: Any, label: Any) -> None:
        """Predicted: probabilities [..., classes]; labels: class indices [...]. Probabilities are at least 1e-10."""
        predicted, labels = array_of(predicted), array_of(label).reshape(-1).astype(np.int64)
        if labels.size * predicted.shape[-1] != predicted.size:
            raise RuntimeError(
                "For 'Perplexity.update', predicted value (input[0]) and label (input[1]) should have the same shape "
                f"but for the classes, but got {predicted.shape} and {array_of(label).shape}."
            )
        chances = predicted.reshape(labels.size, -1)[np.arange(labels.size), labels]
        chances = chances[labels != self.ignore_label] if self.ignore_label is not None else chances
        self._sum -= float(np.log(np.maximum(chances, 1e-10)).sum())
        self._count += chances.size

    def eval(self) -> float:
        expect_samples(self, self._count)
        return math.exp(self._sum / self._count)


publish(__name__)

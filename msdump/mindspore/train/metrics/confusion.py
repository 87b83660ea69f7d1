"""Confusion matrices, and the rates that come from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import numpy as np

from msdump.mindspore.names import publish
from msdump.mindspore.train.metrics.base import (
    BatchMetric,
    array_of,
    expect_one_of,
    expect_samples,
    expect_type,
    expect_update,
)
from msdump.tensors.arrays import Array

_PAIR = "predicted value, true value"
_SUM_AXES = {"no_norm": None, "target": (1,), "prediction": (0,), "all": (0, 1)}


@final
class ConfusionMatrix(BatchMetric):
    """Samples by true class (rows) and predicted class (columns).

    normalize   over rows (target), columns (prediction), all elements (all), or not at all (no_norm)
    """

    def __init__(self, num_classes: int, normalize: str = "no_norm", threshold: float = 0.5) -> None:
        super().__init__()
        expect_type("ConfusionMatrix", "num_classes", num_classes, int)
        expect_one_of("ConfusionMatrix", "normalize", normalize, tuple(_SUM_AXES))
        expect_type("ConfusionMatrix", "threshold", threshold, float)
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
        counts = np.bincount(cells, minlength=self.num_classes**2)
        self.confusion_matrix += counts.reshape(self.num_classes, self.num_classes)

    def eval(self) -> Array:
        expect_update(self._is_update)
        axes = _SUM_AXES[self.normalize]
        if axes is None:
            return self.confusion_matrix.astype(float)
        totals = self.confusion_matrix.sum(axis=axes, keepdims=True)
        return np.asarray(_divided(self.confusion_matrix, totals, 0.0))


def _divided(above: Any, below: Any, otherwise: float = np.nan) -> Any:
    """above / below, `otherwise` where below is 0."""
    above, below = np.asarray(above, float), np.asarray(below, float)
    return np.where(below != 0, above / np.where(below != 0, below, 1), otherwise)


_Rate = Callable[[Any, Any, Any, Any], Any]


def _prevalence_threshold(tp: Any, fp: Any, tn: Any, fn: Any) -> Any:
    tpr, tnr = _divided(tp, tp + fn), _divided(tn, fp + tn)
    return _divided(np.sqrt(tpr * (1 - tnr)) + tnr - 1, tpr + tnr - 1)


def _matthews(tp: Any, fp: Any, tn: Any, fn: Any) -> Any:
    return _divided(tp * tn - fp * fn, np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)))


# Rate -> its formula of (true positives, false positives, true negatives, false negatives), and its other names.
_RATES: dict[str, tuple[_Rate, tuple[str, ...]]] = {
    "tpr": (lambda tp, fp, tn, fn: _divided(tp, tp + fn), ("sensitivity", "recall", "hit_rate", "true_positive_rate")),
    "tnr": (lambda tp, fp, tn, fn: _divided(tn, fp + tn), ("specificity", "selectivity", "true_negative_rate")),
    "ppv": (lambda tp, fp, tn, fn: _divided(tp, tp + fp), ("precision", "positive_predictive_value")),
    "npv": (lambda tp, fp, tn, fn: _divided(tn, tn + fn), ("negative_predictive_value",)),
    "fnr": (lambda tp, fp, tn, fn: _divided(fn, tp + fn), ("miss_rate", "false_negative_rate")),
    "fpr": (lambda tp, fp, tn, fn: _divided(fp, fp + tn), ("fall_out", "false_positive_rate")),
    "fdr": (lambda tp, fp, tn, fn: _divided(fp, fp + tp), ("false_discovery_rate",)),
    "for": (lambda tp, fp, tn, fn: _divided(fn, fn + tn), ("false_omission_rate",)),
    "pt": (_prevalence_threshold, ("prevalence_threshold",)),
    "ts": (lambda tp, fp, tn, fn: _divided(tp, tp + fn + fp), ("threat_score", "critical_success_index", "csi")),
    "acc": (lambda tp, fp, tn, fn: _divided(tp + tn, tp + fp + tn + fn), ("accuracy",)),
    "ba": (
        lambda tp, fp, tn, fn: (_divided(tp, tp + fn) + _divided(tn, fp + tn)) / 2,
        ("balanced_accuracy",),
    ),
    "f1": (lambda tp, fp, tn, fn: _divided(2 * tp, 2 * tp + fn + fp), ("f1_score",)),
    "mcc": (_matthews, ("matthews_correlation_coefficient",)),
    "fm": (
        lambda tp, fp, tn, fn: np.sqrt(_divided(tp, tp + fp) * _divided(tp, tp + fn)),
        ("fowlkes_mallows_index",),
    ),
    "bm": (
        lambda tp, fp, tn, fn: _divided(tp, tp + fn) + _divided(tn, fp + tn) - 1,
        ("informedness", "bookmaker_informedness"),
    ),
    "mk": (lambda tp, fp, tn, fn: _divided(tp, tp + fp) + _divided(tn, tn + fn) - 1, ("markedness", "deltap")),
}
_BY_NAME = {name: rate for short, (rate, others) in _RATES.items() for name in (short, *others)}
# How rates of [samples, classes] become one number or one per axis: sums and means over these axes, in turn.
_DECREASES: dict[str, tuple[tuple[int, ...], bool]] = {
    "none": ((), False),
    "mean": ((1, 0), True),
    "sum": ((1, 0), False),
    "mean_batch": ((0,), True),
    "sum_batch": ((0,), False),
    "mean_channel": ((1,), True),
    "sum_channel": ((1,), False),
}


@final
class ConfusionMatrixMetric(BatchMetric):
    """A rate of the confusion matrices of samples whose outputs and labels are one-hot along axis 1.

    skip_channel         count class 0, too   Source: the argument's name says the opposite of what it does
    calculation_method   True: the mean of the rate of each sample; False: the rate of all samples together
    decrease             how the rates of samples and classes are joined
    Raises: NotImplementedError from `eval` for an unknown metric_name.
    """

    def __init__(
        self,
        skip_channel: bool = True,
        metric_name: str = "sensitivity",
        calculation_method: bool = False,
        decrease: str = "mean",
    ) -> None:
        super().__init__()
        name = "ConfusionMatrixMetric"
        expect_type(name, "skip_channel", skip_channel, bool)
        expect_type(name, "calculation_method", calculation_method, bool)
        expect_type(name, "metric_name", metric_name, str)
        expect_one_of(name, "decrease", decrease, tuple(_DECREASES))
        self.skip_channel, self.metric_name = skip_channel, metric_name
        self.calculation_method, self.decrease = calculation_method, decrease
        self.clear()

    def clear(self) -> None:
        self._sum, self._count = 0.0, 0
        self._totals = np.zeros(4)

    def take(self, predicted: Any, true: Any) -> None:
        predicted, true = array_of(predicted), array_of(true)
        if not (true.astype(np.uint8) == true).all():
            raise ValueError("For 'ConfusionMatrix.update', the true value (input[1]) must be a binarized ndarray.")
        if predicted.ndim < 2:
            raise ValueError(
                "For 'ConfusionMatrix.update', the predicted value (input[0]) must have at least 2 dimensions, but "
                f"got {predicted.ndim}."
            )
        counts = _counts(predicted, true, self.skip_channel)
        has_space = predicted.ndim > 3 or (predicted.ndim == 3 and predicted.shape[-1] != 1)
        if self.calculation_method and has_space:
            rates, valid = _decreased(self._rate(counts), self.decrease)
            self._sum, self._count = (
                self._sum + float(rates.item()) * int(valid.item()),
                self._count + int(valid.item()),
            )
        else:
            self._totals += counts.sum(axis=(0, 1))

    def eval(self) -> Any:
        if not self.calculation_method:
            return self._rate(self._totals[None])
        expect_samples(self, self._count)
        return self._sum / self._count

    def _rate(self, counts: Array) -> Array:
        """Shapes: counts [..., 4] -> [...]."""
        rate = _BY_NAME.get(self.metric_name.replace(" ", "_").lower())
        if rate is None:
            raise NotImplementedError(f"ConfusionMatrixMetric: expected one of {sorted(_BY_NAME)}, got "
                                      f"{self.metric_name!r}.")  # fmt: skip
        return np.asarray(rate(*np.moveaxis(counts, -1, 0)))


def _counts(predicted: Array, true: Array, takes_first: bool) -> Array:
    """True and false positives, true and false negatives.   Shapes: [n, classes, ...] -> [n, classes, 4]."""
    if predicted.shape != true.shape:
        raise ValueError(
            f"For 'ConfusionMatrixMetric.update', expected shapes that agree, but got {predicted.shape}, {true.shape}."
        )
    if not takes_first and true.shape[1] > 1:
        predicted, true = predicted[:, 1:], true[:, 1:]
    predicted, true = (array.reshape(*array.shape[:2], -1).astype(float) for array in (predicted, true))
    right, absent = (predicted + true == 2).sum(axis=2), (predicted + true == 0).sum(axis=2)
    positives = true.sum(axis=2)
    negatives = true.shape[2] - positives
    return np.stack([right, negatives - absent, absent, positives - right], axis=-1).astype(float)


def _decreased(rates: Array, decrease: str) -> tuple[Array, Array]:
    """Rates joined, and how many of them were defined: NaN counts as none."""
    axes, is_mean = _DECREASES[decrease]
    valid = (~np.isnan(rates)).astype(float)
    rates = np.nan_to_num(rates)
    for axis in axes:
        rates, valid = rates.sum(axis=axis), valid.sum(axis=axis)
        if is_mean:
            rates = _divided(rates, valid, 0.0)
            # Source: after the first mean each row counts as one.
            valid = (valid > 0).astype(float) if axis == 1 and len(axes) > 1 else valid
    return rates, valid


publish(__name__)

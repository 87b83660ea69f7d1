"""Rates that come from the confusion matrices of samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import numpy as np

from msdump.mindspore.names import publish
from msdump.mindspore.train.metrics.base import BatchMetric, array_of, expect_samples, expect_type
from msdump.tensors.arrays import Array

# Names of a rate -> its formula of true and false positives, true and false negatives; NaN where it has no answer.
_RATES: dict[str, Callable[..., Any]] = {
    "tpr sensitivity recall hit_rate true_positive_rate": lambda tp, fp, tn, fn: tp / (tp + fn),
    "tnr specificity selectivity true_negative_rate": lambda tp, fp, tn, fn: tn / (fp + tn),
    "ppv precision positive_predictive_value": lambda tp, fp, tn, fn: tp / (tp + fp),
    "npv negative_predictive_value": lambda tp, fp, tn, fn: tn / (tn + fn),
    "fnr miss_rate false_negative_rate": lambda tp, fp, tn, fn: fn / (tp + fn),
    "fpr fall_out false_positive_rate": lambda tp, fp, tn, fn: fp / (fp + tn),
    "fdr false_discovery_rate": lambda tp, fp, tn, fn: fp / (fp + tp),
    "for false_omission_rate": lambda tp, fp, tn, fn: fn / (fn + tn),
    "pt prevalence_threshold": lambda tp, fp, tn, fn: (
        (np.sqrt(tp / (tp + fn) * (fp / (fp + tn))) - fp / (fp + tn)) / (tp / (tp + fn) - fp / (fp + tn))
    ),
    "ts threat_score critical_success_index csi": lambda tp, fp, tn, fn: tp / (tp + fn + fp),
    "acc accuracy": lambda tp, fp, tn, fn: (tp + tn) / (tp + tn + fp + fn),
    "ba balanced_accuracy": lambda tp, fp, tn, fn: (tp / (tp + fn) + tn / (fp + tn)) / 2,
    "f1 f1_score": lambda tp, fp, tn, fn: 2 * tp / (2 * tp + fn + fp),
    "mcc matthews_correlation_coefficient": lambda tp, fp, tn, fn: (
        (tp * tn - fp * fn) / np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    ),
    "fm fowlkes_mallows_index": lambda tp, fp, tn, fn: np.sqrt(tp / (tp + fp) * (tp / (tp + fn))),
    "bm informedness bookmaker_informedness": lambda tp, fp, tn, fn: tp / (tp + fn) + tn / (fp + tn) - 1,
    "mk markedness deltap": lambda tp, fp, tn, fn: tp / (tp + fp) + tn / (tn + fn) - 1,
}
_BY_NAME = {name: rate for names, rate in _RATES.items() for name in names.split()}
# How rates of [samples, classes] are joined -> axes over which they are added, and whether means are taken.
_DECREASES: dict[str, tuple[tuple[int, ...], bool]] = {
    "none": ((), False), "mean": ((1, 0), True), "sum": ((1, 0), False), "mean_batch": ((0,), True),
    "sum_batch": ((0,), False), "mean_channel": ((1,), True), "sum_channel": ((1,), False),
}  # fmt: skip


@final
class ConfusionMatrixMetric(BatchMetric):
    """A rate of the confusion matrices of samples whose outputs and labels are one-hot along axis 1.

    skip_channel         count class 0, too   Source: the argument's name says the opposite of what it does
    calculation_method   True: the mean of the rate of each sample; False: the rate of all samples together
    decrease             how the rates of samples and classes are joined
    Raises: NotImplementedError from `eval` for an unknown metric_name.
    """

    def __init__(
        self, skip_channel: bool = True, metric_name: str = "sensitivity", calculation_method: bool = False,
        decrease: str = "mean",
    ) -> None:  # fmt: skip
        super().__init__()
        name = "ConfusionMatrixMetric"
        for setting, value in (("skip_channel", skip_channel), ("calculation_method", calculation_method)):
            expect_type(name, setting, value, bool)
        expect_type(name, "metric_name", metric_name, str)
        if decrease not in _DECREASES:
            raise ValueError(f"For '{name}', 'decrease' must be one of {list(_DECREASES)}, but got {decrease!r}.")
        self.skip_channel, self.metric_name = skip_channel, metric_name
        self.calculation_method, self.decrease = calculation_method, decrease
        self.clear()

    def clear(self) -> None:
        self._sum, self._count, self._totals = 0.0, 0, np.zeros(4)

    def take(self, predicted: Any, true: Any) -> None:
        predicted, true = array_of(predicted), array_of(true)
        if not np.isin(true, (0, 1)).all() or predicted.ndim < 2 or predicted.shape != true.shape:
            raise ValueError(
                "For 'ConfusionMatrixMetric.update', expected true values of 0 and 1 and of the shape of the predicted "
                f"values, with at least 2 dimensions, but got {true.shape} and {predicted.shape}."
            )
        first = 0 if self.skip_channel or true.shape[1] == 1 else 1
        given, wanted = (array[:, first:].reshape(len(array), -1, array[0, 0].size) for array in (predicted, true))
        right, absent = (given + wanted == 2).sum(axis=2), (given + wanted == 0).sum(axis=2)
        positives = wanted.astype(float).sum(axis=2)
        negatives = wanted.shape[2] - positives
        counts = np.stack([right, negatives - absent, absent, positives - right], axis=-1).astype(float)
        if self.calculation_method and predicted.ndim > 2 and predicted[0, 0].size > 1:
            rate, count = self._joined(self._rate(counts))
            self._sum, self._count = self._sum + rate * count, self._count + count
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
            got = f"got {self.metric_name!r}"
            raise NotImplementedError(f"ConfusionMatrixMetric: expected one of {sorted(_BY_NAME)}, {got}.")
        with np.errstate(all="ignore"):
            found = np.asarray(rate(*np.moveaxis(counts, -1, 0)))
        return np.where(np.isfinite(found), found, np.nan)

    def _joined(self, rates: Array) -> tuple[float, int]:
        """Rates as one, and how many of them have an answer."""
        axes, is_mean = _DECREASES[self.decrease]
        valid, rates = (~np.isnan(rates)).astype(float), np.nan_to_num(rates)
        for axis in axes:
            rates, valid = rates.sum(axis=axis), valid.sum(axis=axis)
            if is_mean:
                rates = rates / np.maximum(valid, 1)
                # Source: after the first mean each row counts as one.
                valid = (valid > 0).astype(float) if axis == 1 and len(axes) > 1 else valid
        return float(rates.item()), int(valid.item())


publish(__name__)

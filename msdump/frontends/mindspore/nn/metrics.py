"""`mindspore.nn.metrics`: the metrics of `mindspore.train` under the name that older scripts use."""

from __future__ import annotations

from msdump.frontends.mindspore.missing import explain_missing
from msdump.frontends.mindspore.train.metrics import (
    MAE,
    MSE,
    Accuracy,
    Loss,
    Metric,
    Top1CategoricalAccuracy,
    Top5CategoricalAccuracy,
    TopKCategoricalAccuracy,
    get_metric_fn,
    names,
)

__all__ = [
    "MAE",
    "MSE",
    "Accuracy",
    "Loss",
    "Metric",
    "Top1CategoricalAccuracy",
    "Top5CategoricalAccuracy",
    "TopKCategoricalAccuracy",
    "get_metric_fn",
    "names",
]

__getattr__ = explain_missing(__name__)

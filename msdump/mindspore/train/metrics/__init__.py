"""`mindspore.train.metrics`: numbers gathered over an evaluation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msdump.errors import did_you_mean
from msdump.mindspore.names import explain_missing, publish_all
from msdump.mindspore.train.metrics.base import MAE, MSE, Loss, Metric, Perplexity, rearrange_inputs
from msdump.mindspore.train.metrics.classification import (
    F1,
    Accuracy,
    Fbeta,
    Precision,
    Recall,
    Top1CategoricalAccuracy,
    Top5CategoricalAccuracy,
    TopKCategoricalAccuracy,
)
from msdump.mindspore.train.metrics.curves import *
from msdump.mindspore.train.metrics.rates import ConfusionMatrixMetric

# Classes, and the names that `get_metric_fn` takes for each.
_NAMES = """
    Accuracy accuracy acc; Precision precision; Recall recall; F1 F1; TopKCategoricalAccuracy topk;
    Top1CategoricalAccuracy top_1_accuracy; Top5CategoricalAccuracy top_5_accuracy; MAE mae; MSE mse; Loss loss;
    Perplexity perplexity; Dice dice; ROC roc; auc auc; ConfusionMatrix confusion_matrix;
    ConfusionMatrixMetric confusion_matrix_metric; HausdorffDistance hausdorff_distance;
    MeanSurfaceDistance mean_surface_distance
"""
_BY_NAME: dict[str, Callable[..., Any]] = {
    name: globals()[made] for made, *names in map(str.split, _NAMES.split(";")) for name in names
}


def names() -> list[str]:
    """Names that `get_metric_fn` takes."""
    return sorted(_BY_NAME)


def get_metric_fn(name: str, *args: Any, **kwargs: Any) -> Any:
    """Metric of a name.   Raises: KeyError with the nearest name."""
    if name not in _BY_NAME:
        raise KeyError(f"metric: expected one of {names()}, got {name!r}. {did_you_mean(name, _BY_NAME)}".rstrip())
    return _BY_NAME[name](*args, **kwargs)


publish_all(__name__)

__getattr__ = explain_missing(__name__)

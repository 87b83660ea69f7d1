"""`mindspore.train`."""

from __future__ import annotations

from msdump.frontends.mindspore.missing import explain_missing
from msdump.frontends.mindspore.train import amp, callback, loss_scale_manager, metrics, model, serialization
from msdump.frontends.mindspore.train.amp import auto_mixed_precision, build_train_network
from msdump.frontends.mindspore.train.callback import (
    Callback,
    CheckpointConfig,
    LossMonitor,
    ModelCheckpoint,
    RunContext,
    TimeMonitor,
)
from msdump.frontends.mindspore.train.loss_scale_manager import (
    DynamicLossScaleManager,
    FixedLossScaleManager,
    LossScaleManager,
)
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
)
from msdump.frontends.mindspore.train.model import Model
from msdump.frontends.mindspore.train.serialization import (
    export,
    load_checkpoint,
    load_param_into_net,
    save_checkpoint,
)

__all__ = [
    "MAE",
    "MSE",
    "Accuracy",
    "Callback",
    "CheckpointConfig",
    "DynamicLossScaleManager",
    "FixedLossScaleManager",
    "Loss",
    "LossMonitor",
    "LossScaleManager",
    "Metric",
    "Model",
    "ModelCheckpoint",
    "RunContext",
    "TimeMonitor",
    "Top1CategoricalAccuracy",
    "Top5CategoricalAccuracy",
    "TopKCategoricalAccuracy",
    "amp",
    "auto_mixed_precision",
    "build_train_network",
    "callback",
    "export",
    "get_metric_fn",
    "load_checkpoint",
    "load_param_into_net",
    "loss_scale_manager",
    "metrics",
    "model",
    "save_checkpoint",
    "serialization",
]

__getattr__ = explain_missing(__name__)

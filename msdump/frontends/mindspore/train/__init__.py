"""`mindspore.train`: training and evaluation of a model, callbacks, metrics, checkpoints, mixed precision."""

from __future__ import annotations

from msdump.frontends.mindspore.names import explain_missing, publish_all
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
from msdump.frontends.mindspore.train.serialization import export, load_checkpoint, load_param_into_net, save_checkpoint

publish_all(__name__, "amp", "callback", "loss_scale_manager", "metrics", "model", "serialization")

__getattr__ = explain_missing(__name__)

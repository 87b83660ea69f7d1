"""`mindspore.nn`: cells, layers, losses, wrappers, optimizers."""

from __future__ import annotations

from msdump.frontends.mindspore.missing import explain_missing
from msdump.frontends.mindspore.nn import layer, loss, metrics, optim, wrap
from msdump.frontends.mindspore.nn.cell import Cell
from msdump.frontends.mindspore.nn.dynamic_lr import (
    cosine_decay_lr,
    exponential_decay_lr,
    piecewise_constant_lr,
    warmup_lr,
)
from msdump.frontends.mindspore.nn.layer.activation import (
    GELU,
    LeakyReLU,
    LogSoftmax,
    ReLU,
    ReLU6,
    Sigmoid,
    Softmax,
    Tanh,
    get_activation,
)
from msdump.frontends.mindspore.nn.layer.basic import Dense, Dropout, Flatten, Identity, OneHot, Pad
from msdump.frontends.mindspore.nn.layer.container import CellList, SequentialCell
from msdump.frontends.mindspore.nn.layer.conv import Conv2d, Conv2dTranspose
from msdump.frontends.mindspore.nn.layer.embedding import Embedding
from msdump.frontends.mindspore.nn.layer.normalization import BatchNorm1d, BatchNorm2d, GroupNorm, LayerNorm
from msdump.frontends.mindspore.nn.layer.pooling import AdaptiveAvgPool2d, AvgPool2d, MaxPool2d
from msdump.frontends.mindspore.nn.learning_rate_schedule import (
    CosineDecayLR,
    ExponentialDecayLR,
    LearningRateSchedule,
    WarmUpLR,
)
from msdump.frontends.mindspore.nn.loss import (
    BCELoss,
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    L1Loss,
    LossBase,
    MSELoss,
    NLLLoss,
    SoftmaxCrossEntropyWithLogits,
)
from msdump.frontends.mindspore.nn.metrics import MAE, MSE, Accuracy, Loss, Metric, get_metric_fn
from msdump.frontends.mindspore.nn.optim import SGD, Adam, AdamWeightDecay, Momentum, Optimizer, RMSProp
from msdump.frontends.mindspore.nn.wrap import (
    DynamicLossScaleUpdateCell,
    FixedLossScaleUpdateCell,
    ForwardValueAndGrad,
    TrainOneStepCell,
    TrainOneStepWithLossScaleCell,
    WithEvalCell,
    WithLossCell,
)

__all__ = [
    "GELU",
    "MAE",
    "MSE",
    "SGD",
    "Accuracy",
    "Adam",
    "AdamWeightDecay",
    "AdaptiveAvgPool2d",
    "AvgPool2d",
    "BCELoss",
    "BCEWithLogitsLoss",
    "BatchNorm1d",
    "BatchNorm2d",
    "Cell",
    "CellList",
    "Conv2d",
    "Conv2dTranspose",
    "CosineDecayLR",
    "CrossEntropyLoss",
    "Dense",
    "Dropout",
    "DynamicLossScaleUpdateCell",
    "Embedding",
    "ExponentialDecayLR",
    "FixedLossScaleUpdateCell",
    "Flatten",
    "ForwardValueAndGrad",
    "GroupNorm",
    "Identity",
    "L1Loss",
    "LayerNorm",
    "LeakyReLU",
    "LearningRateSchedule",
    "LogSoftmax",
    "Loss",
    "LossBase",
    "MSELoss",
    "MaxPool2d",
    "Metric",
    "Momentum",
    "NLLLoss",
    "OneHot",
    "Optimizer",
    "Pad",
    "RMSProp",
    "ReLU",
    "ReLU6",
    "SequentialCell",
    "Sigmoid",
    "Softmax",
    "SoftmaxCrossEntropyWithLogits",
    "Tanh",
    "TrainOneStepCell",
    "TrainOneStepWithLossScaleCell",
    "WarmUpLR",
    "WithEvalCell",
    "WithLossCell",
    "cosine_decay_lr",
    "exponential_decay_lr",
    "get_activation",
    "get_metric_fn",
    "layer",
    "loss",
    "metrics",
    "optim",
    "piecewise_constant_lr",
    "warmup_lr",
    "wrap",
]

__getattr__ = explain_missing(__name__)

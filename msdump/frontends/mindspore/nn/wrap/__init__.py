"""Cells around a network."""

from __future__ import annotations

from msdump.frontends.mindspore.missing import explain_missing
from msdump.frontends.mindspore.nn.wrap.cell_wrapper import (
    ForwardValueAndGrad,
    TrainOneStepCell,
    WithEvalCell,
    WithLossCell,
)
from msdump.frontends.mindspore.nn.wrap.loss_scale import (
    DynamicLossScaleUpdateCell,
    FixedLossScaleUpdateCell,
    TrainOneStepWithLossScaleCell,
)

__all__ = [
    "DynamicLossScaleUpdateCell",
    "FixedLossScaleUpdateCell",
    "ForwardValueAndGrad",
    "TrainOneStepCell",
    "TrainOneStepWithLossScaleCell",
    "WithEvalCell",
    "WithLossCell",
]

__getattr__ = explain_missing(__name__)

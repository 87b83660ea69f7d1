"""Losses."""

from __future__ import annotations

from msdump.frontends.mindspore.missing import explain_missing
from msdump.frontends.mindspore.nn.loss.loss import (
    BCELoss,
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    L1Loss,
    LossBase,
    MSELoss,
    NLLLoss,
    SoftmaxCrossEntropyWithLogits,
)

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CrossEntropyLoss",
    "L1Loss",
    "LossBase",
    "MSELoss",
    "NLLLoss",
    "SoftmaxCrossEntropyWithLogits",
]

__getattr__ = explain_missing(__name__)

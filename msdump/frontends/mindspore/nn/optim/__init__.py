"""Optimizers."""

from __future__ import annotations

from msdump.frontends.mindspore.missing import explain_missing
from msdump.frontends.mindspore.nn.optim.adam import Adam, AdamWeightDecay
from msdump.frontends.mindspore.nn.optim.momentum import Momentum
from msdump.frontends.mindspore.nn.optim.optimizer import Optimizer
from msdump.frontends.mindspore.nn.optim.rmsprop import RMSProp
from msdump.frontends.mindspore.nn.optim.sgd import SGD

__all__ = ["SGD", "Adam", "AdamWeightDecay", "Momentum", "Optimizer", "RMSProp"]

__getattr__ = explain_missing(__name__)

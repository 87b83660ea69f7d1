"""`mindspore.train.callback`: what training and evaluation call at their begin, end, epochs and steps."""

from __future__ import annotations

from msdump.mindspore.names import explain_missing, publish_all
from msdump.mindspore.train.callback.base import Callback, RunContext
from msdump.mindspore.train.callback.checkpoint import CheckpointConfig, ModelCheckpoint, OnRequestExit
from msdump.mindspore.train.callback.monitors import History, LambdaCallback, LossMonitor, SummaryCollector, TimeMonitor
from msdump.mindspore.train.callback.plateau import EarlyStopping, LearningRateScheduler, ReduceLROnPlateau

publish_all(__name__)

__getattr__ = explain_missing(__name__)

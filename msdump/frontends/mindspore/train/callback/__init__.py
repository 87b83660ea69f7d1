"""`mindspore.train.callback`."""

from __future__ import annotations

from msdump.frontends.mindspore.missing import explain_missing
from msdump.frontends.mindspore.train.callback.callback import Callback, RunContext
from msdump.frontends.mindspore.train.callback.checkpoint import CheckpointConfig, ModelCheckpoint
from msdump.frontends.mindspore.train.callback.monitor import LossMonitor, TimeMonitor

__all__ = ["Callback", "CheckpointConfig", "LossMonitor", "ModelCheckpoint", "RunContext", "TimeMonitor"]

__getattr__ = explain_missing(__name__)

"""`mindspore.experimental.optim`: optimizers with groups of parameters, and schedules of their learning rates."""

from __future__ import annotations

from msdump.mindspore.experimental.optim import lr_scheduler
from msdump.mindspore.experimental.optim.adaptive import *
from msdump.mindspore.experimental.optim.moments import *
from msdump.mindspore.experimental.optim.optimizer import Optimizer
from msdump.mindspore.names import explain_missing, publish_all

publish_all(__name__, "lr_scheduler")

__getattr__ = explain_missing(__name__)

"""`mindspore.experimental.optim.lr_scheduler`: schedules of the learning rates of an optimizer's groups."""

from __future__ import annotations

from msdump.mindspore.experimental.optim.lr_scheduler.courses import *
from msdump.mindspore.experimental.optim.lr_scheduler.formulas import *
from msdump.mindspore.names import explain_missing, publish_all

publish_all(__name__)

__getattr__ = explain_missing(__name__)

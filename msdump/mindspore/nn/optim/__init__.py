"""`mindspore.nn.optim`: optimizers."""

from __future__ import annotations

from msdump.mindspore.names import explain_missing, publish_all
from msdump.mindspore.nn.optim.adam import *
from msdump.mindspore.nn.optim.lars import *
from msdump.mindspore.nn.optim.momentum import *
from msdump.mindspore.nn.optim.optimizer import *

publish_all(__name__)

__getattr__ = explain_missing(__name__)

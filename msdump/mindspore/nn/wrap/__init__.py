"""`mindspore.nn.wrap`: cells around a network."""

from __future__ import annotations

from msdump.mindspore.names import explain_missing, publish_all
from msdump.mindspore.nn.wrap.cell_wrapper import *
from msdump.mindspore.nn.wrap.loss_scale import *

publish_all(__name__)

__getattr__ = explain_missing(__name__)

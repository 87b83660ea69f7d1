"""`mindspore.mint.nn`: layers with the names, parameters and defaults of PyTorch's."""

from __future__ import annotations

from msdump.mindspore.mint.nn import functional
from msdump.mindspore.mint.nn.stateful import *
from msdump.mindspore.mint.nn.stateless import *
from msdump.mindspore.names import explain_missing, publish_all
from msdump.mindspore.nn.cell import Cell
from msdump.mindspore.nn.layer.basic import Identity

publish_all(__name__, "functional")

__getattr__ = explain_missing(__name__)

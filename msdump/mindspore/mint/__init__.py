"""`mindspore.mint`: functions with the names, parameters and results of PyTorch's, by those of `mindspore.ops`."""

from __future__ import annotations

from msdump.mindspore.mint import linalg, nn, special
from msdump.mindspore.mint.creation import *
from msdump.mindspore.mint.elements import *
from msdump.mindspore.mint.nn.functional import conv2d
from msdump.mindspore.mint.reductions import *
from msdump.mindspore.mint.shapes import *
from msdump.mindspore.names import explain_missing, publish_all

publish_all(__name__, "linalg", "nn", "optim", "special")

__getattr__ = explain_missing(__name__)

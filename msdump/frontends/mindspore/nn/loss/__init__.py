"""`mindspore.nn.loss`: losses, from their families."""

from __future__ import annotations

from msdump.frontends.mindspore.names import explain_missing, publish_all
from msdump.frontends.mindspore.nn.loss.pairs import *
from msdump.frontends.mindspore.nn.loss.segments import *
from msdump.frontends.mindspore.nn.loss.values import *

publish_all(__name__)

__getattr__ = explain_missing(__name__)

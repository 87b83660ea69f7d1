"""`mindspore.nn.loss`: losses, from their families."""

from __future__ import annotations

from msdump.mindspore.names import explain_missing, publish_all
from msdump.mindspore.nn.loss.values import *

publish_all(__name__)

__getattr__ = explain_missing(__name__)

"""`mindspore.experimental`."""

from __future__ import annotations

from msdump.mindspore.names import explain_missing, publish_all

publish_all(__name__, "optim")

__getattr__ = explain_missing(__name__, lazy=("optim",))

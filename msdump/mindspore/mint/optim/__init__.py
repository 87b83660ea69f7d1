"""`mindspore.mint.optim`: three optimizers of `mindspore.experimental.optim`, which compute the same."""

from __future__ import annotations

from msdump.mindspore.experimental.optim.adaptive import SGD, Adam, AdamW
from msdump.mindspore.names import explain_missing, publish_all

publish_all(__name__)

__getattr__ = explain_missing(__name__)

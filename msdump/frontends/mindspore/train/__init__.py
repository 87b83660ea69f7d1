"""`mindspore.train`: training and evaluation of a model, callbacks, metrics, checkpoints, mixed precision."""

from __future__ import annotations

from msdump.frontends.mindspore.names import explain_missing, publish_all
from msdump.frontends.mindspore.train import amp, callback, loss_scale_manager, metrics, model, serialization
from msdump.frontends.mindspore.train.amp import build_train_network
from msdump.frontends.mindspore.train.callback import *
from msdump.frontends.mindspore.train.loss_scale_manager import *
from msdump.frontends.mindspore.train.metrics import *
from msdump.frontends.mindspore.train.model import *
from msdump.frontends.mindspore.train.serialization import *

publish_all(__name__, "amp", "callback", "loss_scale_manager", "metrics", "model", "serialization")

__getattr__ = explain_missing(__name__)

"""`mindspore.train`: training and evaluation of a model, callbacks, metrics, checkpoints, mixed precision."""

from __future__ import annotations

from msdump.frontends.mindspore.names import explain_missing, publish_all
from msdump.frontends.mindspore.train import (
    amp,
    callback,
    loss_scale_manager,
    metrics,
    model,
    serialization,
    summary,
)
from msdump.frontends.mindspore.train.amp import build_train_network
from msdump.frontends.mindspore.train.callback import *
from msdump.frontends.mindspore.train.convert_utils import *
from msdump.frontends.mindspore.train.data_sink import data_sink
from msdump.frontends.mindspore.train.dataset_helper import DatasetHelper, connect_network_with_dataset
from msdump.frontends.mindspore.train.loss_scale_manager import *
from msdump.frontends.mindspore.train.metrics import *
from msdump.frontends.mindspore.train.model import *
from msdump.frontends.mindspore.train.serialization import *
from msdump.frontends.mindspore.train.sliced_checkpoints import *
from msdump.frontends.mindspore.train.summary import SummaryRecord

publish_all(__name__, "amp", "callback", "loss_scale_manager", "metrics", "model", "serialization", "summary")

__getattr__ = explain_missing(__name__)

"""`mindspore.train`: training and evaluation of a model, callbacks, metrics, checkpoints, mixed precision."""

from __future__ import annotations

from msdump.mindspore.names import explain_missing, publish_all
from msdump.mindspore.train import amp, callback, loss_scale_manager, metrics, model, serialization, summary
from msdump.mindspore.train.amp import build_train_network
from msdump.mindspore.train.callback import *
from msdump.mindspore.train.convert_utils import *
from msdump.mindspore.train.dataset_helper import DatasetHelper, connect_network_with_dataset, data_sink
from msdump.mindspore.train.loss_scale_manager import *
from msdump.mindspore.train.metrics import *
from msdump.mindspore.train.model import *
from msdump.mindspore.train.serialization import *
from msdump.mindspore.train.sliced_checkpoints import *
from msdump.mindspore.train.summary import SummaryRecord

publish_all(__name__, "amp", "callback", "loss_scale_manager", "metrics", "model", "serialization", "summary")

__getattr__ = explain_missing(__name__)

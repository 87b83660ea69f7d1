"""`mindspore.nn`: cells, layers, losses, wrappers, optimizers."""

from __future__ import annotations

from msdump.frontends.mindspore.names import explain_missing, publish_all
from msdump.frontends.mindspore.nn import layer, loss, optim, utils, wrap
from msdump.frontends.mindspore.nn.cell import Cell
from msdump.frontends.mindspore.nn.dynamic_lr import (
    cosine_decay_lr,
    exponential_decay_lr,
    inverse_decay_lr,
    natural_exp_decay_lr,
    piecewise_constant_lr,
    polynomial_decay_lr,
    warmup_lr,
)
from msdump.frontends.mindspore.nn.layer import *
from msdump.frontends.mindspore.nn.learning_rate_schedule import *
from msdump.frontends.mindspore.nn.loss import *
from msdump.frontends.mindspore.nn.optim import *
from msdump.frontends.mindspore.nn.utils import no_init_parameters
from msdump.frontends.mindspore.nn.wrap import *
from msdump.frontends.mindspore.train.metrics import *

publish_all(__name__, "layer", "loss", "metrics", "optim", "utils", "wrap")

__getattr__ = explain_missing(__name__)

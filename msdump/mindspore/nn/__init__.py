"""`mindspore.nn`: cells, layers, losses, wrappers, optimizers."""

from __future__ import annotations

from collections.abc import Iterator as _Iterator
from contextlib import contextmanager as _contextmanager

from msdump.mindspore.names import explain_missing, publish_all
from msdump.mindspore.nn import layer, loss, optim, wrap
from msdump.mindspore.nn.cell import Cell
from msdump.mindspore.nn.layer import *
from msdump.mindspore.nn.learning_rate_schedule import *
from msdump.mindspore.nn.loss import *
from msdump.mindspore.nn.optim import *
from msdump.mindspore.nn.wrap import *
from msdump.mindspore.train.metrics import *


@_contextmanager
def no_init_parameters() -> _Iterator[None]:
    """Cells made inside wait for a checkpoint; here their parameters have first values all the same."""
    yield


publish_all(__name__, "layer", "loss", "metrics", "optim", "wrap")

__getattr__ = explain_missing(__name__)

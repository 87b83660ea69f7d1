"""`mindspore.train.data_sink`: a function that fetches its rows."""

from __future__ import annotations

from msdump.mindspore.names import explain_missing, publish_all
from msdump.mindspore.train.dataset_helper import data_sink  # noqa: F401

publish_all(__name__)

__getattr__ = explain_missing(__name__)

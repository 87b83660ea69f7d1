"""`mindspore.communication`."""

from __future__ import annotations

from msdump.frontends.mindspore.communication import management
from msdump.frontends.mindspore.communication.management import (
    GlobalComm,
    get_group_size,
    get_local_rank,
    get_rank,
    init,
    release,
)
from msdump.frontends.mindspore.missing import explain_missing

__all__ = ["GlobalComm", "get_group_size", "get_local_rank", "get_rank", "init", "management", "release"]

__getattr__ = explain_missing(__name__)

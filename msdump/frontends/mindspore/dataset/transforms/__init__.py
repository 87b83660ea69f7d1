"""`mindspore.dataset.transforms`: transforms of any data."""

from __future__ import annotations

from msdump.frontends.mindspore.dataset.transforms.data import (
    Compose,
    Duplicate,
    Fill,
    OneHot,
    RandomApply,
    RandomChoice,
    RandomOrder,
    TypeCast,
)
from msdump.frontends.mindspore.missing import explain_missing

__all__ = ["Compose", "Duplicate", "Fill", "OneHot", "RandomApply", "RandomChoice", "RandomOrder", "TypeCast"]
__getattr__ = explain_missing(__name__)

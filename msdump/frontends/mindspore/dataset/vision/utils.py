"""`mindspore.dataset.vision.utils`: where older scripts find `Inter` and `Border`."""

from __future__ import annotations

from msdump.frontends.mindspore.dataset.vision.modes import Border, Inter
from msdump.frontends.mindspore.missing import explain_missing

__all__ = ["Border", "Inter"]
__getattr__ = explain_missing(__name__)

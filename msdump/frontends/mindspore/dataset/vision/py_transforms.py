"""`mindspore.dataset.vision.py_transforms`: the name that older scripts use for `mindspore.dataset.vision`."""

from __future__ import annotations

from msdump.frontends.mindspore.dataset import vision
from msdump.frontends.mindspore.dataset.vision import *  # noqa: F403 - all of it, under another name

__all__ = vision.__all__
__getattr__ = vision.__getattr__

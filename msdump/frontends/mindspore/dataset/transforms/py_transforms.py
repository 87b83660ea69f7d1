"""`mindspore.dataset.transforms.py_transforms`: the name that older scripts use for `mindspore.dataset.transforms`."""

from __future__ import annotations

from msdump.frontends.mindspore.dataset import transforms
from msdump.frontends.mindspore.dataset.transforms import *  # noqa: F403 - all of it, under another name

__all__ = transforms.__all__
__getattr__ = transforms.__getattr__

"""The pickle of `torch.save` while functions of PyTorch are wrapped: what holds one is saved with PyTorch's own.

A module in the form of `pickle`, as `torch.save` takes one.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pickle import dump as dump
from types import FunctionType
from typing import Any

# By wrapper: the function behind it.
originals: dict[Callable[..., Any], Callable[..., Any]] = {}


class Pickler(pickle._Pickler):
    """That of C cannot put one object in another's place."""

    def save(self, obj: object, save_persistent_id: bool = True) -> None:
        super().save(  # type: ignore[misc]
            originals.get(obj, obj) if type(obj) is FunctionType else obj, save_persistent_id
        )

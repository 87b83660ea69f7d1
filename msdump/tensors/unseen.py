"""PyTorch as a tool: what msdump computes with it is no operator of the script, and no observer sees it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

_Result = TypeVar("_Result")
_here = threading.local()

is_anyone_watching = False
"""Whether eager PyTorch has been watched in this process: set once, by what watches it. Nothing is hidden before."""


def is_unseen() -> bool:
    """Whether this thread computes for msdump itself."""
    return getattr(_here, "depth", 0) > 0


@contextmanager
def _unseen() -> Iterator[None]:
    import torch
    from torch.utils._python_dispatch import _disable_current_modes

    _here.depth = getattr(_here, "depth", 0) + 1
    try:
        # Compiled observers are told by PyTorch's record functions, the others by a mode.
        torch._C._autograd._enable_record_function(False)
        with _disable_current_modes():
            yield
    finally:
        _here.depth -= 1
        if not _here.depth:
            torch._C._autograd._enable_record_function(True)


def hidden(compute: Callable[..., _Result], *args: object) -> _Result:
    """What a function gives that computes with PyTorch, unseen."""
    if not is_anyone_watching:
        return compute(*args)
    with _unseen():
        return compute(*args)

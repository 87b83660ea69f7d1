"""Scratch memory of kernels: fresh pages cost more than the work done in them, so buffers are kept and reused."""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np

from msdump.arrays import Array

# Bigger buffers go back to the system when their user lets go of them.
KEPT_BYTES = 64 << 20


class _Buffers(threading.local):
    """Every thread has its own, so parts of one kernel never share scratch by accident."""

    def __init__(self) -> None:
        self.by_name: dict[str, Array] = {}


_buffers = _Buffers()


def scratch(name: str, shape: tuple[int, ...], dtype: Any) -> Array:
    """Uninitialised array, valid until this thread asks for the same name again."""
    needed = math.prod(shape) * np.dtype(dtype).itemsize
    if needed > KEPT_BYTES:
        return np.empty(shape, dtype)
    buffer = _buffers.by_name.get(name)
    if buffer is None or buffer.nbytes < needed:
        buffer = _buffers.by_name[name] = np.empty(needed, np.uint8)
    array: Array = buffer[:needed].view(dtype).reshape(shape)
    return array


def release() -> None:
    """Give this thread's buffers back to the system."""
    _buffers.by_name.clear()

"""Where a kernel computes: scratch memory that is kept and reused, as fresh pages cost more than the work done in them,
and the dtype of what lies in it."""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from msdump.graph.primitive import Attrs, Kernel
from msdump.tensors.arrays import Array

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


def compute_type(dtype: Any) -> np.dtype[Any]:
    """float32 for float16, bfloat16 and narrower floats; every other dtype computes as itself."""
    own = np.dtype(dtype)
    is_narrow = own.itemsize < 4 and (own.kind == "f" or own.kind == "V")
    return np.dtype(np.float32) if is_narrow else own


def widened(array: Array, name: str) -> Array:
    """`array` in its compute dtype: itself, or a copy in the scratch buffer `name`."""
    wide = compute_type(array.dtype)
    if wide == array.dtype:
        return array
    copy = scratch(name, array.shape, wide)
    np.copyto(copy, array, casting="unsafe")
    return copy


def result_buffer(out: Array, name: str) -> Array:
    """Where to compute `out`: itself, or a scratch buffer of its compute dtype to be stored afterwards."""
    wide = compute_type(out.dtype)
    return out if wide == out.dtype else scratch(name, out.shape, wide)


def store(result: Array, out: Array) -> None:
    """Round `result` into `out`; nothing to do when the result was computed in place."""
    if result is not out:
        np.copyto(out, result, casting="unsafe")


def quiet(kernel: Kernel) -> Kernel:
    """Decorator: Inf and NaN are data like any other here, never a warning."""

    @functools.wraps(kernel)
    def run(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
        with np.errstate(all="ignore"):
            kernel(inputs, attrs, out)

    return run

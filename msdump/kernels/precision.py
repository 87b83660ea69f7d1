"""In which dtype a kernel computes, and how its result goes back to the dtype of the operand."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from msdump.arrays import Array
from msdump.graph.primitive import Attrs, Kernel
from msdump.kernels.workspace import scratch


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

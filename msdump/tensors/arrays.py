"""Array: a numpy array of any shape and dtype, as annotations name it."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


def filled_memory(array: Array) -> tuple[int, int] | None:
    """Address and size in bytes of memory that an array fills without gaps, in whatever order; None with gaps."""
    if not array.flags.c_contiguous:
        expected = array.itemsize
        for stride, size in sorted(zip(array.strides, array.shape, strict=True)):
            if size != 1:
                if stride != expected:
                    return None
                expected *= size
    return int(array.__array_interface__["data"][0]), int(array.nbytes)

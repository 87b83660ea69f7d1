"""Saturation mode of a device: float16 that overflows becomes the largest number in place of Inf.

Source: CANN, INF_NAN_MODE_ENABLE and saturation mode; MindSpore, MS_ASCEND_CHECK_OVERFLOW_MODE.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from msdump.operators.traits import places_constant
from msdump.tensors.arrays import Array

LARGEST_HALF = 65504.0
_is_on = False


def saturate(is_on: bool) -> None:
    """Whether operators that are prepared from now on saturate."""
    global _is_on
    _is_on = is_on


def in_mode(op_type: str, kernel: Any) -> Any:
    """A kernel as the device computes it. An Inf that the operator reads, or that the script wrote down, stays one."""
    if not _is_on or places_constant(op_type):
        return kernel

    def saturating(inputs: Sequence[Array], attrs: Any, out: Sequence[Array]) -> None:
        kernel(inputs, attrs, out)
        for array in out:
            if array.dtype == np.float16 and np.isinf(array).any() and not _reads_inf(inputs, out):
                np.clip(array, -LARGEST_HALF, LARGEST_HALF, out=array)

    return saturating


def _reads_inf(inputs: Sequence[Array], out: Sequence[Array]) -> bool:
    """What is overwritten shows the result already."""
    return any(
        input_.dtype.kind == "f"
        and np.isinf(input_).any()
        and not any(np.may_share_memory(input_, output) for output in out)
        for input_ in inputs
    )


def is_saturated(array: Array) -> bool:
    """Does a float16 tensor hold what an overflow leaves in this mode?"""
    return _is_on and array.dtype == np.float16 and bool((np.abs(array) >= LARGEST_HALF).any())

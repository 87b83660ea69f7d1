"""Work on short lines of a matrix, a few hundred elements each, where numpy's call for every line costs more than it
computes: sums along lines, and one line beside every other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from msdump.mindspore.kernels.workspace import scratch
from msdump.tensors.arrays import Array

# Elements that one pass of a ufunc's innermost loop takes: enough to forget what starting it costs, few enough for the
# level-1 cache, as a repeated line is read again and again.
_REPEATED = 1 << 13
# Longer lines add up in pairs, whose rounding errors do not grow with the line.
_LONGEST = 1 << 12


def sums(x: Array) -> Array:
    """Of each line of `x` (count, width)."""
    if x.shape[1] > _LONGEST:
        return np.asarray(np.add.reduce(x, axis=1))
    return np.asarray(np.einsum("ij->i", x))


def dots(x: Array, y: Array) -> Array:
    """Of each line of `x` (count, width) with its line of `y`."""
    if x.shape[1] > _LONGEST:
        return sums(np.multiply(x, y, out=scratch("lines.products", x.shape, x.dtype)))
    return np.asarray(np.einsum("ij,ij->i", x, y))


def apply_lines(ufunc: Any, operands: Sequence[Array], out: Array) -> None:
    """`ufunc(*operands, out=out)` where an operand may be one line for all, in as few innermost loops as possible.

    Shapes: out (count, width), in order; each operand (count, width), in order, or (width,), or () for one number
    """
    count, width = out.shape
    times = max(1, min(_REPEATED // max(1, width), count))
    whole = count // times * times
    repeated = list(operands)
    for slot, operand in enumerate(operands):
        if operand.ndim == 1:
            lines = scratch(f"lines.{slot}", (times, width), operand.dtype)
            np.copyto(lines, operand)
            repeated[slot] = lines.reshape(-1)
        elif operand.ndim == 2:
            repeated[slot] = operand[:whole].reshape(-1, times * width)
    ufunc(*repeated, out=out[:whole].reshape(-1, times * width))
    if whole < count:
        ufunc(*(operand[whole:] if operand.ndim == 2 else operand for operand in operands), out=out[whole:])

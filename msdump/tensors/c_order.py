"""Arrays in C order, also where axes have changed places: there numpy copies element by element."""

from __future__ import annotations

import math
import sys
from typing import NamedTuple

import numpy as np

from msdump.tensors.arrays import Array
from msdump.tensors.compiling import has_compiler

_TILED_BYTES = 64 << 10  # below this numpy is as good
# Where an array has less, compiled code is not worth its first load.
_COMPILED_BYTES = 4 << 20


def in_c_order(array: Array) -> Array:
    """The array itself if it is contiguous, or a copy of its elements.

    Shapes:  any; a scalar stays one.   Dtypes: any.
    """
    return array if array.flags.c_contiguous else c_copy(array)


def c_copy(array: Array) -> Array:
    """A contiguous copy, in memory of its own.

    Edges:  an array of a class of its own, as one that has statistics and no values, is copied as that class does.
    """
    if type(array) is not np.ndarray:
        return array.copy()
    copy = np.empty(array.shape, array.dtype)
    copy_elements(copy, array)
    return copy


def copy_elements(target: Array, source: Array) -> None:
    """`target[...] = source` for arrays of one shape in different memory."""
    is_plain = is_worth_it(source) and target.flags.c_contiguous and target.dtype == source.dtype
    form = transposition(source) if is_plain else None
    if form is None:
        target[...] = source
        return
    from msdump.tensors.tiles import tile_kernel

    start, goal = (int(array.__array_interface__["data"][0]) for array in (source, target))
    tile_kernel(source.itemsize)(start, goal, *form)


def is_worth_it(source: Array) -> bool:
    """Is it plain numbers, large enough and so far from C order that tiles pay?"""
    is_plain = source.itemsize in (1, 2, 4, 8) and not source.dtype.hasobject and source.flags.aligned
    if not is_plain or source.flags.c_contiguous or source.nbytes < _TILED_BYTES:
        return False
    return ("msdump.tensors.tiles" in sys.modules or source.nbytes >= _COMPILED_BYTES) and has_compiler()


class _Transposition(NamedTuple):
    """Matrices whose columns lie one behind the other in the source, and whose rows do in the target; see `tiles`."""

    of_source: Array
    of_target: Array
    columns: int
    rows: int
    source_stride: int
    target_stride: int


def transposition(source: Array) -> _Transposition | None:
    """How the copy is made of matrices; None where runs of elements stay runs, or where matrices are too small."""
    axes = _merged_axes(source)
    if len(axes) < 2 or axes[-1][1] == source.itemsize:
        return None
    target_strides = [source.itemsize * math.prod(size for size, _ in axes[axis + 1 :]) for axis in range(len(axes))]
    columns_axis = next((axis for axis, (_, stride) in enumerate(axes) if stride == source.itemsize), None)
    if columns_axis is None:
        return None
    from msdump.tensors.tiles import SIDES

    (columns, _), (rows, source_stride) = axes[columns_axis], axes[-1]
    if min(columns, rows) < SIDES[source.itemsize]:
        return None
    of_source = of_target = np.zeros(1, np.int64)
    for axis, (size, stride) in enumerate(axes[:-1]):
        if axis != columns_axis:
            steps = np.arange(size, dtype=np.int64)
            of_source = np.add.outer(of_source, steps * stride).reshape(-1)
            of_target = np.add.outer(of_target, steps * target_strides[axis]).reshape(-1)
    return _Transposition(of_source, of_target, columns, rows, source_stride, target_strides[columns_axis])


def _merged_axes(source: Array) -> list[tuple[int, int]]:
    """(size, stride in bytes) of axes, those of size 1 left out and those that lie as one made one."""
    axes: list[tuple[int, int]] = []
    for size, stride in zip(source.shape, source.strides, strict=True):
        if size == 1:
            continue
        if axes and axes[-1][1] == size * stride:
            axes[-1] = axes[-1][0] * size, stride
        else:
            axes.append((size, stride))
    return axes

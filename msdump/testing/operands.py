"""Hypothesis strategy for the operands of an operator: like those of a call that is known to be good, but others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from msdump.tensors import dtypes as dtype_table
from msdump.tensors.arrays import Array

# Dtypes that stand for each other, the first of them most often.
_FLOATS = ("float32", "float64", "float16", "bfloat16")
_INTEGERS = ("int32", "int64", "uint8", "int8", "int16")
_COMPLEX = ("complex64", "complex128")
_SPECIAL = (0.0, -0.0, float("nan"), float("inf"), float("-inf"), 1e30, -1e-30)
_SHAPES = ("plain", "plain", "resized", "leading axis", "leading axis of one")


@st.composite
def operands_like(
    draw: st.DrawFn,
    arrays: Sequence[Array],
    dtypes: Sequence[str] | None = None,
    is_special: bool = False,
    has_other_shapes: bool = True,
) -> list[Array]:
    """Operands of a call that may be good when one with `arrays` is: an operator takes them or refuses them.

    dtypes            names of the dtypes that the first operand may have; None: those of its kind. Operands that have
                      its dtype change with it.
    is_special        among floats are also NaN, infinities, both zeros, and numbers that are no float16
    has_other_shapes  False: the shapes stay

    Shapes: all axes of one size get another one, which may be 0; or one operand or all of them get one more axis.
    Values: those of `arrays`, in another order and repeated or left out where the size changes, so that a valid index
    stays one. It shrinks to `arrays`.
    """
    drawn = [np.array(array) for array in arrays]
    if has_other_shapes and drawn:
        drawn = _reshaped(draw, drawn)
    if drawn:
        drawn = _in_dtype(draw, drawn, dtypes)
    seed = draw(st.integers(0, 99))
    if seed:
        rng = np.random.default_rng(seed)
        drawn = [rng.permutation(array.reshape(-1)).reshape(array.shape) for array in drawn]
    return [_with_special(draw, array) for array in drawn] if is_special else drawn


def _reshaped(draw: st.DrawFn, arrays: list[Array]) -> list[Array]:
    how = draw(st.sampled_from(_SHAPES))
    if how == "resized":
        sizes = sorted({size for array in arrays for size in array.shape})
        if sizes:
            old, new = draw(st.sampled_from(sizes)), draw(st.sampled_from([0, 1, 2, 3, 5]))
            return [_resized(array, old, new) for array in arrays]
    elif how != "plain":
        size = draw(st.sampled_from([0, 1, 2, 3]))
        chosen = range(len(arrays)) if how == "leading axis" else [draw(st.integers(0, len(arrays) - 1))]
        return [np.stack([array] * size) if slot in chosen and size else
                np.zeros((0, *array.shape), array.dtype) if slot in chosen else array
                for slot, array in enumerate(arrays)]  # fmt: skip
    return arrays


def _resized(array: Array, old: int, new: int) -> Array:
    for axis, size in enumerate(array.shape):
        if size == old and size:
            array = np.take(array, np.arange(new) % size, axis=axis)
        elif size == old:
            array = np.zeros((*array.shape[:axis], new, *array.shape[axis + 1 :]), array.dtype)
    return array


def _in_dtype(draw: st.DrawFn, arrays: list[Array], names: Sequence[str] | None) -> list[Array]:
    own = arrays[0].dtype
    if names is None:
        name = dtype_table.dtype_from_numpy(own).name
        groups = [group for group in (_FLOATS, _INTEGERS, _COMPLEX) if name in group]
        names = (name, *groups[0]) if groups else (name,)
    new = dtype_table.dtype(draw(st.sampled_from(list(names)))).numpy
    with np.errstate(all="ignore"):
        return [array.astype(new) if array.dtype == own else array for array in arrays]


def _with_special(draw: st.DrawFn, array: Array) -> Array:
    if array.size and dtype_table.dtype_from_numpy(array.dtype).is_float:
        value = draw(st.sampled_from((None, *_SPECIAL)))
        if value is not None:
            with np.errstate(all="ignore"):
                array.reshape(-1)[draw(st.integers(0, array.size - 1))] = value
    return array

"""Assignments: operators that write the memory of their first operand; the result is that memory.

`out[0]` may be the operand's own memory (a compiled graph) or an array of its own (operators called one by one).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from msdump.arrays import Array
from msdump.graph.primitive import Attrs, def_infer, def_kernel, def_primitive
from msdump.graph.types import TensorType
from msdump.kernels.checks import BOOLS, NUMBERS, expect, expect_count, expect_dtype, expect_same_dtype
from msdump.kernels.parallel import apply_ufunc

for _name in ("Assign", "AssignAdd", "AssignSub"):
    def_primitive(_name, ("ref", "value"), mutates=(0,), aliases={0: 0})


@def_infer("Assign")
def _infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """value has the shape of ref, or one element that goes everywhere."""
    expect_count(types, 2)
    ref, value = types
    expect_dtype(ref, NUMBERS | BOOLS, "ref")
    expect_same_dtype(types)
    fits = value.shape == ref.shape or value.shape in ((), (1,))
    expect(fits, f"value of shape {ref.shape}", value.shape)
    return (ref,)


@def_infer("AssignAdd", "AssignSub")
def _infer_number(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    result = _infer(types, attrs)
    expect_dtype(types[0], NUMBERS, "ref")
    return result


def publish(states: Sequence[Array], out: Sequence[Array]) -> None:
    """Copy each written operand to its output, unless they are the same memory."""
    for state, target in zip(states, out, strict=True):
        if not np.may_share_memory(state, target):
            np.copyto(target, state)


def _one_for_all(value: Array, ref: Array) -> Array:
    """`value` in a shape that broadcasts into `ref`, also into a 0-d one."""
    return value if value.shape == ref.shape else value.reshape(())


@def_kernel("Assign")
def _assign(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    ref, value = inputs
    np.copyto(ref, _one_for_all(value, ref))
    publish([ref], out)


def _update(ufunc: Any, inputs: Sequence[Array], out: Sequence[Array]) -> None:
    ref, value = inputs
    apply_ufunc(ufunc, [ref, _one_for_all(value, ref)], ref)
    publish([ref], out)


@def_kernel("AssignAdd")
def _assign_add(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    _update(np.add, inputs, out)


@def_kernel("AssignSub")
def _assign_sub(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    _update(np.subtract, inputs, out)

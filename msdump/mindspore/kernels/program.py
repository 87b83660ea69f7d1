"""Operators that watch or order a program, or write a parameter: Print, Depend, StopGradient, Assign.

Assignments write the memory of their first operand, and their result is that memory: `out[0]` may be the operand's
own memory (a compiled graph) or an array of its own (operators called one by one).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from msdump.graph.graph import Node
from msdump.graph.primitive import Attrs, def_infer, def_kernel, def_primitive
from msdump.graph.types import TensorType
from msdump.mindspore.kernels.array import copy_view
from msdump.mindspore.kernels.checks import BOOLS, NUMBERS, expect, expect_count, expect_dtype, expect_same_dtype
from msdump.mindspore.kernels.threads import apply_ufunc
from msdump.mindspore.program.autodiff import GradBuilder, Grads, def_bprop
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array
from msdump.tensors.text import scalar_text, values_text

def_primitive("Print", ("x",), has_side_effect=True)
def_primitive("Depend", ("value", "expression"), views={0: 0}, is_kernel=False)
def_primitive("StopGradient", ("x",), views={0: 0}, is_kernel=False)
def_primitive("TensorMove", ("x",))


@def_infer("Print")
def _print_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: strings, the texts among the operands in order; None stands for the next tensor.

    Tensors that no None stands for come after the texts.
    """
    strings = attrs.get("strings", ())
    fits = isinstance(strings, tuple) and all(item is None or isinstance(item, str) for item in strings)
    expect(fits, "strings to be a tuple of str and None", repr(strings))
    places = strings.count(None)
    expect(places <= len(types), f"{places} tensors, one for each None in strings", len(types))
    return (TensorType("int32", (1,)),)


@def_kernel("Print")
def _print(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """One item per line on standard output, which is flushed; the result is 0."""
    out[0][...] = 0
    tensors = iter(inputs)
    lines = [tensor_text(next(tensors)) if item is None else item for item in attrs.get("strings", ())]
    lines += [tensor_text(array) for array in tensors]
    sys.stdout.write("".join(line + "\n" for line in lines))
    sys.stdout.flush()


def tensor_text(array: Array) -> str:
    """A tensor as an operator prints it: shape, dtype, values; without axes only the number, 0 or 1 of a bool.

    Source: MindSpore 2.0 and 2.7, `print` in a graph.
    """
    row = dtypes.dtype_from_numpy(array.dtype)
    if array.ndim == 0:
        return scalar_text(array.astype(np.int8) if row.kind == dtypes.BOOL else array)
    gap = "" if array.ndim == 1 else "\n"
    return f"Tensor(shape={list(array.shape)}, dtype={row.ir_name}, value={gap}{values_text(array, ' ')})"


def _print_grad(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    return [None] * len(node.inputs)


def_bprop("Print")(_print_grad)


@def_infer("Depend")
def _depend_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """The first operand passes through; the others only have to run before."""
    expect(len(types) >= 1, "at least one operand", 0)
    return (types[0],)


@def_infer("StopGradient", "TensorMove")
def _stop_gradient_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    expect_count(types, 1)
    return (types[0],)


def_kernel("Depend")(copy_view)
def_kernel("StopGradient")(copy_view)


@def_kernel("TensorMove")
def _tensor_move(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    np.copyto(out[0], inputs[0])


@def_bprop("TensorMove")
def _tensor_move_grad(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    return outer


@def_bprop("Depend")
def _depend_grad(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    return [outer[0], *[None] * (len(node.inputs) - 1)]


@def_bprop("StopGradient")
def _stop_gradient_grad(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    return [None]


for _name in ("Assign", "AssignAdd", "AssignSub"):
    def_primitive(_name, ("ref", "value"), mutates=(0,), aliases={0: 0})


@def_infer("Assign")
def _assign_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """value has the shape of ref, or one element that goes everywhere."""
    expect_count(types, 2)
    ref, value = types
    expect_dtype(ref, NUMBERS | BOOLS, "ref")
    expect_same_dtype(types)
    fits = value.shape == ref.shape or value.shape in ((), (1,))
    expect(fits, f"value of shape {ref.shape}", value.shape)
    return (ref,)


@def_infer("AssignAdd", "AssignSub")
def _assign_number_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    result = _assign_infer(types, attrs)
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

"""MaskedFill: a number in the place of the elements that a mask chooses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from msdump.graph.graph import Node
from msdump.graph.primitive import Attrs, def_infer, def_kernel, def_primitive
from msdump.graph.types import TensorType
from msdump.mindspore.kernels.checks import (
    BOOLS,
    broadcast_shapes,
    expect,
    expect_count,
    expect_dtype,
    expect_same_dtype,
)
from msdump.mindspore.program.autodiff import GradBuilder, Grads, def_bprop, outer_gradient
from msdump.tensors.arrays import Array

def_primitive("MaskedFill", ("x", "mask", "value"))


@def_infer("MaskedFill")
def _masked_fill_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """x and mask broadcast; value has no axes."""
    expect_count(types, 3)
    x, mask, value = types
    expect_dtype(mask, BOOLS, "mask")
    expect_same_dtype((x, value))
    expect(value.shape == (), "value of shape ()", value.shape)
    return (TensorType(x.dtype, broadcast_shapes([x.shape, mask.shape])),)


@def_kernel("MaskedFill")
def _masked_fill(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    x, mask, value = inputs
    np.copyto(out[0], x)
    np.copyto(out[0], value, where=mask)


@def_bprop("MaskedFill")
def _masked_fill_grad(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    """Source: MindSpore: products with the mask as numbers, so that an infinite gradient makes NaN where it is 0."""
    d, (x, mask, value) = outer_gradient(outer), node.inputs
    is_filled = builder.add("Cast", [mask], {"dtype": d.type.dtype})
    of_x = of_value = None
    if builder.wanted[0]:
        is_kept = builder.add("Sub", [builder.constant(1, d.type.dtype), is_filled])
        of_x = builder.reduce_to(builder.add("Mul", [d, is_kept]), x.type.shape)
    if builder.wanted[2]:
        of_value = builder.reduce_to(builder.add("Mul", [d, is_filled]), value.type.shape)
    return [of_x, None, of_value]

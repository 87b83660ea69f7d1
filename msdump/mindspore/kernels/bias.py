"""BiasAdd: one number per channel, axis 1, added to everything in that channel."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from msdump.errors import OperandValueError
from msdump.graph.graph import Node
from msdump.graph.primitive import Attrs, def_infer, def_kernel, def_primitive
from msdump.graph.types import TensorType
from msdump.mindspore.kernels.checks import FLOATS, NUMBERS, expect_count, expect_dtype, expect_same_dtype, expect_shape
from msdump.mindspore.kernels.threads import apply_ufunc, split
from msdump.mindspore.kernels.window import expect_nchw
from msdump.mindspore.kernels.workspace import quiet, result_buffer, scratch, store, widened
from msdump.mindspore.program.autodiff import GradBuilder, Grads, def_bprop, outer_gradient
from msdump.tensors.arrays import Array

def_primitive("BiasAdd", ("x", "b"), grad_scope="gradBiasAdd-meta")
def_primitive("BiasAddGrad", ("dy",))


def _expect_channels(type: TensorType, attrs: Attrs) -> None:
    expect_nchw(attrs)
    if type.ndim < 2:
        raise OperandValueError(f"expected x of shape (N, C, ...), got {type.shape}.")


@def_infer("BiasAdd")
def _bias_type(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: format."""
    expect_count(types, 2)
    expect_dtype(types[0], NUMBERS, "x")
    expect_same_dtype(types)
    _expect_channels(types[0], attrs)
    expect_shape(types[1], (types[0].shape[1],), "b")
    return (types[0],)


@def_infer("BiasAddGrad")
def _bias_grad_type(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: format."""
    expect_count(types, 1)
    expect_dtype(types[0], FLOATS, "dy")
    _expect_channels(types[0], attrs)
    return (TensorType(types[0].dtype, types[0].shape[1:2]),)


@def_kernel("BiasAdd")
@quiet
def _bias_add(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    (x, b), y = inputs, out[0]
    if x.ndim == 2:
        apply_ufunc(np.add, inputs, y)
        return
    bias = b.reshape(-1, *(1,) * (x.ndim - 2))

    def part(start: int, stop: int) -> None:
        np.add(x[start:stop], bias, out=y[start:stop])

    split(x.shape[0], x.size, part)


@def_kernel("BiasAddGrad")
@quiet
def _bias_add_grad(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """Sum over all axes but 1: first inside each (n, c), pairwise, then over n.

    Edges:  nothing to add -> 0.
    """
    dy = inputs[0]
    images, channels = dy.shape[:2]
    result = result_buffer(out[0], "bias.result")
    if dy.ndim == 2:
        np.add.reduce(widened(dy, "bias.planes"), axis=0, out=result)
        store(result, out[0])
        return
    lines = dy.reshape(images * channels, math.prod(dy.shape[2:]))
    sums = scratch("bias.sums", (images * channels,), result.dtype)

    def part(start: int, stop: int) -> None:
        np.add.reduce(widened(lines[start:stop], "bias.planes"), axis=1, out=sums[start:stop])

    split(len(lines), dy.size, part)
    np.add.reduce(sums.reshape(images, channels), axis=0, out=result)
    store(result, out[0])


@def_bprop("BiasAdd")
def _bias_grads(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    dy = outer_gradient(outer)
    format = node.primitive.attrs.get("format", "NCHW")
    attrs = {"format": format, "data_format": format}
    return (dy, builder.add("BiasAddGrad", [dy], attrs) if builder.wanted[1] else None)


@def_bprop("BiasAddGrad")
def _bias_grad_bprop(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    """The gradient of a sum is the same for each element that was added."""
    shape = node.inputs[0].type.shape
    lines = builder.add("Reshape", [outer_gradient(outer)], {"shape": (1, shape[1], *(1,) * (len(shape) - 2))})
    return (builder.add("BroadcastTo", [lines], {"shape": shape}),)

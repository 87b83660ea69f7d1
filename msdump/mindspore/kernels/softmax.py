"""Softmax along one axis, shifted by the maximum where something could overflow, and its logarithm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from msdump.graph.graph import Node
from msdump.graph.primitive import Attrs, def_infer, def_kernel, def_primitive
from msdump.graph.types import TensorType
from msdump.mindspore.kernels.checks import FLOATS, expect, expect_count, expect_dtype, normal_axis
from msdump.mindspore.kernels.lines import sums
from msdump.mindspore.kernels.threads import CHAIN_BLOCK, run_blocks
from msdump.mindspore.kernels.torch_operator import torch_operator
from msdump.mindspore.kernels.workspace import quiet, result_buffer, store, widened
from msdump.mindspore.program.autodiff import GradBuilder, Grads, def_bprop, one_operator, same_attributes
from msdump.tensors.arrays import Array

# Elements of a block, a line at least.
BLOCK_SIZE = 2 * CHAIN_BLOCK
# Sums of exp(x) between which no shift is needed: an element comes near 1, and none near the end of its dtype.
_LEAST_SUM, _MOST_SUM = 1.0, 1e30

def_primitive("Softmax", ("x",))


def softmax(x: Array, out: Array, axis: int) -> None:
    """exp(x) / sum, in lines that need it exp(x - max) / sum.   Edges: NaN or +Inf in a line -> NaN; -Inf -> 0."""
    np.exp(x, out=out)
    total = _sum(out, axis)
    is_fit = np.squeeze((total >= _LEAST_SUM) & (total <= _MOST_SUM), axis)
    if not is_fit.all():
        # Among them are all lines with NaN, of which no comparison is true.
        lines = np.moveaxis(x, axis, -1)[~is_fit]
        np.subtract(lines, np.max(lines, axis=-1, keepdims=True), out=lines)
        np.exp(lines, out=lines)
        np.moveaxis(out, axis, -1)[~is_fit] = lines
        np.moveaxis(total, axis, -1)[~is_fit] = _sum(lines, -1)
    np.divide(out, total, out=out)


def _sum(x: Array, axis: int) -> Array:
    """With the axis kept."""
    return sums(x)[:, np.newaxis] if x.ndim == 2 and axis in (1, -1) else np.sum(x, axis=axis, keepdims=True)


def log_softmax(x: Array, out: Array, axis: int) -> None:
    """x - max - log(sum(exp(x - max))).   Edges: as softmax, -Inf -> -Inf."""
    np.subtract(x, np.max(x, axis=axis, keepdims=True), out=out)
    np.subtract(out, np.log(np.sum(np.exp(out), axis=axis, keepdims=True)), out=out)


def _axis(attrs: Attrs, ndim: int) -> int:
    """Attribute `axis`, an int or a tuple of one, -1 when absent."""
    axis: Any = attrs.get("axis", -1)
    if isinstance(axis, tuple):
        expect(len(axis) == 1, "one axis", axis)
        axis = axis[0]
    return normal_axis(axis, ndim)


@def_infer("Softmax")
def _softmax_type(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: axis."""
    expect_count(types, 1)
    expect_dtype(types[0], FLOATS, "x")
    _axis(attrs, types[0].ndim)
    return (types[0],)


def _log_softmax_grad_type(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: axis. `logits` is the result of LogSoftmax."""
    expect_count(types, 2)
    expect(types[1] == types[0], f"grad {types[0]}", types[1])
    return _softmax_type(types[:1], attrs)


def _along(formula: Callable[..., None], inputs: Sequence[Array], attrs: Attrs, out: Array) -> None:
    """`formula(operand, ..., out, axis=1)` on blocks (lines, length of the axis, what lies behind it, if anything)."""
    axis = _axis(attrs, out.ndim)
    if out.size == 0:
        return
    behind = int(np.prod(out.shape[axis + 1 :], dtype=np.int64))
    # An axis of size 1 behind the reduced one would make numpy reduce element by element.
    shape = (-1, out.shape[axis], behind) if behind > 1 else (-1, out.shape[axis])
    operands, result = [array.reshape(shape) for array in inputs], out.reshape(shape)
    line = out.shape[axis] * behind

    def part(start: int, stop: int) -> None:
        target = result[start:stop]
        buffer = result_buffer(target, "softmax.result")
        wide = [widened(operand[start:stop], f"softmax.{slot}") for slot, operand in enumerate(operands)]
        formula(*wide, buffer, axis=1)
        store(buffer, target)

    run_blocks(len(result), part, max(1, BLOCK_SIZE // line), line)


@def_kernel("Softmax")
@quiet
def _softmax(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    _along(softmax, inputs, attrs, out[0])


@def_bprop("Softmax")
def _softmax_grad(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    """y * (dy - sum(y * dy))"""
    dy, y = outer[0], node.outputs[0]
    if dy is None:
        return (None,)
    axis = _axis(node.primitive.attrs, y.type.ndim)
    total = builder.add("ReduceSum", [builder.add("Mul", [y, dy])], {"axis": (axis,), "keep_dims": True})
    return (builder.add("Mul", [y, builder.add("Sub", [dy, total])]),)


_log_softmax_bprop = one_operator("LogSoftmaxGrad", lambda x, y, dy: (y, dy), same_attributes)


@torch_operator("LogSoftmax", "x", infer=_softmax_type, gradient=_log_softmax_bprop)
def _log_softmax(torch: Any, x: Any, **attrs: Any) -> Any:
    return torch.log_softmax(x, _axis(attrs, x.ndim))


@torch_operator("LogSoftmaxGrad", "logits grad", infer=_log_softmax_grad_type)
def _log_softmax_grad(torch: Any, y: Any, dy: Any, **attrs: Any) -> Any:
    """dy - exp(y) * sum(dy); y is the result of LogSoftmax."""
    return dy - y.exp() * dy.sum(_axis(attrs, y.ndim), keepdim=True)

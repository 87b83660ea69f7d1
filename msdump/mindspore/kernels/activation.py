"""Activations and their gradients, element by element.

Gradients take what MindSpore's take: ReluGrad(dy, y), ReLU6Grad(dy, x), SigmoidGrad(y, dy), TanhGrad(y, dy),
GeLUGrad(dy, x, y).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence

import numpy as np

from msdump.graph.graph import Node, Value
from msdump.graph.primitive import Attrs, def_infer, def_kernel, def_primitive
from msdump.graph.types import TensorType
from msdump.mindspore.kernels.checks import FLOATS, NUMBERS, expect, expect_count, expect_dtype
from msdump.mindspore.kernels.threads import CHAIN_BLOCK, apply_ufunc, run_blocks
from msdump.mindspore.kernels.workspace import compute_type, quiet, result_buffer, scratch, store, widened
from msdump.mindspore.program.autodiff import GradBuilder, Grads, def_bprop
from msdump.tensors.arrays import Array

Formula = Callable[..., None]


# -- one formula, block by block ----------------------------------------------------------------------


def _declare(op_type: str, names: Sequence[str], allowed: Collection[str] = FLOATS) -> None:
    """An operator whose operands and result have one type, of one of the dtypes `allowed`."""
    def_primitive(op_type, names)

    @def_infer(op_type)
    def infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
        expect_count(types, len(names))
        for name, type in zip(names, types, strict=True):
            expect_dtype(type, allowed, name)
            expect(type == types[0], f"{name} {types[0]}", type)
        return (types[0],)


def _define(op_type: str, names: Sequence[str], formula: Formula) -> None:
    """Declare an operator and register its kernel.

    formula   formula(operand, ..., out) on flat blocks in the compute dtype, writing all of `out`
    """
    _declare(op_type, names)

    @def_kernel(op_type)
    @quiet
    def kernel(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
        _in_blocks(formula, inputs, out[0])


def _in_blocks(formula: Formula, inputs: Sequence[Array], out: Array) -> None:
    operands = [array.reshape(-1) for array in inputs]
    result = out.reshape(-1)

    def block(start: int, stop: int) -> None:
        wide = [widened(operand[start:stop], f"activation.{slot}") for slot, operand in enumerate(operands)]
        target = result[start:stop]
        buffer = result_buffer(target, "activation.result")
        formula(*wide, buffer)
        store(buffer, target)

    run_blocks(result.size, block, CHAIN_BLOCK)


def _select(condition: Array, values: Array, out: Array) -> None:
    """`values` where `condition`, else +0: a product of bits, as one of floats would turn Inf into NaN."""
    bits = np.dtype(f"i{values.dtype.itemsize}")
    np.multiply(values.view(bits), condition.view(np.int8), out=out.view(bits))


# -- ReLU ---------------------------------------------------------------------------------------------


def _relu(x: Array, out: Array) -> None:
    np.maximum(x, 0, out=out)


def _relu_grad(dy: Array, y: Array, out: Array) -> None:
    """Edges: no gradient where y is 0 or NaN."""
    condition = scratch("activation.condition", y.shape, np.bool_)
    _select(np.greater(y, 0, out=condition), dy, out)


def _relu6(x: Array, out: Array) -> None:
    np.maximum(x, 0, out=out)
    np.minimum(out, 6, out=out)


def _relu6_grad(dy: Array, x: Array, out: Array) -> None:
    """Edges: a gradient at 6, none at 0 and at NaN, as MindSpore."""
    condition = np.greater(x, 0)
    condition &= np.less_equal(x, 6)
    _select(condition, dy, out)


# -- sigmoid and tanh ---------------------------------------------------------------------------------


def _sigmoid(x: Array, out: Array) -> None:
    """Edges: -Inf -> 0; Inf -> 1."""
    np.negative(x, out=out)
    np.exp(out, out=out)
    np.add(out, 1, out=out)
    np.reciprocal(out, out=out)


def _sigmoid_grad(y: Array, dy: Array, out: Array) -> None:
    np.subtract(1, y, out=out)
    np.multiply(out, dy, out=out)
    np.multiply(out, y, out=out)


def _tanh(x: Array, out: Array) -> None:
    np.tanh(x, out=out)


def _tanh_grad(y: Array, dy: Array, out: Array) -> None:
    np.multiply(y, y, out=out)
    np.subtract(1, out, out=out)
    np.multiply(out, dy, out=out)


# -- GeLU ---------------------------------------------------------------------------------------------

_SLOPE = math.sqrt(2 / math.pi)
_CUBE = 0.044715


def _gate(x: Array, gate: Array) -> None:
    """tanh(sqrt(2/pi) * (x + 0.044715 x^3))"""
    np.multiply(x, x, out=gate)
    np.multiply(gate, _CUBE, out=gate)
    np.add(gate, 1, out=gate)
    np.multiply(gate, x, out=gate)
    np.multiply(gate, _SLOPE, out=gate)
    np.tanh(gate, out=gate)


def _gelu(x: Array, out: Array) -> None:
    """0.5 x (1 + gate).   Edges: -Inf -> NaN, as the formula has it.   Source: MindSpore GeLU, the tanh form."""
    _gate(x, out)
    np.add(out, 1, out=out)
    np.multiply(out, x, out=out)
    np.multiply(out, 0.5, out=out)


def _gelu_grad(dy: Array, x: Array, y: Array, out: Array) -> None:
    """dy * (0.5 (1 + gate) + 0.5 x (1 - gate^2) sqrt(2/pi) (1 + 3 * 0.044715 x^2))"""
    gate = scratch("activation.gate", x.shape, x.dtype)
    _gate(x, gate)
    np.multiply(x, x, out=out)
    np.multiply(out, 3 * _CUBE, out=out)
    np.add(out, 1, out=out)
    np.multiply(out, x, out=out)
    np.multiply(out, _SLOPE, out=out)
    np.multiply(out, 1 - gate * gate, out=out)
    np.add(out, 1 + gate, out=out)
    np.multiply(out, 0.5, out=out)
    np.multiply(out, dy, out=out)


_declare("ReLU", ("x",), NUMBERS)


@def_kernel("ReLU")
def _relu_of_all(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """Edges: NaN stays; -0 -> +0, which the maximum of float16 and bfloat16 does not make of it."""
    x, y = inputs[0], out[0]
    if compute_type(y.dtype) == y.dtype:
        apply_ufunc(np.maximum, [x, np.zeros((), y.dtype)], y)
    else:
        _in_blocks(_relu, inputs, y)


_define("ReluGrad", ("y_backprop", "x"), _relu_grad)
_define("ReLU6", ("x",), _relu6)
_define("ReLU6Grad", ("y_grad", "x"), _relu6_grad)
_define("Sigmoid", ("x",), _sigmoid)
_define("SigmoidGrad", ("y", "dy"), _sigmoid_grad)
_define("Tanh", ("x",), _tanh)
_define("TanhGrad", ("y", "dy"), _tanh_grad)
_define("GeLU", ("x",), _gelu)
_define("GeLUGrad", ("dy", "x", "y"), _gelu_grad)


# -- gradients ----------------------------------------------------------------------------------------

Operands = Callable[[Value, Value, Value], Sequence[Value]]


def _define_grad(op_type: str, grad_type: str, operands: Operands) -> None:
    """The gradient of `op_type` is one `grad_type` on operands(x, y, dy)."""

    @def_bprop(op_type)
    def bprop(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
        if outer[0] is None:
            return (None,)
        return (builder.add(grad_type, operands(node.inputs[0], node.outputs[0], outer[0])),)


_define_grad("ReLU", "ReluGrad", lambda x, y, dy: (dy, y))
_define_grad("ReLU6", "ReLU6Grad", lambda x, y, dy: (dy, x))
_define_grad("Sigmoid", "SigmoidGrad", lambda x, y, dy: (y, dy))
_define_grad("Tanh", "TanhGrad", lambda x, y, dy: (y, dy))
_define_grad("GeLU", "GeLUGrad", lambda x, y, dy: (dy, x, y))

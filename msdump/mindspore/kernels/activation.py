"""Activations and their gradients, element by element.

Gradients take what MindSpore's take: ReluGrad(dy, y), ReLU6Grad(dy, x), SigmoidGrad(y, dy), TanhGrad(y, dy),
GeLUGrad(dy, x, y).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from msdump.graph.graph import Node
from msdump.graph.primitive import Attrs, Infer, def_infer, def_kernel, def_primitive
from msdump.graph.types import TensorType
from msdump.mindspore.kernels.checks import FLOATS, NUMBERS, expect, expect_count, expect_dtype
from msdump.mindspore.kernels.threads import CHAIN_BLOCK, apply_ufunc, run_blocks
from msdump.mindspore.kernels.torch_operator import gradient_of, torch_operator
from msdump.mindspore.kernels.workspace import compute_type, quiet, result_buffer, scratch, store, widened
from msdump.mindspore.program.autodiff import Bprop, GradBuilder, Grads, def_bprop, one_operator, outer_gradient
from msdump.tensors.arrays import Array


def _alike(names: Sequence[str], allowed: Collection[str] = FLOATS) -> Infer:
    """The rule of operators whose operands and result have one type, of one of the dtypes `allowed`."""

    def infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
        expect_count(types, len(names))
        for name, type in zip(names, types, strict=True):
            expect_dtype(type, allowed, name)
            expect(type == types[0], f"{name} {types[0]}", type)
        return (types[0],)

    return infer


# -- ReLU: of the core -------------------------------------------------------------------------------------------------

def_primitive("ReLU", ("x",))
def_primitive("ReluGrad", ("y_backprop", "x"))
def_infer("ReLU")(_alike(("x",), NUMBERS))
def_infer("ReluGrad")(_alike(("y_backprop", "x")))
def_bprop("ReLU")(one_operator("ReluGrad", lambda x, y, dy: (dy, y)))


def _in_blocks(formula: Callable[..., None], inputs: Sequence[Array], out: Array) -> None:
    """formula(operand, ..., out) on flat blocks in the compute dtype."""
    operands = [array.reshape(-1) for array in inputs]
    result = out.reshape(-1)

    def block(start: int, stop: int) -> None:
        wide = [widened(operand[start:stop], f"activation.{slot}") for slot, operand in enumerate(operands)]
        target = result[start:stop]
        buffer = result_buffer(target, "activation.result")
        formula(*wide, buffer)
        store(buffer, target)

    run_blocks(result.size, block, CHAIN_BLOCK)


@def_kernel("ReLU")
def _relu(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """Edges: NaN stays; -0 -> +0, which the maximum of float16 and bfloat16 does not make of it."""
    x, y = inputs[0], out[0]
    if compute_type(y.dtype) == y.dtype:
        apply_ufunc(np.maximum, [x, np.zeros((), y.dtype)], y)
    else:
        _in_blocks(lambda wide, result: np.maximum(wide, 0, out=result), inputs, y)


@def_kernel("ReluGrad")
@quiet
def _relu_grad(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """Edges: no gradient where y is 0 or NaN; a product of bits, as one of floats would turn Inf into NaN."""

    def formula(dy: Array, y: Array, result: Array) -> None:
        condition = np.greater(y, 0, out=scratch("activation.condition", y.shape, np.bool_))
        bits = np.dtype(f"i{dy.dtype.itemsize}")
        np.multiply(dy.view(bits), condition.view(np.int8), out=result.view(bits))

    _in_blocks(formula, inputs, out[0])


@def_bprop("ReluGrad")
def _relu_grad_bprop(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    return [builder.add("ReluGrad", [outer_gradient(outer), node.inputs[1]]), None]


# -- by PyTorch --------------------------------------------------------------------------------------------------------


def _declare(op_type: str, inputs: str, gradient: Bprop | None, function: Callable[..., Any]) -> None:
    torch_operator(op_type, inputs, infer=_alike(inputs.split()), gradient=gradient)(function)


def _gelu_grad(torch: Any, dy: Any, x: Any, y: Any) -> Any:
    return gradient_of("GeLU", [x], {}, [dy], 1)


# Edges: a gradient of ReLU6 at 6, none at 0 and at NaN, as MindSpore.
_declare("ReLU6", "x", one_operator("ReLU6Grad", lambda x, y, dy: (dy, x)), lambda torch, x: x.clamp(0, 6))
_declare("ReLU6Grad", "y_grad x", None, lambda torch, dy, x: torch.where((x > 0) & (x <= 6), dy, 0.0))
_declare("Sigmoid", "x", one_operator("SigmoidGrad", lambda x, y, dy: (y, dy)), lambda torch, x: x.sigmoid())
_declare("SigmoidGrad", "y dy", None, lambda torch, y, dy: dy * y * (1 - y))
_declare("Tanh", "x", one_operator("TanhGrad", lambda x, y, dy: (y, dy)), lambda torch, x: x.tanh())
_declare("TanhGrad", "y dy", None, lambda torch, y, dy: dy * (1 - y * y))
# The tanh form, as MindSpore's.
_declare(
    "GeLU",
    "x",
    one_operator("GeLUGrad", lambda x, y, dy: (dy, x, y)),
    lambda torch, x: torch.nn.functional.gelu(x, approximate="tanh"),
)
_declare("GeLUGrad", "dy x y", None, _gelu_grad)

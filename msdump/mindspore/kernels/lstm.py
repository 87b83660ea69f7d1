"""LSTM as one operator, as MindSpore has it on a CPU: the states of all steps of one layer.

Weights are one column (4 * hidden * (input + hidden [+ 1]), 1, 1): input weights, hidden weights, then one bias for
each gate; gates in the order input, forget, cell, output.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from msdump.graph.graph import Node
from msdump.graph.primitive import Attrs
from msdump.graph.types import TensorType
from msdump.mindspore.kernels.checks import FLOATS, expect, expect_count, expect_dtype, expect_same_dtype, expect_shape
from msdump.mindspore.kernels.torch_operator import gradient_of, torch_operator
from msdump.mindspore.program.autodiff import GradBuilder, Grads

_INPUTS = ("input", "hx", "cx", "weights")


def _sizes(attrs: Attrs) -> tuple[int, int, bool]:
    """(input_size, hidden_size, has_bias).   Raises: GraphError for what one call of the operator cannot do."""
    for name, plain in (("num_layers", 1), ("bidirectional", False), ("dropout", 0.0)):
        expect(attrs.get(name, plain) == plain, f"{name} {plain!r}, one operator per layer", attrs.get(name))
    return int(attrs["input_size"]), int(attrs["hidden_size"]), bool(attrs.get("has_bias", True))


def _weight_count(attrs: Attrs) -> int:
    inputs, hidden, has_bias = _sizes(attrs)
    return 4 * hidden * (inputs + hidden + has_bias)


def _infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: input_size, hidden_size, has_bias; num_layers 1, bidirectional False, dropout 0.

    The reserve holds the four gates and the cell of each step, which the gradient reads: (L, 5, N, hidden).
    """
    expect_count(types, 4)
    inputs, hidden, _ = _sizes(attrs)
    expect_dtype(types[0], FLOATS, "input")
    expect_same_dtype(list(types))
    expect(len(types[0].shape) == 3 and types[0].shape[2] == inputs, f"input (L, N, {inputs})", types[0].shape)
    steps, batch, _ = types[0].shape
    for slot in (1, 2):
        expect_shape(types[slot], (1, batch, hidden), _INPUTS[slot])
    expect_shape(types[3], (_weight_count(attrs), 1, 1), "weights")
    dtype = types[0].dtype
    state, reserve = TensorType(dtype, (1, batch, hidden)), TensorType(dtype, (steps, 5, batch, hidden))
    return (TensorType(dtype, (steps, batch, hidden)), state, state, reserve, TensorType(dtype, (1,)))


def _bprop(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    """Edges: results whose gradient nobody has count as zeros."""
    gradients = []
    for slot in range(3):
        given, type_ = outer[slot], node.outputs[slot].type
        gradients.append(given if given is not None else builder.constant(np.zeros(type_.shape), type_.dtype))
    operands = [*node.inputs, node.outputs[0], node.outputs[3], *gradients]
    return list(builder.add_all("LSTMGrad", operands, dict(node.primitive.attrs)))


def _infer_grad(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    expect_count(types, 9)
    output, state, _, reserve, _ = _infer(types[:4], attrs)
    results = (output, reserve, output, state, state)
    for name, type_, result in zip(("output", "reserve", "dy", "dhy", "dcy"), types[4:], results, strict=True):
        expect(type_ == result, f"{name} of type {result}", type_)
    return tuple(types[:4])


@torch_operator("LSTM", " ".join(_INPUTS), "output hy cy reserve state", infer=_infer, gradient=_bprop)
def _lstm(
    torch: Any, x: Any, hx: Any, cx: Any, weights: Any, *, input_size: int, hidden_size: int, has_bias: bool = True
) -> Any:
    """c = f * c + i * g;  h = o * tanh(c)."""
    sizes = [4 * hidden_size * input_size, 4 * hidden_size * hidden_size, 4 * hidden_size * has_bias]
    of_input, of_hidden, bias = weights.reshape(-1).split(sizes)
    h, c, output, reserve = hx[0], cx[0], [], []
    for step in x:
        gates = step @ of_input.reshape(-1, input_size).T + h @ of_hidden.reshape(-1, hidden_size).T
        i, f, g, o = (gates + bias if has_bias else gates).chunk(4, 1)
        i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
        c = f * c + i * g
        h = o * c.tanh()
        output.append(h)
        reserve.append(torch.stack((i, f, g, o, c)))
    steps = torch.stack(output) if output else x.new_empty(0, *h.shape)
    kept = torch.stack(reserve) if reserve else x.new_empty(0, 5, *h.shape)
    return steps, h[None], c[None], kept, x.new_zeros(1)


@torch_operator("LSTMGrad", " ".join((*_INPUTS, "output reserve dy dhy dcy")), "dx dhx dcx dw", infer=_infer_grad)
def _lstm_grad(torch: Any, *operands: Any, **attrs: Any) -> Any:
    return gradient_of("LSTM", operands[:4], attrs, operands[6:], 4)

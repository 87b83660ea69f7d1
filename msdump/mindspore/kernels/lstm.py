"""LSTM as one operator, as MindSpore has it on a CPU: the states of all steps of one layer.

Weights are one column (4 * hidden * (input + hidden [+ 1]), 1, 1): input weights, hidden weights, then one bias for
each gate; gates in the order input, forget, cell, output.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from msdump.graph.graph import Node
from msdump.graph.primitive import Attrs, def_infer, def_kernel, def_primitive
from msdump.graph.types import TensorType
from msdump.mindspore.kernels.checks import FLOATS, expect, expect_count, expect_dtype, expect_same_dtype, expect_shape
from msdump.mindspore.kernels.workspace import compute_type
from msdump.mindspore.program.autodiff import GradBuilder, Grads, def_bprop
from msdump.tensors.arrays import Array

_INPUTS = ("input", "hx", "cx", "weights")
def_primitive("LSTM", _INPUTS, ("output", "hy", "cy", "reserve", "state"))
def_primitive("LSTMGrad", (*_INPUTS, "output", "reserve", "dy", "dhy", "dcy"), ("dx", "dhx", "dcx", "dw"))


def _sizes(attrs: Attrs) -> tuple[int, int, bool]:
    """(input_size, hidden_size, has_bias).   Raises: GraphError for what one call of the operator cannot do."""
    for name, plain in (("num_layers", 1), ("bidirectional", False), ("dropout", 0.0)):
        expect(attrs.get(name, plain) == plain, f"{name} {plain!r}, one operator per layer", attrs.get(name))
    return int(attrs["input_size"]), int(attrs["hidden_size"]), bool(attrs.get("has_bias", True))


def _weight_count(attrs: Attrs) -> int:
    inputs, hidden, has_bias = _sizes(attrs)
    return 4 * hidden * (inputs + hidden + has_bias)


@def_infer("LSTM")
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


def _matrices(weights: Array, attrs: Attrs, dtype: Any) -> tuple[Array, Array, Array]:
    """(4 * hidden, input), (4 * hidden, hidden), (4 * hidden,)."""
    inputs, hidden, has_bias = _sizes(attrs)
    flat = weights.reshape(-1).astype(dtype, copy=False)
    first, second = 4 * hidden * inputs, 4 * hidden * hidden
    bias = flat[first + second :] if has_bias else np.zeros(4 * hidden, dtype)
    return flat[:first].reshape(-1, inputs), flat[first : first + second].reshape(-1, hidden), bias


def _sigmoid(x: Array) -> Array:
    """Without overflow for either sign."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * x)), x.dtype)


@def_kernel("LSTM")
def _lstm(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """c = f * c + i * g;  h = o * tanh(c)."""
    wide = compute_type(inputs[0].dtype)
    x, h, c = inputs[0].astype(wide, copy=False), inputs[1][0].astype(wide), inputs[2][0].astype(wide)
    of_input, of_hidden, bias = _matrices(inputs[3], attrs, wide)
    output, hy, cy, reserve, state = out
    for step in range(len(x)):
        i, f, g, o = np.split(x[step] @ of_input.T + h @ of_hidden.T + bias, 4, axis=1)
        i, f, g, o = _sigmoid(i), _sigmoid(f), np.tanh(g), _sigmoid(o)
        c = f * c + i * g
        h = o * np.tanh(c)
        output[step] = h
        for slot, values in enumerate((i, f, g, o, c)):
            reserve[step, slot] = values
    hy[0], cy[0], state[...] = h, c, 0


@def_bprop("LSTM")
def _bprop(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    """Edges: results whose gradient nobody has count as zeros."""
    gradients = []
    for slot in range(3):
        given, type_ = outer[slot], node.outputs[slot].type
        gradients.append(given if given is not None else builder.constant(np.zeros(type_.shape), type_.dtype))
    operands = [*node.inputs, node.outputs[0], node.outputs[3], *gradients]
    return list(builder.add_all("LSTMGrad", operands, dict(node.primitive.attrs)))


@def_infer("LSTMGrad")
def _infer_grad(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    expect_count(types, 9)
    output, state, _, reserve, _ = _infer(types[:4], attrs)
    results = (output, reserve, output, state, state)
    for name, type_, result in zip(("output", "reserve", "dy", "dhy", "dcy"), types[4:], results, strict=True):
        expect(type_ == result, f"{name} of type {result}", type_)
    return tuple(types[:4])


@def_kernel("LSTMGrad")
def _lstm_grad(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    wide = compute_type(inputs[0].dtype)
    x, hx, cx, weights, output, reserve, dy, dhy, dcy = (array.astype(wide, copy=False) for array in inputs)
    of_input, of_hidden, _ = _matrices(weights, attrs, wide)
    dx = np.empty_like(x)
    d_input, d_hidden = np.zeros_like(of_input), np.zeros_like(of_hidden)
    d_bias = np.zeros(len(of_input), wide)
    dh, dc = dhy[0].copy(), dcy[0].copy()
    for step in reversed(range(len(x))):
        i, f, g, o, c = reserve[step]
        before_c, before_h = (reserve[step - 1, 4], output[step - 1]) if step else (cx[0], hx[0])
        dh = dh + dy[step]
        bent = np.tanh(c)
        dc = dc + dh * o * (1 - bent * bent)
        gates = (dc * g * i * (1 - i), dc * before_c * f * (1 - f), dc * i * (1 - g * g), dh * bent * o * (1 - o))
        gate = np.concatenate(gates, axis=1)
        dx[step] = gate @ of_input
        d_input += gate.T @ x[step]
        d_hidden += gate.T @ before_h
        d_bias += gate.sum(0)
        dh, dc = gate @ of_hidden, dc * f
    parts = [d_input.reshape(-1), d_hidden.reshape(-1), *([d_bias] if _sizes(attrs)[2] else [])]
    results = (dx, dh[None], dc[None], np.concatenate(parts).reshape(weights.shape))
    for target, values in zip(out, results, strict=True):
        np.copyto(target, values, casting="same_kind")

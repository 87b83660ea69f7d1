"""Random operators. Their bits depend on operands and attributes alone, so a replay gives the same tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from msdump.graph.graph import Node
from msdump.graph.primitive import Attrs, def_infer, def_kernel, def_primitive
from msdump.graph.types import TensorType
from msdump.mindspore.kernels.checks import FLOATS, INDICES, expect, expect_count, expect_dtype
from msdump.mindspore.kernels.threads import apply_ufunc
from msdump.mindspore.program.autodiff import GradBuilder, Grads, def_bprop
from msdump.tensors.arrays import Array

# Random words per call of the generator: what one pass keeps in the cache.
_WORDS = 1 << 16

def_primitive("Dropout", ("x", "draw"), ("output", "mask"))
def_primitive("DropoutGrad", ("dy", "mask"))


def _keep_prob(attrs: Attrs) -> float:
    value: Any = attrs.get("keep_prob", 0.5)
    expect(isinstance(value, (int, float)) and 0.0 < value <= 1.0, "keep_prob in (0, 1]", value)
    return float(value)


@def_infer("Dropout")
def _dropout_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: keep_prob (0.5), Seed0 (0), Seed1 (0).

    The optional second operand counts the draws, shape () or (1,): another number, another mask.
    """
    _expect_draw(types)
    _keep_prob(attrs)
    return (types[0], types[0])


def _expect_draw(types: Sequence[TensorType]) -> None:
    """x, and the number of the draw or not."""
    expect(len(types) in (1, 2), "x, or x and draw", f"{len(types)} operands")
    expect_dtype(types[0], FLOATS, "x")
    if len(types) == 2:
        expect_dtype(types[1], INDICES, "draw")
        expect(types[1].shape in ((), (1,)), "draw of shape () or (1,)", types[1].shape)


@def_kernel("Dropout")
def _dropout(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """mask = 1 with probability keep_prob, else 0;  y = x * mask / keep_prob.

    Edges: a NaN or Inf that is dropped gives NaN, as the product has it.
    """
    output, mask = out
    draw = int(inputs[1].reshape(())) if len(inputs) == 2 else 0
    fill_mask(mask, _keep_prob(attrs), (int(attrs.get("Seed0", 0)), int(attrs.get("Seed1", 0)), draw))
    _scaled(inputs[0], mask, _keep_prob(attrs), output)


def fill_mask(mask: Array, keep_prob: float, key: Sequence[int]) -> None:
    """Ones and zeros of a counter-based generator (Philox) whose stream the key chooses."""
    state = np.random.SeedSequence([number & (2**64 - 1) for number in key]).generate_state(2, np.uint64)
    generator = np.random.Philox(key=state)
    flat = mask.reshape(-1)
    threshold = round(keep_prob * 2**32)
    for start in range(0, flat.size, 2 * _WORDS):
        part = flat[start : start + 2 * _WORDS]
        words = generator.random_raw(-(-part.size // 2)).astype("<u8", copy=False).view("<u4")[: part.size]
        np.copyto(part, words < threshold, casting="unsafe")


def _scaled(x: Array, mask: Array, keep_prob: float, out: Array) -> None:
    apply_ufunc(np.multiply, [x, mask], out)
    apply_ufunc(np.multiply, [out, np.asarray(1.0 / keep_prob, out.dtype)], out)


@def_bprop("Dropout")
def _dropout_bprop(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    """Gradient of y only; the mask is not differentiated."""
    if outer[0] is None:
        return [None] * len(node.inputs)
    attrs = {"keep_prob": node.primitive.attrs.get("keep_prob", 0.5)}
    return [builder.add("DropoutGrad", [outer[0], node.outputs[1]], attrs), *[None] * (len(node.inputs) - 1)]


@def_infer("DropoutGrad")
def _dropout_grad_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: keep_prob of the Dropout."""
    expect_count(types, 2)
    expect_dtype(types[0], FLOATS, "dy")
    expect(types[1] == types[0], f"mask of type {types[0]}", types[1])
    _keep_prob(attrs)
    return (types[0],)


@def_kernel("DropoutGrad")
def _dropout_grad(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    _scaled(inputs[0], inputs[1], _keep_prob(attrs), out[0])


@def_bprop("DropoutGrad")
def _dropout_grad_bprop(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    if outer[0] is None:
        return [None, None]
    return [builder.add("DropoutGrad", [outer[0], node.inputs[1]], dict(node.primitive.attrs)), None]


# -- whole channels at once ---------------------------------------------------------------------------

_CHANNELS = {"Dropout2D": 4, "Dropout3D": 5}
for _name in _CHANNELS:
    def_primitive(_name, ("x", "draw"), ("output", "mask"))


def _define_channel_dropout(op_type: str, ndim: int) -> None:
    """Zeros for whole channels of (N, C, ...): the mask is bool, of the shape of x.   Attrs: keep_prob, Seed0."""

    @def_infer(op_type)
    def infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
        _expect_draw(types)
        expect(len(types[0].shape) == ndim, f"x of {ndim} axes", types[0].shape)
        _keep_prob(attrs)
        return (types[0], TensorType("bool", types[0].shape))

    @def_kernel(op_type)
    def kernel(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
        x, (output, mask) = inputs[0], out
        draw = int(inputs[1].reshape(())) if len(inputs) == 2 else 0
        kept = np.empty(x.shape[:2], bool)
        fill_mask(kept, _keep_prob(attrs), (int(attrs.get("Seed0", 0)), 0, draw))
        np.copyto(mask, kept.reshape(*x.shape[:2], *(1,) * (ndim - 2)))
        _scaled(x, mask.astype(x.dtype), _keep_prob(attrs), output)

    @def_bprop(op_type)
    def bprop(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
        if outer[0] is None:
            return [None] * len(node.inputs)
        dtype = outer[0].type.dtype
        mask = builder.add("Cast", [node.outputs[1]], {"dtype": dtype})
        scaled = builder.add("Mul", [outer[0], builder.constant(1.0 / _keep_prob(node.primitive.attrs), dtype)])
        return [builder.add("Mul", [scaled, mask]), *[None] * (len(node.inputs) - 1)]


for _name, _ndim in _CHANNELS.items():
    _define_channel_dropout(_name, _ndim)

"""Cross entropy of probabilities, or of logits, with targets in [0, 1], element by element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msdump.errors import ExecutionError
from msdump.graph.graph import Node, Value
from msdump.graph.primitive import Attrs
from msdump.graph.types import TensorType
from msdump.mindspore.kernels.checks import (
    FLOATS,
    broadcast_shapes,
    expect,
    expect_count,
    expect_dtype,
    expect_same_dtype,
)
from msdump.mindspore.kernels.torch_operator import torch_operator
from msdump.mindspore.program.autodiff import GradBuilder, Grads, outer_gradient

# Source: MindSpore's CPU kernels divide by no less.
_LEAST_DIVISOR = 1e-12


def _expect_operands(types: Sequence[TensorType], attrs: Attrs, dtype: str) -> TensorType:
    """The type of the loss, in this dtype."""
    expect_dtype(types[0], FLOATS, "logits")
    expect(types[1].shape == types[0].shape, f"labels of shape {types[0].shape}", types[1])
    for type in types[2:]:
        shape = broadcast_shapes([types[0].shape, type.shape])
        expect(shape == types[0].shape, f"a weight that broadcasts to {types[0].shape}", type.shape)
    reduction = attrs.get("reduction", "mean")
    expect(reduction in ("none", "mean", "sum"), "reduction none, mean or sum", reduction)
    return TensorType(dtype, types[0].shape if reduction == "none" else ())


# -- of probabilities --------------------------------------------------------------------------------------------------


def _infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: reduction ("mean")."""
    expect(len(types) in (2, 3), "2 or 3 operands", len(types))
    expect_same_dtype(types)
    return (_expect_operands(types, attrs, types[0].dtype),)


def _infer_grad(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: reduction ("mean")."""
    expect(len(types) in (3, 4), "3 or 4 operands", len(types))
    expect_same_dtype(types)
    loss = _expect_operands([*types[:2], *types[3:]], attrs, types[0].dtype)
    expect(types[2] == loss, f"dloss {loss}", types[2])
    return (types[0],)


def _share(builder: GradBuilder, dloss: Value, x: Value, weight: Sequence[Value], attrs: Attrs) -> Value:
    """What reaches each element: `dloss`, its part of a mean, times its weight."""
    if attrs.get("reduction", "mean") == "mean":
        dloss = builder.add("RealDiv", [dloss, builder.constant(max(x.type.size, 1), x.type.dtype)])
    return builder.add("Mul", [dloss, weight[0]]) if weight else dloss


def _cross_entropy_bprop(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    """Source: MindSpore: the weight has no gradient."""
    x, y, *weight = node.inputs
    grads: list[Value | None] = [None] * len(node.inputs)
    attrs = {"reduction": node.primitive.attrs.get("reduction", "mean")}
    if builder.wanted[0]:
        grads[0] = builder.add("BinaryCrossEntropyGrad", [x, y, outer_gradient(outer), *weight], attrs)
    if builder.wanted[1]:
        one = builder.constant(1, x.type.dtype)
        slope = builder.add("Sub", [builder.add("Log", [builder.add("Sub", [one, x])]), builder.add("Log", [x])])
        grads[1] = builder.add("Mul", [slope, _share(builder, outer_gradient(outer), x, weight, attrs)])
    return grads


@torch_operator("BinaryCrossEntropy", "logits labels weight", infer=_infer, gradient=_cross_entropy_bprop)
def _cross_entropy(torch: Any, x: Any, y: Any, weight: Any = None, *, reduction: str = "mean") -> Any:
    """-weight * (y * log(x) + (1 - y) * log(1 - x)), logarithms cut at -100.

    Edges:  NaN -> NaN.
    Raises: ExecutionError for a probability outside of [0, 1], as MindSpore.
    """
    outside = x[(x < 0) | (x > 1)]
    if outside.numel():
        raise ExecutionError(
            f"expected logits between 0 and 1, got {float(outside[0])}. "
            "Apply a sigmoid before, or take BCEWithLogitsLoss."
        )
    losses = -(y * x.log().clamp_min(-100) + (1 - y) * (1 - x).log().clamp_min(-100))
    return _reduced(losses if weight is None else losses * weight, reduction)


def _reduced(losses: Any, reduction: str) -> Any:
    return losses if reduction == "none" else losses.double().sum() / (losses.numel() if reduction == "mean" else 1)


@torch_operator("BinaryCrossEntropyGrad", "logits labels dloss weight", infer=_infer_grad)
def _cross_entropy_grad(torch: Any, x: Any, y: Any, dloss: Any, weight: Any = 1, *, reduction: str = "mean") -> Any:
    """dloss * weight * (x - y) / (x * (1 - x)).   Edges: finite at 0 and 1, where the divisor is 1e-12."""
    gradient = (x - y) / ((1 - x) * x).clamp_min(_LEAST_DIVISOR) * dloss * weight
    return gradient / max(x.numel(), 1) if reduction == "mean" else gradient


# -- of logits ---------------------------------------------------------------------------------------------------------


def _infer_logits(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: reduction ("mean"), absent: names of the operands that are not there.

    Source: MindSpore 2.7: operands of any floats; the loss has the dtype of the labels.
    """
    expect_count(types, 4 - len(attrs.get("absent", ())))
    for type in types[1:]:
        expect_dtype(type, FLOATS, "labels and weights")
    return (_expect_operands(types, attrs, types[1].dtype),)


def _optional(operands: Sequence[Any], attrs: Attrs) -> list[Any]:
    remaining = iter(operands)
    return [None if name in attrs.get("absent", ()) else next(remaining) for name in ("weight", "pos_weight")]


def _logits_bprop(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    """sigmoid(x) - y, and its like with weights, in the dtype of x.

    Source: MindSpore: the weights have no gradient.
    """
    grads: list[Value | None] = [None] * len(node.inputs)
    attrs, add, dtype = node.primitive.attrs, builder.add, node.inputs[0].type.dtype
    x, y, *others, dloss = (_in_dtype(builder, value, dtype) for value in (*node.inputs, outer_gradient(outer)))
    weight, pos_weight = _optional(others, attrs)
    share = _share(builder, dloss, x, [weight] if isinstance(weight, Value) else [], attrs)
    one = builder.constant(1, x.type.dtype)
    if builder.wanted[0]:
        sigmoid = add("Sigmoid", [x])
        if isinstance(pos_weight, Value):
            positive = add("Mul", [y, pos_weight])
            factor = add("Sub", [add("Add", [positive, one]), y])
            slope = add("Sub", [add("Mul", [factor, sigmoid]), positive])
        else:
            slope = add("Sub", [sigmoid, y])
        grads[0] = add("Mul", [slope, share])
    if builder.wanted[1]:
        slope = add("Neg", [x])
        if isinstance(pos_weight, Value):
            rest = add("Log", [add("Add", [add("Exp", [add("Neg", [add("Abs", [x])])]), one])])
            soft = add("Add", [rest, add("Maximum", [slope, builder.constant(0, x.type.dtype)])])
            slope = add("Add", [slope, add("Mul", [add("Sub", [pos_weight, one]), soft])])
        grads[1] = _in_dtype(builder, add("Mul", [slope, share]), node.inputs[1].type.dtype)
    return grads


def _in_dtype(builder: GradBuilder, value: Value, dtype: str) -> Value:
    return value if value.type.dtype == dtype else builder.add("Cast", [value], {"dtype": dtype})


@torch_operator("BCEWithLogitsLoss", "predict target weight pos_weight", infer=_infer_logits, gradient=_logits_bprop)
def _logits_loss(torch: Any, x: Any, y: Any, *others: Any, reduction: str = "mean", absent: Sequence[str] = ()) -> Any:
    """-weight * (pos_weight * y * log(s) + (1 - y) * log(1 - s)) with s = sigmoid(x), computed without overflow."""
    weight, pos_weight = _optional(others, {"absent": absent})
    factor = 1 if pos_weight is None else y * (pos_weight - 1) + 1
    # log(1 + e**-|x|) + max(-x, 0) is log(1 + e**-x) for both signs.
    losses = (1 - y) * x + (torch.log1p(torch.exp(-x.abs())) + (-x).clamp_min(0)) * factor
    return _reduced(losses if weight is None else losses * weight, reduction)

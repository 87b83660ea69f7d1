"""Gradients of the operators that are gradients: what a penalty on a gradient needs.

Those of activations, roots, extremes, slices and means are nodes of other operators; those of normalization, GeLU and
MaxPool are one operator `{type}Grad` each, which PyTorch computes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from msdump.graph.graph import Node, Value
from msdump.graph.primitive import Attrs
from msdump.mindspore.kernels.torch_operator import Compute, torch_bprop
from msdump.mindspore.kernels.window import pair, window_of
from msdump.mindspore.program.autodiff import GradBuilder, def_bprop

Grads = Sequence["Value | None"]
# (builder, gradient of the result, operands) -> gradients of the operands, each made only where it is wanted.
Rule = Callable[[GradBuilder, Value, Sequence[Value]], Sequence["Callable[[], Value] | None"]]


def _rule(op_type: str) -> Callable[[Rule], Rule]:
    """Decorator: the gradient rule of an operator with one result."""

    def register(rule: Rule) -> Rule:
        @def_bprop(op_type)
        def bprop(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
            if outer[0] is None:
                return [None] * len(node.inputs)
            made = rule(builder, outer[0], node.inputs)
            pairs = zip(made, builder.wanted, strict=True)
            return [make() if make is not None and want else None for make, want in pairs]

        return rule

    return register


def _product(builder: GradBuilder, *factors: Value | float) -> Value:
    """The product of values and numbers; the first factor is a value."""
    result = factors[0]
    assert isinstance(result, Value), "the first factor has the dtype of the product"
    for factor in factors[1:]:
        other = factor if isinstance(factor, Value) else builder.constant(factor, result.type.dtype)
        result = builder.add("Mul", [result, other])
    return result


# -- activations: linear in dy, and curved in y -------------------------------------------------------


@_rule("ReluGrad")
def _relu_grad(builder: GradBuilder, d: Value, operands: Sequence[Value]) -> Any:
    return lambda: builder.add("ReluGrad", [d, operands[1]]), None


@_rule("ReLU6Grad")
def _relu6_grad(builder: GradBuilder, d: Value, operands: Sequence[Value]) -> Any:
    return lambda: builder.add("ReLU6Grad", [d, operands[1]]), None


@_rule("TanhGrad")
def _tanh_grad(builder: GradBuilder, d: Value, operands: Sequence[Value]) -> Any:
    """dy * (1 - y^2)"""
    y, dy = operands
    return lambda: _product(builder, d, dy, y, -2.0), lambda: builder.add("TanhGrad", [y, d])


@_rule("SigmoidGrad")
def _sigmoid_grad(builder: GradBuilder, d: Value, operands: Sequence[Value]) -> Any:
    """dy * y * (1 - y)"""
    y, dy = operands

    def of_y() -> Value:
        slope = builder.add("Sub", [builder.constant(1, y.type.dtype), _product(builder, y, 2.0)])
        return _product(builder, d, dy, slope)

    return of_y, lambda: builder.add("SigmoidGrad", [y, d])


@_rule("SqrtGrad")
def _sqrt_grad(builder: GradBuilder, d: Value, operands: Sequence[Value]) -> Any:
    """dy / (2 * y)"""
    y, dy = operands

    def of_y() -> Value:
        own = builder.add("SqrtGrad", [y, dy])
        return builder.add("Neg", [builder.add("RealDiv", [_product(builder, d, own), y])])

    return of_y, lambda: builder.add("SqrtGrad", [y, d])


@_rule("RsqrtGrad")
def _rsqrt_grad(builder: GradBuilder, d: Value, operands: Sequence[Value]) -> Any:
    """-1/2 * dy * y^3"""
    y, dy = operands
    return lambda: _product(builder, d, dy, y, y, -1.5), lambda: builder.add("RsqrtGrad", [y, d])


@_rule("ReciprocalGrad")
def _reciprocal_grad(builder: GradBuilder, d: Value, operands: Sequence[Value]) -> Any:
    """-dy * y^2"""
    y, dy = operands
    return lambda: _product(builder, d, dy, y, -2.0), lambda: builder.add("ReciprocalGrad", [y, d])


# -- choices: linear in dy, flat elsewhere ------------------------------------------------------------


def _extreme_grad(chooses_x: str) -> Any:
    def bprop(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
        x, y, dy = node.inputs
        zero = builder.constant(0, dy.type.dtype)
        of_x, of_y = (zero if gradient is None else gradient for gradient in outer)
        return [None, None, builder.add("Select", [builder.add(chooses_x, [x, y]), of_x, of_y])]

    return bprop


def_bprop("MaximumGrad")(_extreme_grad("GreaterEqual"))
def_bprop("MinimumGrad")(_extreme_grad("LessEqual"))


def _same_of(op_type: str, names: Sequence[str], slot: int) -> Any:
    """The gradient of an operator that is linear in operand `slot`: the operator whose gradient it is."""

    def bprop(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
        results: list[Value | None] = [None] * len(node.inputs)
        if outer[0] is not None:
            attrs = {name: value for name, value in node.primitive.attrs.items() if name in names or not names}
            index = [node.inputs[1]] if op_type == "GatherD" else []
            results[slot] = builder.add(op_type, [outer[0], *index], attrs)
        return results

    return bprop


_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
def_bprop("SliceGrad")(_same_of("Slice", ("begin", "size"), 0))
def_bprop("StridedSliceGrad")(_same_of("StridedSlice", ("begin", "end", "strides", *_MASKS), 0))
def_bprop("GatherDGradV2")(_same_of("GatherD", ("dim",), 2))


@def_bprop("BiasAddGrad")
def _bias_add_grad(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    """The gradient of a sum is the same for each element that was added."""
    if outer[0] is None:
        return [None]
    shape = node.inputs[0].type.shape
    lines = builder.add("Reshape", [outer[0]], {"shape": (1, shape[1], *(1,) * (len(shape) - 2))})
    return [builder.add("BroadcastTo", [lines], {"shape": shape})]


# -- by PyTorch ---------------------------------------------------------------------------------------


def _gelu_grad(tensors: Sequence[Any], attrs: Attrs) -> list[Any]:
    """dy times the slope of the tanh form of GeLU."""
    dy, x, _ = tensors
    scale = math.sqrt(2 / math.pi)
    gate = (scale * (x + 0.044715 * x**3)).tanh()
    return [dy * 0.5 * (1 + gate + x * (1 - gate * gate) * scale * (1 + 3 * 0.044715 * x * x))]


def _batch_norm_grad(tensors: Sequence[Any], attrs: Attrs) -> list[Any]:
    """In training the statistics are those of x, through which the gradient flows; else they are constants."""
    dy, x, scale, mean, variance, _ = tensors
    channel = 1 if attrs.get("format", "NCHW") == "NCHW" else x.ndim - 1
    others = [axis for axis in range(x.ndim) if axis != channel]
    line = [-1 if axis == channel else 1 for axis in range(x.ndim)]
    is_training = bool(attrs.get("is_training", False))
    if is_training:
        mean, variance = x.mean(others), x.var(others, unbiased=False)
    inverse = (variance.reshape(line) + attrs.get("epsilon", 1e-5)).rsqrt()
    normal = (x - mean.reshape(line)) * inverse
    free = dy
    if is_training:
        free = dy - dy.mean(others, keepdim=True) - normal * (dy * normal).mean(others, keepdim=True)
    return [scale.reshape(line) * inverse * free, (dy * normal).sum(others), dy.sum(others)]


def _layer_norm_grad(tensors: Sequence[Any], attrs: Attrs) -> list[Any]:
    """Mean and variance are those of x, through which the gradient flows."""
    x, dy, _, _, gamma = tensors
    begin, begin_params = (attrs.get(name, 1) % x.ndim for name in ("begin_norm_axis", "begin_params_axis"))
    axes, outside = list(range(begin, x.ndim)), list(range(begin_params))
    inverse = (x.var(axes, unbiased=False, keepdim=True) + attrs.get("epsilon", 1e-7)).rsqrt()
    normal = (x - x.mean(axes, keepdim=True)) * inverse
    free = dy * gamma
    centered = free - free.mean(axes, keepdim=True) - normal * (free * normal).mean(axes, keepdim=True)
    sums = [each.sum(outside) if outside else each for each in (dy * normal, dy)]
    return [centered * inverse, *sums]


def _max_pool_grad(tensors: Sequence[Any], attrs: Attrs) -> list[Any]:
    """dy, each element of it where the largest of its window is."""
    import torch

    x, _, dy = tensors
    window = window_of(attrs, tuple(x.shape[2:]), pair(attrs, "kernel_size"), pair(attrs, "strides", 1))
    top, bottom, left, right = window.padding
    with torch.enable_grad():
        free = x.detach().requires_grad_()
        padded = torch.nn.functional.pad(free, (left, right, top, bottom), value=float("-inf"))
        largest = torch.nn.functional.max_pool2d(padded, window.kernel, window.stride)
        return list(torch.autograd.grad(largest, free, dy, create_graph=True))


_BY_TORCH: dict[str, Compute] = {
    "GeLUGrad": _gelu_grad,
    "BatchNormGrad": _batch_norm_grad,
    "LayerNormGrad": _layer_norm_grad,
    "MaxPoolGrad": _max_pool_grad,
}
for _op_type, _compute in _BY_TORCH.items():
    def_bprop(_op_type)(torch_bprop(_compute))

"""Operators by what torch has for them. Only the source of these functions is used: it runs where torch is imported."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msdump.analysis.replay._numpy_equivalents import axis_of, bias_add, padding_of, pair_of

if TYPE_CHECKING:
    from msdump.graph.primitive import Attrs

# Given to the source when it runs.
torch: Any = None
functional: Any = None


def matmul(inputs: Any, attrs: Attrs) -> Any:
    a, b = inputs
    a = a.transpose(-1, -2) if attrs.get("transpose_a") else a
    b = b.transpose(-1, -2) if attrs.get("transpose_b") else b
    return [torch.matmul(a, b)]


def bias_add_grad(inputs: Any, attrs: Attrs) -> Any:
    (dy,) = inputs
    kept = dy.ndim - 1 if str(attrs.get("format", "NCHW")) == "NHWC" else 1
    return [dy.sum(dim=[axis for axis in range(dy.ndim) if axis != kept])]


def conv2d(inputs: Any, attrs: Attrs) -> Any:
    x, weight = inputs
    stride, dilation = pair_of(attrs.get("stride", 1)), pair_of(attrs.get("dilation", 1))
    top, bottom, left, right = padding_of(attrs, x.shape[2:], weight.shape[2:], stride, dilation)
    x = functional.pad(x, (left, right, top, bottom))
    return [functional.conv2d(x, weight, stride=stride, dilation=dilation, groups=int(attrs.get("group", 1)))]


def conv2d_gradients(x: Any, weight: Any, dy: Any, attrs: Attrs, wanted: int) -> Any:
    """Gradient of conv2d with respect to x (0) or weight (1)."""
    x, weight = x.detach().requires_grad_(True), weight.detach().requires_grad_(True)
    (y,) = conv2d((x, weight), attrs)
    return [torch.autograd.grad(y, (x, weight)[wanted], dy)[0]]


def conv2d_backprop_input(inputs: Any, attrs: Attrs) -> Any:
    dy, weight = inputs[:2]
    x = torch.zeros(attrs["input_sizes"], dtype=dy.dtype)
    return conv2d_gradients(x, weight, dy, attrs, 0)


def conv2d_backprop_filter(inputs: Any, attrs: Attrs) -> Any:
    dy, x = inputs[:2]
    weight = torch.zeros(attrs["filter_sizes"], dtype=dy.dtype)
    return conv2d_gradients(x, weight, dy, attrs, 1)


def max_pool(inputs: Any, attrs: Attrs) -> Any:
    (x,) = inputs
    kernel, stride = pair_of(attrs["kernel_size"]), pair_of(attrs.get("strides", 1))
    top, bottom, left, right = padding_of(attrs, x.shape[2:], kernel, stride, (1, 1))
    x = functional.pad(x, (left, right, top, bottom), value=float("-inf"))
    return [functional.max_pool2d(x, kernel, stride)]


def relu_grad(inputs: Any, attrs: Attrs) -> Any:
    dy, y = inputs
    return [torch.where(y > 0, dy, torch.zeros_like(dy))]


def softmax(inputs: Any, attrs: Attrs) -> Any:
    return [torch.softmax(inputs[0], axis_of(attrs))]


def log_softmax(inputs: Any, attrs: Attrs) -> Any:
    return [torch.log_softmax(inputs[0], axis_of(attrs))]


def axes_of(inputs: Any, attrs: Attrs) -> Any:
    """Axes of a reduction: none mean all."""
    axis = attrs.get("axis", ())
    return [axis] if isinstance(axis, int) else list(axis) or list(range(inputs[0].ndim))


def reduce_sum(inputs: Any, attrs: Attrs) -> Any:
    return [inputs[0].sum(dim=axes_of(inputs, attrs), keepdim=bool(attrs.get("keep_dims", False)))]


def reduce_mean(inputs: Any, attrs: Attrs) -> Any:
    return [inputs[0].mean(dim=axes_of(inputs, attrs), keepdim=bool(attrs.get("keep_dims", False)))]


def reduce_max(inputs: Any, attrs: Attrs) -> Any:
    return [torch.amax(inputs[0], dim=axes_of(inputs, attrs), keepdim=bool(attrs.get("keep_dims", False)))]


def reduce_min(inputs: Any, attrs: Attrs) -> Any:
    return [torch.amin(inputs[0], dim=axes_of(inputs, attrs), keepdim=bool(attrs.get("keep_dims", False)))]


def transpose(inputs: Any, attrs: Attrs) -> Any:
    return [inputs[0].permute(*attrs["perm"]).contiguous()]


# Operator type -> its result as one expression of `inputs`.
EXPRESSIONS = {
    "Abs": "torch.abs(inputs[0])",
    "Ceil": "torch.ceil(inputs[0])",
    "Cos": "torch.cos(inputs[0])",
    "Erf": "torch.erf(inputs[0])",
    "Exp": "torch.exp(inputs[0])",
    "Floor": "torch.floor(inputs[0])",
    "Log": "torch.log(inputs[0])",
    "Neg": "-inputs[0]",
    "ReLU": "torch.relu(inputs[0])",
    "Reciprocal": "torch.reciprocal(inputs[0])",
    "Rsqrt": "torch.rsqrt(inputs[0])",
    "Sigmoid": "torch.sigmoid(inputs[0])",
    "Sin": "torch.sin(inputs[0])",
    "Sqrt": "torch.sqrt(inputs[0])",
    "Square": "torch.square(inputs[0])",
    "Tanh": "torch.tanh(inputs[0])",
    "Add": "inputs[0] + inputs[1]",
    "Sub": "inputs[0] - inputs[1]",
    "Mul": "inputs[0] * inputs[1]",
    "Div": "inputs[0] / inputs[1]",
    "RealDiv": "inputs[0] / inputs[1]",
    "Maximum": "torch.maximum(inputs[0], inputs[1])",
    "Minimum": "torch.minimum(inputs[0], inputs[1])",
    "Pow": "torch.pow(inputs[0], inputs[1])",
    "Flatten": "inputs[0].flatten(1)",
    "Reshape": 'inputs[0].reshape(attrs["shape"])',
}
_CONVOLUTION = (pair_of, padding_of, conv2d, conv2d_gradients)
# Operator type -> (function, functions that it calls).
FUNCTIONS: dict[str, tuple[Callable[[Any, Attrs], Any], tuple[Callable[..., Any], ...]]] = {
    "BatchMatMul": (matmul, ()),
    "BiasAdd": (bias_add, ()),
    "BiasAddGrad": (bias_add_grad, ()),
    "Conv2D": (conv2d, (pair_of, padding_of)),
    "Conv2DBackpropFilter": (conv2d_backprop_filter, _CONVOLUTION),
    "Conv2DBackpropInput": (conv2d_backprop_input, _CONVOLUTION),
    "LogSoftmax": (log_softmax, (axis_of,)),
    "MatMul": (matmul, ()),
    "MaxPool": (max_pool, (pair_of, padding_of)),
    "ReduceMax": (reduce_max, (axes_of,)),
    "ReduceMean": (reduce_mean, (axes_of,)),
    "ReduceMin": (reduce_min, (axes_of,)),
    "ReduceSum": (reduce_sum, (axes_of,)),
    "ReluGrad": (relu_grad, ()),
    "Softmax": (softmax, (axis_of,)),
    "Transpose": (transpose, ()),
}

"""Operators in a few lines of numpy each, for scripts that run anywhere: `msdump replay -o` copies their source.

Each function stands alone for that reason. They are written for reading; `msdump replay` runs the kernels, which are
written for speed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from msdump.graph.primitive import Attrs
    from msdump.tensors.arrays import Array

# -- attributes as numbers, for torch as well ---------------------------------------------------------------------


def pair_of(value: Any) -> tuple[int, int]:
    """An int, (h, w) or (1, 1, h, w) as (h, w)."""
    if isinstance(value, int):
        return value, value
    return tuple(value)[-2:]


def padding_of(attrs: Attrs, size: Any, kernel: Any, stride: Any, dilation: Any) -> tuple[int, int, int, int]:
    """Padding (top, bottom, left, right) of an image of `size`, by `pad_mode`."""
    mode = str(attrs.get("pad_mode", "valid")).lower()
    if mode == "same":
        edges = []
        for length, k, s, d in zip(size, kernel, stride, dilation):  # noqa: B905
            total = max((-(-length // s) - 1) * s + (k - 1) * d + 1 - length, 0)
            edges += [total // 2, total - total // 2]
        return tuple(edges)
    if mode == "pad":
        pad = attrs.get("pad", 0)
        return (pad,) * 4 if isinstance(pad, int) else tuple(pad)
    return 0, 0, 0, 0


def axis_of(attrs: Attrs) -> int:
    """The one axis of a softmax: an int or a tuple of one."""
    axis = attrs.get("axis", -1)
    return axis if isinstance(axis, int) else int(axis[0])


def matmul(inputs: Sequence[Array], attrs: Attrs) -> list[Array]:
    a, b = inputs
    a = np.swapaxes(a, -1, -2) if attrs.get("transpose_a") else a
    b = np.swapaxes(b, -1, -2) if attrs.get("transpose_b") else b
    return [np.matmul(a, b)]


def bias_add(inputs: Sequence[Array], attrs: Attrs) -> list[Array]:
    x, bias = inputs
    if str(attrs.get("format", "NCHW")) == "NHWC":
        return [x + bias]
    return [x + bias.reshape((1, -1) + (1,) * (x.ndim - 2))]


def bias_add_grad(inputs: Sequence[Array], attrs: Attrs) -> list[Array]:
    (dy,) = inputs
    kept = dy.ndim - 1 if str(attrs.get("format", "NCHW")) == "NHWC" else 1
    return [dy.sum(axis=tuple(axis for axis in range(dy.ndim) if axis != kept))]


def conv2d(inputs: Sequence[Array], attrs: Attrs) -> list[Array]:
    x, weight = inputs
    stride, dilation = pair_of(attrs.get("stride", 1)), pair_of(attrs.get("dilation", 1))
    top, bottom, left, right = padding_of(attrs, x.shape[2:], weight.shape[2:], stride, dilation)
    x = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
    spans = [(size - 1) * step + 1 for size, step in zip(weight.shape[2:], dilation)]  # noqa: B905
    windows = np.lib.stride_tricks.sliding_window_view(x, spans, axis=(2, 3))
    windows = windows[:, :, :: stride[0], :: stride[1], :: dilation[0], :: dilation[1]]
    groups = int(attrs.get("group", 1))
    parts = zip(np.split(windows, groups, axis=1), np.split(weight, groups, axis=0))  # noqa: B905
    return [np.concatenate([np.einsum("nchwij,ocij->nohw", part, w) for part, w in parts], axis=1)]


def pool_windows(x: Array, attrs: Attrs, fill: float) -> Array:
    """Windows of pooling as two last axes."""
    kernel, stride = pair_of(attrs["kernel_size"]), pair_of(attrs.get("strides", 1))
    top, bottom, left, right = padding_of(attrs, x.shape[2:], kernel, stride, (1, 1))
    x = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=fill)
    windows = np.lib.stride_tricks.sliding_window_view(x, kernel, axis=(2, 3))
    return windows[:, :, :: stride[0], :: stride[1]]


def max_pool(inputs: Sequence[Array], attrs: Attrs) -> list[Array]:
    return [pool_windows(inputs[0], attrs, -np.inf).max(axis=(-1, -2))]


def relu(inputs: Sequence[Array], attrs: Attrs) -> list[Array]:
    return [np.maximum(inputs[0], 0)]


def relu_grad(inputs: Sequence[Array], attrs: Attrs) -> list[Array]:
    dy, y = inputs
    return [np.where(y > 0, dy, 0)]


def sigmoid(inputs: Sequence[Array], attrs: Attrs) -> list[Array]:
    return [1 / (1 + np.exp(-inputs[0]))]


def softmax(inputs: Sequence[Array], attrs: Attrs) -> list[Array]:
    axis = axis_of(attrs)
    moved = np.exp(inputs[0] - inputs[0].max(axis=axis, keepdims=True))
    return [moved / moved.sum(axis=axis, keepdims=True)]


def log_softmax(inputs: Sequence[Array], attrs: Attrs) -> list[Array]:
    axis = axis_of(attrs)
    moved = inputs[0] - inputs[0].max(axis=axis, keepdims=True)
    return [moved - np.log(np.exp(moved).sum(axis=axis, keepdims=True))]


def reduced(inputs: Sequence[Array], attrs: Attrs) -> dict[str, Any]:
    """Arguments of a reduction: no axes mean all axes."""
    axis = attrs.get("axis", ())
    axes = (axis,) if isinstance(axis, int) else tuple(axis) or None
    return {"a": inputs[0], "axis": axes, "keepdims": bool(attrs.get("keep_dims", False))}


def reduce_sum(inputs: Sequence[Array], attrs: Attrs) -> list[Array]:
    return [np.sum(**reduced(inputs, attrs))]


def reduce_mean(inputs: Sequence[Array], attrs: Attrs) -> list[Array]:
    return [np.mean(**reduced(inputs, attrs))]


def reduce_max(inputs: Sequence[Array], attrs: Attrs) -> list[Array]:
    return [np.max(**reduced(inputs, attrs))]


def reduce_min(inputs: Sequence[Array], attrs: Attrs) -> list[Array]:
    return [np.min(**reduced(inputs, attrs))]


def transpose(inputs: Sequence[Array], attrs: Attrs) -> list[Array]:
    return [np.transpose(inputs[0], attrs["perm"])]


def flatten(inputs: Sequence[Array], attrs: Attrs) -> list[Array]:
    return [inputs[0].reshape(inputs[0].shape[0], -1)]


def reshape(inputs: Sequence[Array], attrs: Attrs) -> list[Array]:
    return [inputs[0].reshape(attrs["shape"])]


def apply_momentum(inputs: Sequence[Array], attrs: Attrs) -> list[Array]:
    variable, accumulation, rate, gradient, momentum = inputs
    gradient = gradient * attrs.get("gradient_scale", 1.0)
    accumulation = momentum * accumulation + gradient
    step = gradient + momentum * accumulation if attrs.get("use_nesterov") else accumulation
    return [variable - rate * step]


# Operator type -> its result as one expression of `inputs`.
EXPRESSIONS = {
    "Abs": "np.abs(inputs[0])",
    "Ceil": "np.ceil(inputs[0])",
    "Cos": "np.cos(inputs[0])",
    "Exp": "np.exp(inputs[0])",
    "Floor": "np.floor(inputs[0])",
    "Log": "np.log(inputs[0])",
    "Neg": "-inputs[0]",
    "Reciprocal": "1 / inputs[0]",
    "Rsqrt": "1 / np.sqrt(inputs[0])",
    "Sin": "np.sin(inputs[0])",
    "Sqrt": "np.sqrt(inputs[0])",
    "Square": "np.square(inputs[0])",
    "Tanh": "np.tanh(inputs[0])",
    "Add": "inputs[0] + inputs[1]",
    "Sub": "inputs[0] - inputs[1]",
    "Mul": "inputs[0] * inputs[1]",
    "Div": "inputs[0] / inputs[1]",
    "RealDiv": "inputs[0] / inputs[1]",
    "Maximum": "np.maximum(inputs[0], inputs[1])",
    "Minimum": "np.minimum(inputs[0], inputs[1])",
    "Pow": "np.power(inputs[0], inputs[1])",
}
# Operator type -> (function, functions that it calls).
FUNCTIONS: dict[str, tuple[Callable[[Sequence[Array], Attrs], list[Array]], tuple[Callable[..., Any], ...]]] = {
    "ApplyMomentum": (apply_momentum, ()),
    "BatchMatMul": (matmul, ()),
    "BiasAdd": (bias_add, ()),
    "BiasAddGrad": (bias_add_grad, ()),
    "Conv2D": (conv2d, (pair_of, padding_of)),
    "Flatten": (flatten, ()),
    "LogSoftmax": (log_softmax, (axis_of,)),
    "MatMul": (matmul, ()),
    "MaxPool": (max_pool, (pair_of, padding_of, pool_windows)),
    "ReLU": (relu, ()),
    "ReduceMax": (reduce_max, (reduced,)),
    "ReduceMean": (reduce_mean, (reduced,)),
    "ReduceMin": (reduce_min, (reduced,)),
    "ReduceSum": (reduce_sum, (reduced,)),
    "ReluGrad": (relu_grad, ()),
    "Reshape": (reshape, ()),
    "Sigmoid": (sigmoid, ()),
    "Softmax": (softmax, (axis_of,)),
    "Transpose": (transpose, ()),
}

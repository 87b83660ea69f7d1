"""A function and its operands for each operator that MINDIR files hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from msdump import mindspore as ms
from msdump.mindspore import nn, ops
from msdump.tensors.arrays import Array


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).uniform(0.1, 0.9, shape).astype(np.float32)


X, Y = numbers(2, 3), numbers(2, 3, seed=1)
IMAGE, CUBE = numbers(2, 4, 6, 6), numbers(2, 3, 4)
FLAGS = np.array([[True, False, True], [False, True, True]])
PLACES = np.array([1, 0], np.int32)
_BY_NAME = """Abs Atan Ceil Cos Erf Erfc Exp Expm1 Floor IsFinite Log Log1p Neg ReLU ReLU6 Reciprocal Rint Rsqrt
    Sigmoid Sign Sin Sqrt Square Tan Tanh Identity HSigmoid HSwish SeLU Mish"""
_PAIRS = """Add Atan2 Div Equal FloorDiv FloorMod Greater GreaterEqual Less LessEqual Maximum Minimum Mul NotEqual Pow
    RealDiv Sub"""


def _primitive(name: str) -> Callable[..., Any]:
    return lambda *operands: getattr(ops, name)()(*operands)


CASES: dict[str, tuple[Callable[..., Any], tuple[Array, ...]]] = {
    **{name: (_primitive(name), (X - 0.5 if name in ("Abs", "ReLU", "Sign") else X,)) for name in _BY_NAME.split()},
    **{name: (_primitive(name), (X, Y)) for name in _PAIRS.split()},
    "LogicalNot": (ops.logical_not, (FLAGS,)),
    "LogicalAnd": (ops.logical_and, (FLAGS, ~FLAGS)),
    "LogicalOr": (ops.logical_or, (FLAGS, ~FLAGS)),
    "Flatten": (lambda x: ops.Flatten()(x), (CUBE,)),
    "GeLU": (lambda x: ops.gelu(x, "tanh"), (X,)),
    "Softplus": (ops.softplus, (X,)),
    "Trunc": (ops.trunc, (X * 9,)),
    "PReLU": (ops.prelu, (IMAGE - 0.5, numbers(4))),
    "GatherNd": (ops.gather_nd, (CUBE, np.array([[0, 1], [1, 2]], np.int32))),
    "Argmax": (lambda x: ops.argmax(x, 1), (CUBE,)),
    "Argmin": (lambda x: ops.Argmin(1, ms.int32)(x), (CUBE,)),
    "ArgMaxWithValue": (lambda x: ops.ArgMaxWithValue(1)(x), (CUBE,)),
    "ArgMinWithValue": (lambda x: ops.ArgMinWithValue(1, True)(x), (CUBE,)),
    "AvgPool": (nn.AvgPool2d(2, 2), (IMAGE,)),
    "BatchMatMul": (lambda x, y: ops.BatchMatMul(transpose_b=True)(x, y), (CUBE, CUBE)),
    "BatchNorm": (nn.BatchNorm2d(4, gamma_init="normal"), (IMAGE,)),
    "BiasAdd": (ops.bias_add, (X, numbers(3))),
    "BroadcastTo": (lambda x: ops.broadcast_to(x, (4, 2, 3)), (X,)),
    "Cast": (lambda x: ops.cast(x, ms.float16), (X,)),
    "Concat": (lambda x, y: ops.concat([x, y], 1), (X, Y)),
    "Conv2D": (nn.Conv2d(4, 6, (3, 2), (2, 1), "pad", (1, 0, 2, 1), group=2, has_bias=True), (IMAGE,)),
    "Conv2DBackpropInput": (nn.Conv2dTranspose(4, 2, 3, 2), (IMAGE,)),
    "CumSum": (lambda x: ops.cumsum(x, 1), (CUBE,)),
    "Elu": (lambda x: ops.elu(x), (X - 0.5,)),
    "ExpandDims": (lambda x: ops.expand_dims(x, 1), (X,)),
    "Gather": (lambda x, i: ops.gather(x, i, 1), (X, PLACES)),
    "GatherD": (lambda x, i: ops.gather_elements(x, 1, i), (X, np.array([[0, 2], [1, 1]], np.int32))),
    "LayerNorm": (nn.LayerNorm((4,), gamma_init="normal"), (CUBE,)),
    "LogSoftmax": (lambda x: ops.log_softmax(x, 1), (CUBE,)),
    "MaskedFill": (lambda x, c: ops.masked_fill(x, c, 2.0), (X, FLAGS)),
    "MatMul": (nn.Dense(3, 5), (X,)),
    "MaxPool": (nn.MaxPool2d(3, 2, pad_mode="same"), (IMAGE,)),
    "OneHot": (lambda i: ops.one_hot(i, 4, ms.Tensor(1.0), ms.Tensor(0.0)), (PLACES,)),
    "PadV3": (lambda x: ops.pad(x, (1, 2), value=0.5), (IMAGE,)),
    "ReduceAll": (lambda x: ops.all(x, 1), (FLAGS,)),
    "ReduceAny": (lambda x: ops.any(x, 0), (FLAGS,)),
    "ReduceMax": (lambda x: ops.amax(x, 1), (CUBE,)),
    "ReduceMean": (lambda x: ops.mean(x, (0, 2), True), (CUBE,)),
    "ReduceMin": (lambda x: ops.amin(x, 2), (CUBE,)),
    "ReduceProd": (lambda x: ops.prod(x, 1), (CUBE,)),
    "ReduceSum": (lambda x: ops.ReduceSum()(x), (CUBE,)),
    "Reshape": (lambda x: ops.reshape(x, (-1, 2)), (CUBE,)),
    "ResizeBilinearV2": (lambda x: ops.interpolate(x, size=(4, 9), mode="bilinear"), (IMAGE,)),
    "ResizeNearestNeighborV2": (lambda x: ops.interpolate(x, size=(4, 9)), (IMAGE,)),
    "ReverseV2": (lambda x: ops.flip(x, (0, 1)), (CUBE,)),
    "Round": (lambda x: ops.round(x), (X * 9,)),
    "Select": (lambda c, x: ops.where(c, x, 2.0), (FLAGS, X)),
    "Softmax": (lambda x: ops.softmax(x, 1), (CUBE,)),
    "Split": (lambda x: ops.split(x, 2, 2), (CUBE,)),
    "Squeeze": (lambda x: ops.squeeze(x, 1), (numbers(2, 1, 3),)),
    "Stack": (lambda x, y: ops.stack([x, y], 1), (X, Y)),
    "StridedSlice": (lambda x: x[1:, ::2, -1], (CUBE,)),
    "Tile": (lambda x: ops.tile(x, (2, 1, 3)), (CUBE,)),
    "TopK": (lambda x: ops.TopK(sorted=True)(x, 2), (CUBE,)),
    "Transpose": (lambda x: ops.transpose(x, (2, 0, 1)), (CUBE,)),
    "Tril": (lambda x: ops.tril(x, 1), (CUBE,)),
    "Triu": (lambda x: ops.triu(x, -1), (CUBE,)),
    "Unstack": (lambda x: ops.unstack(x, 1), (CUBE,)),
}

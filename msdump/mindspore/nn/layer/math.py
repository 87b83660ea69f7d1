"""Layers that are functions of numbers and matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import as_tensor, call
from msdump.mindspore.names import publish
from msdump.mindspore.nn.cell import Cell
from msdump.mindspore.nn.declared import as_layer
from msdump.mindspore.ops import function as F
from msdump.mindspore.ops.layer_operators import clip_by_norm_of


class Range(Cell):
    """A constant: numbers from start to limit (or 0 to start), delta apart; int32 or float32."""

    def __init__(self, start: float, limit: float | None = None, delta: float = 1) -> None:
        super().__init__()
        if delta == 0:
            raise ValueError(f"For 'Range', the 'delta' can not be zero, but got {delta}.")
        numbers = np.arange(start, limit, delta)
        self.result_tensor = Tensor(numbers.astype(np.float32 if numbers.dtype.kind == "f" else np.int32))

    def construct(self) -> Tensor:
        return self.result_tensor


@as_layer()
def LGamma(x: Tensor) -> Any:
    """Logarithm of |gamma(x)|, as one operator."""
    return F.lgamma(x)


@as_layer()
def MatMul(x1: Tensor, x2: Tensor, *, transpose_x1: bool = False, transpose_x2: bool = False) -> Tensor:
    """Matrix product, with either operand transposed on the way; batches broadcast."""
    if x1.ndim == 2 and x2.ndim == 2:
        return call("MatMul", x1, x2, transpose_a=transpose_x1, transpose_b=transpose_x2)
    first = F.swapaxes(x1, -1, -2) if transpose_x1 and x1.ndim > 1 else x1
    second = F.swapaxes(x2, -1, -2) if transpose_x2 and x2.ndim > 1 else x2
    return F.matmul(first, second)


class Norm(Cell):
    """2-norm over axes, by default over all."""

    def __init__(self, axis: Any = (), keep_dims: bool = False) -> None:
        super().__init__()
        if not isinstance(keep_dims, bool):
            raise TypeError(f"For 'Norm', the type of 'keep_dims' must be bool, but got {type(keep_dims).__name__}.")
        self.axis, self.keep_dims = axis, keep_dims

    def construct(self, x: Tensor) -> Tensor:
        axes = self.axis if isinstance(self.axis, int) else tuple(self.axis)
        result = F.sqrt(F.sum(F.square(x), axes, True))
        return result if self.keep_dims else F.squeeze(result, None if axes == () else axes)

    def extend_repr(self) -> str:
        return f"axis={self.axis}, keep_dims={self.keep_dims}"


@as_layer()
def ClipByNorm(x: Tensor, clip_norm: Any, *, axis: Any = None) -> Any:
    """x, scaled down where its 2-norm exceeds a number."""
    return clip_by_norm_of(x, as_tensor(clip_norm, x.type_.dtype), axis)


@as_layer()
def Tril(x: Tensor, k: int = 0) -> Tensor:
    """x at and below diagonal k, 0 above."""
    mask = np.tril(np.ones(x.shape, np.float32), k)
    return F.cast(F.mul(F.cast(x, "float32"), Tensor(mask)), x.dtype)


@as_layer()
def Triu(x: Tensor, k: int = 0) -> Tensor:
    """x at and above diagonal k, 0 below."""
    mask = np.triu(np.ones(x.shape, np.float32), k)
    return F.cast(F.mul(F.cast(x, "float32"), Tensor(mask)), x.dtype)


publish(__name__)

"""Layers that are functions of numbers and matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from msdump.mindspore.common.dtype import float16
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import as_tensor, call
from msdump.mindspore.names import publish
from msdump.mindspore.nn.cell import Cell
from msdump.mindspore.nn.declared import as_layer
from msdump.mindspore.ops import function as F
from msdump.mindspore.ops.layer_operators import clip_by_norm_of
from msdump.mindspore.ops.primitive import functional_classes


@as_layer()
def ReduceLogSumExp(x: Tensor, *, axis: Any, keep_dims: bool = False) -> Tensor:
    """Logarithm of the sum of e ** x over axes."""
    largest = F.amax(x)
    total = F.sum(F.exp(F.sub(x, largest)), axis, keep_dims)
    return F.add(F.log(total), largest)


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
def DiGamma(x: Tensor) -> Any:
    """Derivative of lgamma, as one operator."""
    return F.digamma(x)


@as_layer()
def IGamma(a: Tensor, x: Tensor) -> Any:
    """Lower regularized incomplete gamma function, as one operator."""
    return F.igamma(a, x)


@as_layer()
def LBeta(x: Tensor, y: Tensor) -> Tensor:
    """Logarithm of the beta function."""
    return F.sub(F.add(F.lgamma(x), F.lgamma(y)), F.lgamma(F.add(x, y)))


@as_layer()
def MatMul(x1: Tensor, x2: Tensor, *, transpose_x1: bool = False, transpose_x2: bool = False) -> Tensor:
    """Matrix product, with either operand transposed on the way; batches broadcast."""
    if x1.ndim == 2 and x2.ndim == 2:
        return call("MatMul", x1, x2, transpose_a=transpose_x1, transpose_b=transpose_x2)
    first = F.swapaxes(x1, -1, -2) if transpose_x1 and x1.ndim > 1 else x1
    second = F.swapaxes(x2, -1, -2) if transpose_x2 and x2.ndim > 1 else x2
    return F.matmul(first, second)


class Moments(Cell):
    """(mean, variance) over axes."""

    def __init__(self, axis: Any = None, keep_dims: bool | None = None) -> None:
        super().__init__()
        self.axis, self.keep_dims = () if axis is None else axis, bool(keep_dims)

    def construct(self, x: Tensor) -> tuple[Tensor, Tensor]:
        wide = F.cast(x, "float32") if x.dtype == float16 else x
        axes = self.axis if isinstance(self.axis, int) or self.axis else tuple(range(x.ndim))
        mean = F.mean(wide, axes, True)
        variance = F.mean(F.square(F.sub(wide, F.stop_gradient(mean))), axes, True)
        if not self.keep_dims:
            mean, variance = F.squeeze(mean, axes), F.squeeze(variance, axes)
        return F.cast(mean, x.dtype), F.cast(variance, x.dtype)


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


class L1Regularizer(Cell):
    """scale times the sum of |weights|."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        if isinstance(scale, bool) or not isinstance(scale, int | float):
            raise TypeError(f"For 'L1Regularizer', the type of 'scale' must be int or float, but got {type(scale)}.")
        if scale <= 0 or not math.isfinite(scale):
            raise ValueError(f"For 'L1Regularizer', the 'scale' must be finite and > 0, but got {scale}.")
        self.scale = Tensor(np.float32(scale))

    def construct(self, weights: Tensor) -> Tensor:
        return F.mul(self.scale, F.sum(F.abs(weights)))


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


class Roll(Cell):
    """Elements moved along axes, those that fall off come in at the other end."""

    def __init__(self, shift: Any, axis: Any) -> None:
        super().__init__()
        self.shift = tuple(shift) if isinstance(shift, tuple | list) else (shift,)
        self.axis = tuple(axis) if isinstance(axis, tuple | list) else (axis,)
        if len(self.shift) != len(self.axis):
            raise ValueError(
                "For 'Roll', the shape of 'shift' and the shape of 'axis' must be the same, "
                f"but got the length of 'shift' {len(self.shift)} and of 'axis' {len(self.axis)}."
            )

    def construct(self, input_x: Tensor) -> Any:
        return F.roll(input_x, self.shift, self.axis)


@as_layer()
def MatrixDiag(input_x: Tensor) -> Tensor:
    """Matrices with the last axis as their diagonals."""
    size = input_x.shape[-1]
    return F.mul(F.expand_dims(input_x, -2), F.eye(size, size, input_x.dtype))


@as_layer()
def MatrixDiagPart(input_x: Tensor) -> Tensor:
    """The diagonals of matrices."""
    rows, columns = input_x.shape[-2:]
    kept = F.mul(input_x, F.eye(rows, columns, input_x.dtype))
    return F.sum(kept, -1 if rows <= columns else -2)


@as_layer()
def MatrixSetDiag(input_x: Tensor, diagonal: Tensor) -> Tensor:
    """Matrices with other diagonals."""
    rows, columns = input_x.shape[-2:]
    is_diagonal = Tensor(np.broadcast_to(np.eye(rows, columns, dtype=bool), input_x.shape))
    new = F.expand_dims(diagonal, -1 if rows <= columns else -2)
    return F.select(is_diagonal, F.broadcast_to(new, input_x.shape), input_x)


@as_layer()
def SparseToDense(sparse_tensor: Any) -> Any:
    """A COOTensor as a tensor."""
    dense = functional_classes["SparseToDense"]()
    return dense(sparse_tensor.indices, sparse_tensor.values, sparse_tensor.shape)


class Unflatten(Cell):
    """One axis as several."""

    def __init__(self, axis: int, unflattened_size: Any) -> None:
        super().__init__()
        if isinstance(axis, bool) or not isinstance(axis, int):
            raise TypeError(f"For 'Unflatten', the type of 'axis' must be int, but got {type(axis).__name__}.")
        if not isinstance(unflattened_size, tuple | list):
            raise TypeError(f"For 'Unflatten', 'unflattened_size' must be a tuple, but got {type(unflattened_size)}.")
        self.axis, self.unflattened_size = axis, tuple(unflattened_size)

    def construct(self, input_x: Tensor) -> Tensor:
        axis = self.axis % input_x.ndim
        return F.reshape(input_x, (*input_x.shape[:axis], *self.unflattened_size, *input_x.shape[axis + 1 :]))


publish(__name__)

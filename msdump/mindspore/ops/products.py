"""Products of vectors and matrices that are made of others."""

from __future__ import annotations

import math
from typing import Any

from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import as_tensor
from msdump.mindspore.names import publish
from msdump.mindspore.ops.arithmetic import add, matmul, mul
from msdump.mindspore.ops.array import expand_dims, reshape, transpose
from msdump.mindspore.ops.reductions import sum as _sum


def _scaled(factor: Any, tensor: Tensor) -> Tensor:
    return tensor if not isinstance(factor, Tensor) and factor == 1 else mul(tensor, factor)


def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * input + alpha * (mat1 @ mat2)."""
    return add(_scaled(beta, input), _scaled(alpha, matmul(mat1, mat2)))


def addmv(input: Tensor, mat: Tensor, vec: Tensor, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * input + alpha * (mat @ vec)."""
    return add(_scaled(beta, input), _scaled(alpha, mv(mat, vec)))


def addr(x: Tensor, vec1: Tensor, vec2: Tensor, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * x + alpha * outer(vec1, vec2)."""
    return add(_scaled(beta, x), _scaled(alpha, matmul(expand_dims(vec1, 1), expand_dims(vec2, 0))))


def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * input + alpha * (the sum of batch1[i] @ batch2[i])."""
    return add(_scaled(beta, input), _scaled(alpha, _sum(matmul(batch1, batch2), 0)))


def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * input + alpha * (batch1 @ batch2)."""
    return add(_scaled(beta, input), _scaled(alpha, matmul(batch1, batch2)))


def mv(mat: Tensor, vec: Tensor) -> Tensor:
    """A matrix times a vector."""
    if mat.ndim != 2 or vec.ndim != 1:
        raise ValueError(f"For 'mv', expected a matrix and a vector, but got shapes {mat.shape} and {vec.shape}.")
    return reshape(matmul(mat, expand_dims(vec, 1)), (-1,))


def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """All products of an element of either vector."""
    if input.ndim != 1 or vec2.ndim != 1:
        raise ValueError(f"For 'outer', expected two vectors, but got shapes {input.shape} and {vec2.shape}.")
    return mul(reshape(input, (-1, 1)), vec2)


def _contracted(first: Tensor, second: Tensor, axes1: list[int], axes2: list[int]) -> Tensor:
    """Products summed over axes: one MatMul between reshapes."""
    free1 = [axis for axis in range(first.ndim) if axis not in axes1]
    free2 = [axis for axis in range(second.ndim) if axis not in axes2]
    shape = [first.shape[axis] for axis in free1] + [second.shape[axis] for axis in free2]
    depth = math.prod(first.shape[axis] for axis in axes1)
    rows = reshape(_ordered(first, free1 + axes1), (math.prod(shape[: len(free1)]), depth))
    columns = reshape(_ordered(second, axes2 + free2), (depth, math.prod(shape[len(free1) :])))
    return reshape(matmul(rows, columns), shape)


def _ordered(tensor: Tensor, order: list[int]) -> Tensor:
    return tensor if order == sorted(order) else transpose(tensor, order)


def tensor_dot(x1: Tensor, x2: Tensor, axes: Any) -> Tensor:
    """Products summed over axes: the last so many of x1 and the first of x2, or those that a pair names."""
    if isinstance(axes, int):
        axes1, axes2 = list(range(x1.ndim - axes, x1.ndim)), list(range(axes))
    else:
        ones, twos = axes
        axes1 = [axis % x1.ndim for axis in ([ones] if isinstance(ones, int) else ones)]
        axes2 = [axis % x2.ndim for axis in ([twos] if isinstance(twos, int) else twos)]
    if [x1.shape[axis] for axis in axes1] != [x2.shape[axis] for axis in axes2]:
        raise ValueError(f"For 'tensor_dot', axes {axes} of shapes {x1.shape} and {x2.shape} must have the same sizes.")
    return _contracted(x1, x2, axes1, axes2)


def dot(input: Tensor, other: Tensor) -> Tensor:
    """Products summed over the last axis of input and the last but one of other; both have two axes or more."""
    if input.ndim < 2 or other.ndim < 2:
        raise ValueError(
            f"For 'dot', the inputs should have 'dimension >= 2', but got {input.ndim} and {other.ndim} dimensions."
        )
    return _contracted(input, other, [input.ndim - 1], [other.ndim - 2])


def inner(input: Tensor, other: Any) -> Tensor:
    """Products summed over the last axis of either; with a number all products."""
    second = as_tensor(other)
    if input.ndim == 0 or second.ndim == 0:
        return mul(input, second)
    return _contracted(input, second, [input.ndim - 1], [second.ndim - 1])


def kron(input: Tensor, other: Tensor) -> Tensor:
    """Blocks of `other`, one times each element of input."""
    rank = max(input.ndim, other.ndim)
    ones = (1,) * (rank - input.ndim) + input.shape
    twos = (1,) * (rank - other.ndim) + other.shape
    first = reshape(input, [size for one in ones for size in (one, 1)])
    second = reshape(other, [size for two in twos for size in (1, two)])
    return reshape(mul(first, second), [one * two for one, two in zip(ones, twos, strict=True)])


def batch_dot(x1: Tensor, x2: Tensor, axes: Any = None) -> Tensor:
    """Products of the items of two batches summed over an axis of each; the result has two axes at least."""
    if x1.ndim < 2 or x2.ndim < 2:
        raise ValueError(f"For 'batch_dot', expected two axes or more, but got shapes {x1.shape} and {x2.shape}.")
    if axes is None:
        axes = (x1.ndim - 1, 1 if x2.ndim == 2 else x2.ndim - 2)
    first, second = (axes, axes) if isinstance(axes, int) else axes
    axis1, axis2 = first % x1.ndim, second % x2.ndim
    if 0 in (axis1, axis2) or x1.shape[axis1] != x2.shape[axis2] or x1.shape[0] != x2.shape[0]:
        raise ValueError(f"For 'batch_dot', axes {axes} do not fit the shapes {x1.shape} and {x2.shape}.")
    free1 = [axis for axis in range(1, x1.ndim) if axis != axis1]
    free2 = [axis for axis in range(1, x2.ndim) if axis != axis2]
    batch, depth = x1.shape[0], x1.shape[axis1]
    rows = reshape(_ordered(x1, [0, *free1, axis1]), (batch, -1, depth))
    columns = reshape(_ordered(x2, [0, axis2, *free2]), (batch, depth, -1))
    shape = [batch, *(x1.shape[axis] for axis in free1), *(x2.shape[axis] for axis in free2)]
    return reshape(matmul(rows, columns), shape if len(shape) > 1 else (batch, 1))


publish(__name__)

"""Diagonals and triangles of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from msdump.mindspore.common.dtype import Type
from msdump.mindspore.common.dtype import int32 as _int32
from msdump.mindspore.common.dtype import int64 as _int64
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.names import publish
from msdump.mindspore.ops.array import eye, reshape, transpose, zeros
from msdump.mindspore.ops.declaration import operator
from msdump.mindspore.ops.primitive import operator_class

# -- triangles ---------------------------------------------------------------------------------------------------------


@operator("Tril")
def tril(torch: Any, input: Tensor, diagonal: int = 0) -> Any:
    """The part at and below a diagonal, zeros above."""
    return torch.tril(input, diagonal)


@operator("Triu")
def triu(torch: Any, input: Tensor, diagonal: int = 0) -> Any:
    """The part at and above a diagonal, zeros below."""
    return torch.triu(input, diagonal)


@operator("TrilIndices")
def _tril_indices(torch: Any, row: int, col: int, offset: int = 0, dtype: Type = _int32) -> Any:
    """Rows and columns of the places at and below a diagonal."""
    return torch.tril_indices(row, col, offset).to(dtype)


@operator("TriuIndices")
def _triu_indices(torch: Any, row: int, col: int, offset: int = 0, dtype: Type = _int32) -> Any:
    """Rows and columns of the places at and above a diagonal."""
    return torch.triu_indices(row, col, offset).to(dtype)


def tril_indices(row: int, col: int, offset: int = 0, *, dtype: Type = _int64) -> Any:
    """Rows and columns of the places at and below a diagonal."""
    return _tril_indices(row, col, offset, dtype)


def triu_indices(row: int, col: int, offset: int = 0, *, dtype: Type = _int64) -> Any:
    """Rows and columns of the places at and above a diagonal."""
    return _triu_indices(row, col, offset, dtype)


@operator("MatrixBandPart", init="")
def matrix_band_part(torch: Any, x: Tensor, lower: int, upper: int) -> Any:
    """So many diagonals below and above the main one, zeros elsewhere; a negative number keeps them all."""
    result = torch.tril(x, upper) if upper >= 0 else torch.clone(x)
    return torch.triu(result, -lower) if lower >= 0 else result


# -- diagonals ---------------------------------------------------------------------------------------------------------


@operator("Diag")
def diag(torch: Any, input: Tensor) -> Any:
    """A tensor of twice the axes with the elements on its diagonal."""
    return torch.reshape(torch.diag(torch.ravel(input)), input.shape * 2)


def _side(shape: tuple[int, ...]) -> tuple[int, int]:
    size = int(np.prod(shape[: len(shape) // 2], dtype=int))
    return size, size


@operator("DiagPart")
def _diag_part(torch: Any, x: Tensor) -> Any:
    """The diagonal of a tensor that repeats its axes: element i..., i... for each i...."""
    return torch.reshape(torch.diag(torch.reshape(x, _side(x.shape))), x.shape[: x.ndim // 2])


@operator("Diagonal")
def diagonal(torch: Any, input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """The diagonal of a plane, as the last axis."""
    return torch.diagonal(input, offset, dim1, dim2)


@operator("Trace")
def trace(torch: Any, input: Tensor) -> Any:
    """The sum of the diagonal of a matrix."""
    return torch.trace(input).to(input.dtype)


@operator("FillDiagonal")
def _fill_diagonal(torch: Any, input_x: Tensor, fill_value: float, wrap: bool = False) -> Any:
    """One value on the main diagonal; with `wrap` it begins again below in a tall matrix."""
    result = torch.clone(input_x)
    result.fill_diagonal_(fill_value, wrap)
    return result


def _span(k: Any) -> tuple[int, int]:
    bounds = k if isinstance(k, tuple) else (k,)
    return bounds[0], bounds[-1]


def _places(shape: Any, k: Any, align: str) -> Any:
    """For each diagonal from the highest down: its rows, its columns, and its place in a row of the longest one."""
    (rows, columns), (low, high) = shape[-2:], _span(k)
    lengths = {place: min(rows + min(place, 0), columns - max(place, 0)) for place in range(low, high + 1)}
    longest = max(lengths.values())
    above, below = align.split("_")
    for place in range(high, low - 1, -1):
        steps = np.arange(lengths[place])
        is_right = (above if place >= 0 else below) == "RIGHT"
        first = longest - lengths[place] if is_right else 0
        yield steps + max(-place, 0), steps + max(place, 0), slice(first, first + lengths[place])


def _laid(result: Any, diagonals: Any, k: Any, align: str) -> Any:
    low, high = _span(k)
    for number, (rows, columns, own) in enumerate(_places(result.shape, k, align)):
        source = diagonals[..., number, :] if high > low else diagonals
        result[..., rows, columns] = source[..., own]
    return result


@operator("MatrixSetDiagV3", init="align")
def matrix_set_diag(torch: Any, x: Tensor, diagonal: Tensor, k: Any = 0, align: str = "RIGHT_LEFT") -> Any:
    """Matrices with other diagonals k."""
    return _laid(torch.clone(x), diagonal, k, align)


def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Matrices in the plane of two axes, with the last axis of the input as a diagonal."""
    size, rank = input.shape[-1] + abs(offset), input.ndim + 1
    first, second = dim1 % rank, dim2 % rank
    if first == second:
        raise ValueError("For 'diag_embed', 'dim1' must not be identical to 'dim2'.")
    matrices = matrix_set_diag(zeros((*input.shape[:-1], size, size), input.dtype), input, offset)
    order = list(range(rank - 2))
    for place, axis in sorted([(first, rank - 2), (second, rank - 1)]):
        order.insert(place, axis)
    return transpose(matrices, order) if order != list(range(rank)) else matrices


def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """A matrix with all elements on a diagonal."""
    return diag_embed(reshape(input, (-1,)), offset)


@operator_class("Eye")
def _eye(n: int, m: int, t: Type) -> Tensor:
    return eye(n, m, t)


publish(__name__)

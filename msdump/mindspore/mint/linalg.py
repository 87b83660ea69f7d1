"""`mindspore.mint.linalg`."""

from __future__ import annotations

from typing import Any

from msdump.mindspore.common.dtype import Type
from msdump.mindspore.common.signatures import in_forms
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.names import explain_missing, publish
from msdump.mindspore.ops import function as F

_TABLE = """
    inv:inverse input
    norm A ord=None dim=None keepdim=False | dtype=None
    qr A mode='reduced'
"""

globals().update(in_forms(_TABLE, vars(F), __name__))


def matrix_norm(
    A: Tensor, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Type | None = None
) -> Any:
    """Norm of matrices over two axes."""
    return F.norm(A, ord, tuple(dim), keepdim, dtype=dtype)


def vector_norm(x: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Type | None = None) -> Any:
    """Norm of vectors over axes; of all elements without any."""
    if dim is None:
        flat = F.norm(F.reshape(x, (-1,)), ord, 0, dtype=dtype)
        return F.reshape(flat, (1,) * x.ndim) if keepdim else flat
    if isinstance(dim, int):
        return F.norm(x, ord, dim, keepdim, dtype=dtype)
    axes = tuple(axis % x.ndim for axis in dim)
    kept = tuple(axis for axis in range(x.ndim) if axis not in axes)
    moved = F.reshape(F.permute(x, (*kept, *axes)), (*(x.shape[axis] for axis in kept), -1))
    result = F.norm(moved, ord, -1, dtype=dtype)
    return (
        F.reshape(result, tuple(1 if axis in axes else size for axis, size in enumerate(x.shape)))
        if keepdim
        else result
    )


publish(__name__)

__getattr__ = explain_missing(__name__)

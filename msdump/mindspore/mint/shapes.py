"""Functions of `mindspore.mint` that pick, write and arrange elements."""

from __future__ import annotations

from typing import Any

from msdump.mindspore.common.signatures import in_forms
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.names import publish
from msdump.mindspore.ops import function as F
from msdump.mindspore.ops.own_methods import index_add as _index_add

globals().update(in_forms("gather:gather_elements input dim index", vars(F), __name__))


def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Axes from one to another as one axis."""
    first, last = (dim + input.ndim if dim < 0 else dim for dim in (start_dim, end_dim))
    if not input.ndim:
        return F.reshape(input, (1,))
    if not 0 <= first <= last < input.ndim:
        raise ValueError(f"For 'flatten', 'start_dim' {start_dim} and 'end_dim' {end_dim} fit no {input.ndim} axes.")
    count = 1
    for size in input.shape[first : last + 1]:
        count *= size
    return F.reshape(input, (*input.shape[:first], count, *input.shape[last + 1 :]))


def squeeze(input: Tensor, dim: Any) -> Tensor:
    """Without axes of size 1; another axis stays."""
    dims = dim if isinstance(dim, tuple | list) else (dim,)
    gone = tuple(each for each in dims if input.shape[each] == 1)
    return F.squeeze(input, gone) if gone else input


def scatter(input: Tensor, dim: int, index: Tensor, src: Any) -> Any:
    """Elements of `src`, or one number, written to places along an axis; `src` may be larger than the index."""
    if not isinstance(src, Tensor):
        src = F.full(index.shape, src, dtype=input.dtype)
    return F.tensor_scatter_elements(input, index, _as_large(src, index), dim)


def _as_large(src: Tensor, index: Tensor) -> Tensor:
    return src if src.shape == index.shape else src[tuple(slice(0, size) for size in index.shape)]


def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Any:
    """Elements added at places along an axis; `src` may be larger than the index."""
    return F.tensor_scatter_elements(input, index, _as_large(src, index), dim, "add")


def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Any:
    """Slices of `source`, times alpha, added to those of the index."""
    return _index_add(input, dim, index, source, alpha=alpha)


def select(input: Tensor, dim: int, index: int) -> Tensor:
    """One slice of an axis, without the axis."""
    place = index + input.shape[dim] if index < 0 else index
    return F.squeeze(F.narrow(input, dim, place, 1), dim)


def take(input: Tensor, index: Tensor) -> Tensor:
    """Elements of the flat tensor at places."""
    flat = F.reshape(input, (-1,))
    return F.gather(flat, F.where(F.less(index, 0), F.add(index, flat.size), index), 0)


def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """The matrix with a diagonal; of a matrix the diagonal."""
    if input.ndim not in (1, 2):
        raise ValueError(f"For 'diag', the rank of 'input' must be 1 or 2, but got {input.ndim}.")
    return F.diag_embed(input, diagonal) if input.ndim == 1 else F.diagonal(input, diagonal)


def repeat_interleave(input: Tensor, repeats: Any, dim: int | None = None, *, output_size: int | None = None) -> Tensor:
    """Each element so often along an axis, of the flat tensor without one."""
    if dim is None:
        input, dim = F.reshape(input, (-1,)), 0
    result = F.repeat_interleave(input, repeats, dim)
    if output_size is not None and result.shape[dim] != output_size:
        raise ValueError(f"For 'repeat_interleave', expected output_size {result.shape[dim]}, got {output_size}.")
    return result


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """1 at the class of each element, 0 elsewhere.

    Edges: without a number of classes the greatest class decides it, which a graph cannot.
    """
    if num_classes == -1:
        greatest = F.amax(tensor)
        num_classes = int(greatest._concrete("the number of classes", "Give num_classes")) + 1
    return F.cast(F.one_hot(tensor, num_classes, 1.0, 0.0, -1), tensor.dtype)


publish(__name__)

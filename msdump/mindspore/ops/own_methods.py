"""Methods of Tensor whose arguments are not those of a function of `mindspore.ops`; the tensor is the first one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from msdump.mindspore.common.dtype import Type, dtype_name, int32
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.common.tensor_data import as_shape
from msdump.mindspore.dispatch import as_tensor, cast, execute, promoted
from msdump.mindspore.names import publish
from msdump.mindspore.ops import (
    arithmetic,
    arrangement,
    array,
    linear_algebra,
    network,
    reductions,
    scatter,
    selection,
    spectral,
    triangles,
)
from msdump.tensors import dtypes

# -- shapes ------------------------------------------------------------------------------------------------------------


def permute(self: Tensor, *axis: Any) -> Tensor:
    """Axes in another order."""
    return arrangement.permute(self, as_shape(axis))


def expand_as(self: Tensor, x: Tensor) -> Tensor:
    """Repeated to the shape of x."""
    return array.broadcast_to(self, x.shape)


def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """The same elements under the shape of another tensor."""
    return array.reshape(self, other.shape)


view_as = reshape_as


def repeat(self: Tensor, repeats: Any, axis: int | None = None, *more: int) -> Tensor:
    """Each element so often along an axis, without one of all elements, as numpy.repeat.

    Edges: several numbers that fit no axis repeat the whole tensor along each axis, as from MindSpore 2.5 on.
    """
    if more:
        return array.tile(self, (repeats, axis or 0, *more))
    size = self.size if axis is None else self.shape[axis]
    if isinstance(repeats, tuple | list) and len(repeats) not in (1, size) and axis is None:
        return array.tile(self, repeats)
    return arrangement.repeat_interleave(self, repeats, axis)


def resize(self: Tensor, *new_shape: Any) -> Tensor:
    """The first elements under a shape, zeros behind them."""
    shape = as_shape(new_shape)
    count, flat = int(np.prod(shape, dtype=int)), array.reshape(self, (-1,))
    if count <= self.size:
        return array.reshape(array.strided_slice(flat, (0,), (count,), (1,)), shape)
    return array.reshape(array.concat([flat, array.zeros((count - self.size,), self.dtype)]), shape)


def diagonal(self: Tensor, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """The diagonal of a plane, as the last axis."""
    return triangles.diagonal(self, offset, axis1, axis2)


def add(self: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """self + alpha * other, broadcast."""
    first, second = promoted(self, other)
    return arithmetic.add(first, second if alpha == 1 else arithmetic.mul(second, alpha))


def sub(self: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """self - alpha * other, broadcast."""
    first, second = promoted(self, other)
    return arithmetic.sub(first, second if alpha == 1 else arithmetic.mul(second, alpha))


def cumsum(self: Tensor, axis: int | None = None, dtype: Type | None = None) -> Tensor:
    """Sums of the elements up to each one along an axis, without one of all elements in a row; int32 of less."""
    if dtype is None and self.type_.dtype in ("bool", "uint8", "int8", "int16"):
        dtype = int32
    return reductions.cumsum(array.reshape(self, (-1,)) if axis is None else self, 0 if axis is None else axis, dtype)


def _mT(self: Tensor) -> Tensor:
    return array.swapaxes(self, self.ndim - 2, self.ndim - 1)


# -- dtypes and what it is ---------------------------------------------------------------------------------------------


def is_signed(self: Tensor) -> Any:
    """Whether its dtype has negative numbers."""
    return dtypes.dtype(self.type_.dtype).kind not in (dtypes.BOOL, dtypes.UINT)


def ndimension(self: Tensor) -> Any:
    """The number of axes."""
    return self.ndim


def nelement(self: Tensor) -> Any:
    """The number of elements."""
    return self.size


def _strides(self: Tensor) -> Any:
    """Bytes from one element to the next along each axis."""
    steps = [self.itemsize]
    for size in reversed(self.shape[1:]):
        steps.append(steps[-1] * size)
    return tuple(reversed(steps)) if self.ndim else ()


def value(self: Tensor) -> Tensor:
    """The tensor as it is now: of a parameter a copy."""
    return self.copy()


def new_ones(self: Tensor, size: Any, dtype: Type | None = None) -> Tensor:
    """Ones of the same dtype."""
    return array.ones(size, dtype or self.dtype)


def new_zeros(self: Tensor, size: Any, dtype: Type | None = None) -> Tensor:
    """Zeros of the same dtype."""
    return array.zeros(size, dtype or self.dtype)


def fill(self: Tensor, value: Any) -> Tensor:
    """A tensor of the same shape and dtype with one value."""
    return array.full(self.shape, value.item() if isinstance(value, Tensor) else value, dtype=self.dtype)


fills = fill


def fill_diagonal(self: Tensor, fill_value: Any, wrap: Any = False) -> Any:
    """One value on the main diagonal; with `wrap` it begins again below in a tall matrix."""
    return triangles._fill_diagonal(self, fill_value, wrap)


def new_full(self: Tensor, size: Any, fill_value: Any, *, dtype: Type | None = None) -> Tensor:
    """A tensor of one value, in the dtype of this one unless another is named."""
    return array.full(as_shape((size,)), fill_value, dtype=dtype or self.dtype)


def new_empty(self: Tensor, *size: Any, dtype: Type | None = None, device: Any = None) -> Tensor:
    """A tensor of zeros, in the dtype of this one unless another is named."""
    return array.zeros(as_shape(size), dtype or self.dtype)


def softmax(self: Tensor, dim: int, dtype: Type | None = None) -> Tensor:
    """Softmax along an axis, computed in `dtype` where one is named."""
    return network.softmax(self, dim, dtype=dtype)


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """In the dtype of another tensor."""
    return cast(self, other.type_.dtype)


def contiguous(self: Tensor) -> Tensor:
    """The tensor itself: its elements lie one after the other."""
    return self


def is_contiguous(self: Tensor) -> bool:
    """True."""
    return True


def assign_value(self: Tensor, value: Tensor) -> Tensor:
    """Give a concrete tensor other data of the same shape and dtype, in place."""
    self[...] = value
    return self


# -- picking and writing -----------------------------------------------------------------------------------------------


def select(self: Tensor, condition: Any, y: Any) -> Tensor:
    """This tensor where the condition holds, y elsewhere; with two numbers a slice of an axis, as from 2.5 on."""
    if isinstance(condition, int) and not isinstance(condition, bool):
        return array.gather(self, as_tensor(y % self.shape[condition], "int32"), condition)
    return arithmetic.select(condition, self, as_tensor(y, None if isinstance(y, Tensor) else self.type_.dtype))


where = select


def gather(
    self: Tensor, input_indices: Any = None, axis: Any = 0, batch_dims: int = 0, *, dim: Any = None, index: Any = None
) -> Tensor:
    """Slices along an axis, at the indices; with (dim, index) one element per index, as from MindSpore 2.5 on."""
    if isinstance(input_indices, int):
        dim, index = input_indices, axis if index is None else index
    if dim is not None:
        return array.gather_elements(self, dim, index)
    return array.gather(self, input_indices, axis, batch_dims)


def take(self: Tensor, indices: Any, axis: Any = None, mode: str = "clip") -> Tensor:
    """Slices along an axis, or elements of all; indices outside count as the nearest ("clip") or go around ("wrap")."""
    tensor, axis = (array.reshape(self, (-1,)), 0) if axis is None else (self, axis)
    size, places = tensor.shape[axis], as_tensor(indices)
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f"For 'Tensor.take', the 'mode' must be raise, wrap or clip, but got {mode!r}.")
    if mode == "wrap":
        places = places % size
    elif mode == "clip":
        places = arithmetic.minimum(arithmetic.maximum(places, 0), size - 1)
    return array.gather(tensor, places, axis)


def searchsorted(self: Tensor, v: Any, side: str = "left", sorter: Tensor | None = None) -> Any:
    """Where values would stand in sorted rows; int32."""
    return selection.searchsorted(self, v, out_int32=True, side=side, sorter=sorter)


def index_add(self: Tensor, dim: Any, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Any:
    """A copy with `alpha * source` added to slices along an axis."""
    return scatter._index_add_ext(self, index, source, dim, alpha)


def index_put(self: Tensor, indices: Sequence[Tensor], values: Tensor, accumulate: Any = False) -> Any:
    """A copy with values written, or added, at self[indices]."""
    return scatter._index_put(self, values, indices, int(accumulate))


def _scattered(function: Callable[..., Any], reduction: str = "") -> Callable[..., Any]:
    """(indices, updates): slices at coordinates; with `reduction` also (dim, index, src): elements along an axis."""

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        if reduction and (len(args) > 2 or "src" in kwargs):
            dim, index, src = (*args, *kwargs.values())
            return scatter.tensor_scatter_elements(self, index, src, dim, reduction)
        return function(self, *args, **kwargs)

    method.__doc__ = function.__doc__
    return method


scatter_add, scatter_sub = _scattered(scatter.tensor_scatter_add, "add"), _scattered(scatter.tensor_scatter_sub)
scatter_mul, scatter_div = _scattered(scatter.tensor_scatter_mul), _scattered(scatter.tensor_scatter_div)
scatter_max, scatter_min = _scattered(scatter.tensor_scatter_max), _scattered(scatter.tensor_scatter_min)

# -- reductions --------------------------------------------------------------------------------------------------------


def _extreme(name: str) -> Callable[..., Any]:
    values, both = getattr(reductions, f"a{name}"), getattr(reductions, name)

    def method(
        self: Tensor, axis: Any = None, keepdims: Any = False, *, initial: Any = None, where: Any = True,
        return_indices: Any = False, dim: Any = None, keepdim: Any = False,
    ) -> Any:  # fmt: skip
        where = None if where is True else where
        if return_indices or dim is not None:
            along, is_kept = axis if dim is None else dim, keepdims or keepdim
            return both(self, along, is_kept, initial=initial, where=where)
        return values(self, axis, keepdims, initial=initial, where=where)

    method.__doc__ = f"The {name}imum over axes; with return_indices, or with `dim`, a pair with its places."
    return method


max, min = _extreme("max"), _extreme("min")


def argmax_with_value(self: Tensor, axis: Any = 0, keep_dims: Any = False) -> Any:
    """The largest elements along an axis, and their places."""
    places, values = execute("ArgMaxWithValue", [self], {"axis": axis, "keep_dims": keep_dims})
    return values, places


def argmin_with_value(self: Tensor, axis: Any = 0, keep_dims: Any = False) -> Any:
    """The smallest elements along an axis, and their places."""
    places, values = execute("ArgMinWithValue", [self], {"axis": axis, "keep_dims": keep_dims})
    return values, places


def ptp(self: Tensor, axis: Any = None, keepdims: Any = False) -> Tensor:
    """The largest less the smallest element."""
    return arithmetic.sub(reductions.amax(self, axis, keepdims), reductions.amin(self, axis, keepdims))


def trace(self: Tensor, offset: Any = 0, axis1: Any = 0, axis2: Any = 1, dtype: Type | None = None) -> Any:
    """The sum of a diagonal of a plane."""
    tensor = self if dtype is None else cast(self, dtype_name(dtype))
    if (offset, axis1, axis2, tensor.ndim) == (0, 0, 1, 2):
        return triangles.trace(tensor)
    return reductions.sum(triangles.diagonal(tensor, offset, axis1, axis2), -1)


def qr(self: Tensor, some: Any = True) -> Any:
    """An orthogonal and an upper triangular factor; some=False: the orthogonal one is square."""
    return linear_algebra.qr(self, "reduced" if some else "complete")


# Methods that cast -> dtypes.
CASTS = {
    "bool": "bool", "byte": "uint8", "short": "int16", "int": "int32", "long": "int64", "half": "float16",
    "bfloat16": "bfloat16", "float": "float32", "double": "float64",
}  # fmt: skip
# Members that are read without a call. No initializer is ever still to run.
PROPERTIES: dict[str, Callable[[Tensor], Any]] = {
    "H": spectral.adjoint,
    "mH": spectral.adjoint,
    "mT": _mT,
    "strides": _strides,
    "has_init": lambda self: False,
}

publish(__name__, "view_as", "fills", "where")

"""Tensors of data, of ranges and of constants. Whole numbers are int32 and others float32 unless a dtype says more."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

import numpy as _np

from msdump.mindspore.common.dtype import Type, dtype_name, float32, int32
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.names import publish
from msdump.mindspore.ops import function as F
from msdump.mindspore.ops.primitive import bound_arguments
from msdump.tensors import dtypes as _dtypes

_NARROW = {_np.dtype(_np.int64): _np.int32, _np.dtype(_np.float64): _np.float32}


def _constant(values: Any, dtype: Any = None) -> Tensor:
    """A tensor of an array of numpy, whose int64 and float64 become int32 and float32 when no dtype is given."""
    data = _np.asarray(values)
    target = _NARROW.get(data.dtype, data.dtype) if dtype is None else _dtypes.dtype(dtype_name(dtype)).numpy
    return Tensor.of_array(_np.ascontiguousarray(data.astype(target)).reshape(data.shape))


def array(obj: Any, dtype: Type | None = None, copy: bool = True, ndmin: int = 0) -> Tensor:
    """A tensor of data."""
    if isinstance(obj, list | tuple) and any(isinstance(item, Tensor) for item in obj):
        tensor = F.stack([item if isinstance(item, Tensor) else _constant(item) for item in obj])
    else:
        tensor = obj if isinstance(obj, Tensor) else _constant(obj, dtype)
    tensor = tensor if dtype is None else F.cast(tensor, dtype)
    while tensor.ndim < ndmin:
        tensor = F.expand_dims(tensor, 0)
    return F.cast(F.mul(tensor, 1), tensor.dtype) if copy and tensor is obj else tensor


def asarray(a: Any, dtype: Type | None = None) -> Tensor:
    """A tensor of data; a tensor is itself."""
    return array(a, dtype, copy=False)


def _of_ops(
    name: str, function: Callable[..., Any], parameters: str, make: Callable[[Any], Tensor] = asarray, **defaults: Any
) -> Any:
    """numpy's function `name`, by one of `mindspore.ops` on its arguments in their order.

    parameters  numpy's names of them; `make` makes a tensor of the first
    defaults    where numpy has others
    """
    own = inspect.signature(function).parameters.values()
    renamed = [each.replace(name=other) for each, other in zip(own, parameters.split(), strict=False)]
    signature = inspect.Signature([each.replace(default=defaults.get(each.name, each.default)) for each in renamed])

    def made(*args: Any, **kwargs: Any) -> Any:
        first, *others = bound_arguments(name, signature, args, kwargs).values()
        return function(make(first), *others)

    shown: Any = made
    shown.__name__ = shown.__qualname__ = name
    shown.__doc__, shown.__signature__ = function.__doc__, signature
    shown.__module__ = sys._getframe(1).f_globals["__name__"]  # public where it is made
    return made


def asfarray(a: Any, dtype: Type = float32) -> Tensor:
    """A tensor of data in a float dtype."""
    return array(a, dtype, copy=False)


def ones(shape: Any, dtype: Type = float32) -> Tensor:
    """A tensor of ones."""
    return _constant(_np.ones(shape), dtype)


def zeros(shape: Any, dtype: Type = float32) -> Tensor:
    """A tensor of zeros."""
    return _constant(_np.zeros(shape), dtype)


empty = zeros


def full(shape: Any, fill_value: Any, dtype: Type | None = None) -> Tensor:
    """A tensor of one value."""
    if isinstance(fill_value, Tensor):
        return F.broadcast_to(fill_value if dtype is None else F.cast(fill_value, dtype), _shape(shape))
    return _constant(_np.full(shape, fill_value), dtype)


def _shape(shape: Any) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


def ones_like(a: Any, dtype: Type | None = None, shape: Any = None) -> Tensor:
    """Ones in the shape and dtype of another tensor."""
    return full_like(a, 1, dtype, shape)


def zeros_like(a: Any, dtype: Type | None = None, shape: Any = None) -> Tensor:
    """Zeros in the shape and dtype of another tensor."""
    return full_like(a, 0, dtype, shape)


def empty_like(prototype: Any, dtype: Type | None = None, shape: Any = None) -> Tensor:
    """As `zeros_like`."""
    return full_like(prototype, 0, dtype, shape)


def full_like(a: Any, fill_value: Any, dtype: Type | None = None, shape: Any = None) -> Tensor:
    """One value in the shape and dtype of another tensor."""
    tensor = asarray(a)
    return full(tensor.shape if shape is None else shape, fill_value, dtype or tensor.dtype)


def arange(start: Any, stop: Any = None, step: Any = None, dtype: Type | None = None) -> Tensor:
    """Numbers at even distances, without the last."""
    first, last = (0, start) if stop is None else (start, stop)
    return _constant(_np.arange(first, last, 1 if step is None else step), dtype)


def eye(N: int, M: int | None = None, k: int = 0, dtype: Type = float32) -> Tensor:
    """Ones on a diagonal."""
    return _constant(_np.eye(N, M, k), dtype)


def identity(n: int, dtype: Type = float32) -> Tensor:
    """The unit matrix."""
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Type = float32) -> Tensor:
    """Ones at and below a diagonal."""
    return _constant(_np.tri(N, M, k), dtype)


def linspace(
    start: float, stop: float, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None,
    axis: int = 0,
) -> Any:  # fmt: skip
    """Evenly spaced numbers; with `retstep` their distance, too."""
    values, step = _np.linspace(start, stop, num, endpoint, retstep=True, axis=axis)
    made = _constant(values, dtype or float32)
    return (made, float(step)) if retstep else made


def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: float = 10.0, dtype: Any = None, axis: int = 0
) -> Tensor:
    """The powers of `base` whose exponents are evenly spaced."""
    return _constant(_np.logspace(start, stop, num, endpoint, base, axis=axis), dtype or float32)


def _window(name: str) -> Callable[[int], Tensor]:
    def window(M: int) -> Tensor:
        return _constant(getattr(_np, name)(M), float32)

    window.__name__ = name
    window.__doc__ = f"The {name} window of M numbers."
    return window


bartlett, blackman, hamming, hanning = map(_window, ("bartlett", "blackman", "hamming", "hanning"))


def indices(dimensions: Any, dtype: Type = int32, sparse: bool = False) -> Any:
    """Indices of a grid: one tensor, or with `sparse` one for each axis."""
    if sparse:
        return tuple(_constant(each, dtype) for each in _np.indices(dimensions, sparse=True))
    return _constant(_np.indices(dimensions), dtype)


def _all(arrays: Any) -> tuple[Tensor, ...]:
    return tuple(_constant(each) for each in arrays)


def diag_indices(n: int, ndim: int = 2) -> tuple[Tensor, ...]:
    """Places of the main diagonal."""
    return _all(_np.diag_indices(n, ndim))


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Tensor, ...]:
    """Places of the lower triangle."""
    return _all(_np.tril_indices(n, k, m))


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Tensor, ...]:
    """Places of the upper triangle."""
    return _all(_np.triu_indices(n, k, m))


def tril_indices_from(arr: Tensor, k: int = 0) -> tuple[Tensor, ...]:
    """Places of the lower triangle of a matrix."""
    return tril_indices(arr.shape[-2], k, arr.shape[-1])


def triu_indices_from(arr: Tensor, k: int = 0) -> tuple[Tensor, ...]:
    """Places of the upper triangle of a matrix."""
    return triu_indices(arr.shape[-2], k, arr.shape[-1])


def ix_(*args: Any) -> tuple[Tensor, ...]:
    """An open grid of sequences."""
    count = len(args)
    return tuple(
        F.reshape(asarray(each), tuple(-1 if axis == place else 1 for axis in range(count)))
        for place, each in enumerate(args)
    )


def rand(*shape: int, dtype: Type = float32) -> Tensor:
    """In [0, 1); one number without a shape."""
    return F.rand(*(shape or (1,)), dtype=dtype)


def randn(*shape: int, dtype: Type = float32) -> Tensor:
    """Mean 0, standard deviation 1; one number without a shape."""
    return F.randn(*(shape or (1,)), dtype=dtype)


def randint(minval: int, maxval: int | None = None, shape: Any = None, dtype: Type = int32) -> Tensor:
    """In [minval, maxval), or in [0, minval)."""
    low, high = (0, minval) if maxval is None else (minval, maxval)
    return F.randint(low, high, () if shape is None else _shape(shape), dtype=dtype)


publish(__name__)

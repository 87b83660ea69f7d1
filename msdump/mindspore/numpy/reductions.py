"""Sums, means, products and other values of whole axes."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any

from msdump.mindspore.common.dtype import Type, bool_, float32, float_type, int8, int16, int32, int_type, uint8
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.names import publish
from msdump.mindspore.numpy.creation import _of_ops, asarray, full_like, zeros_like
from msdump.mindspore.numpy.elements import isnan
from msdump.mindspore.ops import function as F


def _axes(axis: Any) -> Any:
    return tuple(axis) if isinstance(axis, list) else axis


def _float(a: Any) -> Tensor:
    tensor = asarray(a)
    return tensor if tensor.dtype in float_type else F.cast(tensor, float32)


def _whole(a: Any) -> Type | None:
    """The dtype of integers; None for others."""
    dtype = asarray(a).dtype
    return dtype if dtype in int_type else None


def _in(result: Any, dtype: Type | None) -> Any:
    return result if dtype is None else F.cast(result, dtype)


def sum(a: Any, axis: Any = None, dtype: Type | None = None, keepdims: bool = False, initial: Any = None) -> Any:
    """Sum of elements, from `initial` on."""
    total = _in(F.sum(asarray(a), _axes(axis), keepdims), dtype)
    return total if initial is None else F.add(total, initial)


def mean(a: Any, axis: Any = None, keepdims: bool = False, dtype: Type | None = None) -> Any:
    """Mean of elements; of whole numbers a whole number, without what is behind the point."""
    return _in(F.mean(_float(a), _axes(axis), keepdims), dtype or _whole(a))


def _extreme(name: str, function: str, pairwise: str) -> Callable[..., Any]:
    def extreme(a: Any, axis: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True) -> Any:
        x = asarray(a)
        if where is not True:
            if initial is None:
                raise ValueError(f"For '{name}', initial value must be provided for where masks.")
            x = F.select(asarray(where), x, full_like(x, initial))
        result = getattr(F, function)(x, _axes(axis), keepdims)
        return result if initial is None else getattr(F, pairwise)(result, initial)

    extreme.__name__ = extreme.__qualname__ = name
    extreme.__doc__ = getattr(F, function).__doc__
    return extreme


amax = max = _extreme("amax", "amax", "maximum")
amin = min = _extreme("amin", "amin", "minimum")


var = _of_ops("var", F.var, "x axis ddof keepdims", _float)
std = _of_ops("std", F.std, "x axis ddof keepdims", _float)
norm = _of_ops("norm", F.norm, "x ord axis keepdims", _float)
argmax = _of_ops("argmax", F.argmax, "a axis")
sometrue = _of_ops("sometrue", F.any, "a axis keepdims")


def count_nonzero(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """How many elements are not zero."""
    return F.sum(F.cast(F.not_equal(asarray(x), 0), "int32"), _axes(axis), keepdims)


def ptp(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Largest minus smallest element."""
    return F.sub(amax(x, axis, keepdims), amin(x, axis, keepdims))


def average(x: Any, axis: Any = None, weights: Any = None, returned: bool = False) -> Any:
    """Weighted mean; with `returned` the sum of the weights, too."""
    data = _float(x)
    factor = full_like(data, 1) if weights is None else F.cast(asarray(weights), data.dtype)
    if factor.shape != data.shape:
        shape = [1] * data.ndim
        shape[axis] = factor.shape[0]
        factor = F.broadcast_to(F.reshape(factor, tuple(shape)), data.shape)
    total = F.sum(factor, _axes(axis))
    result = F.div(F.sum(F.mul(data, factor), _axes(axis)), total)
    result = _in(result, _whole(x) if weights is None else None)
    return (result, total) if returned else result


def argmin(a: Any, axis: int | None = None) -> Any:
    """Index of the smallest element; int32."""
    x = asarray(a)
    return F.argmin(F.cast(x, "uint8") if x.dtype == bool_ else x, axis)


def _running(function: str) -> Callable[..., Any]:
    def running(a: Any, axis: int | None = None, dtype: Type | None = None) -> Any:
        x = asarray(a)
        x = F.reshape(x, (-1,)) if axis is None else x
        if function == "cumsum" and dtype is None and x.dtype in (bool_, uint8, int8, int16):
            x = F.cast(x, int32)
        return _in(getattr(F, function)(x, 0 if axis is None else axis), dtype)

    running.__name__ = running.__qualname__ = function
    running.__doc__ = getattr(F, function).__doc__
    return running


cumsum, cumprod = _running("cumsum"), _running("cumprod")


# -- without NaN -------------------------------------------------------------------------------------------------------


def _filled(a: Any, value: float) -> Tensor:
    x = asarray(a)
    return F.select(isnan(x), full_like(x, value), x) if x.dtype in float_type else x


def nansum(a: Any, axis: Any = None, dtype: Type | None = None, keepdims: bool = False) -> Any:
    """Sum, NaN as zero."""
    return sum(_filled(a, 0.0), axis, dtype, keepdims)


def nancumsum(a: Any, axis: int | None = None, dtype: Type | None = None) -> Any:
    """Running sum, NaN as zero."""
    return cumsum(_filled(a, 0.0), axis, dtype)


def _count(a: Any, axis: Any, keepdims: bool) -> Any:
    return F.sum(F.cast(F.logical_not(isnan(a)), float32), _axes(axis), keepdims)


def nanmean(a: Any, axis: Any = None, dtype: Type | None = None, keepdims: bool = False) -> Any:
    """Mean of elements that are not NaN."""
    return _in(F.div(nansum(a, axis, None, keepdims), _count(a, axis, keepdims)), dtype)


def nanvar(a: Any, axis: Any = None, dtype: Type | None = None, ddof: int = 0, keepdims: bool = False) -> Any:
    """Variance of elements that are not NaN.   Source: MindSpore 2.0 and 2.7: float32 unless `dtype` is another."""
    x = _float(a)
    away = F.square(F.sub(x, nanmean(x, axis, None, True)))
    return _in(F.div(nansum(away, axis, None, keepdims), F.sub(_count(x, axis, keepdims), ddof)), dtype or float32)


def nanstd(a: Any, axis: Any = None, dtype: Type | None = None, ddof: int = 0, keepdims: bool = False) -> Any:
    """Root of `nanvar`."""
    return F.sqrt(nanvar(a, axis, dtype, ddof, keepdims))


def nanmax(a: Any, axis: Any = None, dtype: Type | None = None, keepdims: bool = False) -> Any:
    """Largest element that is not NaN."""
    return _in(amax(_filled(a, -float("inf")), axis, keepdims), dtype)


def nanmin(a: Any, axis: Any = None, dtype: Type | None = None, keepdims: bool = False) -> Any:
    """Smallest element that is not NaN."""
    return _in(amin(_filled(a, float("inf")), axis, keepdims), dtype)


# -- of two ------------------------------------------------------------------------------------------------------------


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    """Whether two tensors have the same shape and elements."""
    first, second = asarray(a1), asarray(a2)
    if first.shape != second.shape:
        return asarray(False)
    same = F.equal(first, second)
    if equal_nan:
        same = F.logical_or(same, F.logical_and(isnan(first), isnan(second)))
    return F.all(same)


def dot(a: Any, b: Any) -> Any:
    """Products along the last axis of a and the one before the last of b."""
    first, second = asarray(a), asarray(b)
    if first.ndim == 0 or second.ndim == 0:
        return F.mul(first, second)
    return tensordot(first, second, ([-1], [-2 if second.ndim > 1 else -1]))


def inner(a: Any, b: Any) -> Any:
    """Products along the last axes of both."""
    first, second = asarray(a), asarray(b)
    return F.mul(first, second) if first.ndim == 0 or second.ndim == 0 else tensordot(first, second, ([-1], [-1]))


def outer(a: Any, b: Any) -> Any:
    """Every product of an element of a and one of b."""
    return F.mul(F.reshape(asarray(a), (-1, 1)), F.reshape(asarray(b), (1, -1)))


def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """Products summed along axes of both."""
    first, second = asarray(a), asarray(b)
    if isinstance(axes, int):
        ours, theirs = list(range(first.ndim - axes, first.ndim)), list(range(axes))
    else:
        ours, theirs = ([each] if isinstance(each, int) else list(each) for each in axes)
    ours, theirs = [each % first.ndim for each in ours], [each % second.ndim for each in theirs]
    kept = [axis for axis in range(first.ndim) if axis not in ours]
    rest = [axis for axis in range(second.ndim) if axis not in theirs]
    rows, columns = ([each.shape[axis] for axis in axes] for each, axes in ((first, kept), (second, rest)))
    size = math.prod(first.shape[axis] for axis in ours)
    left = F.reshape(F.transpose(first, (*kept, *ours)), (math.prod(rows), size))
    right = F.reshape(F.transpose(second, (*theirs, *rest)), (size, math.prod(columns)))
    return F.reshape(F.matmul(left, right), (*rows, *columns))


def polyval(p: Any, x: Any) -> Any:
    """Value of a polynomial, the highest power first."""
    factors, places = asarray(p), asarray(x)
    result = zeros_like(places, factors.dtype)
    for index in builtins.range(factors.shape[0]):
        result = F.add(F.mul(result, places), factors[index])
    return result


def isin(element: Any, test_elements: Any, invert: bool = False) -> Any:
    """Which elements are among others."""
    one, others = asarray(element), F.reshape(asarray(test_elements), (-1,))
    same = F.any(F.equal(F.expand_dims(one, -1), others), -1)
    return F.logical_not(same) if invert else same


def in1d(ar1: Any, ar2: Any, invert: bool = False) -> Any:
    """Which elements are among others, in a row."""
    return isin(F.reshape(asarray(ar1), (-1,)), ar2, invert)


def array_equiv(a1: Any, a2: Any) -> Any:
    """Whether two tensors are equal after broadcasting."""
    return F.all(F.equal(asarray(a1), asarray(a2)))


publish(__name__)

"""Functions of `mindspore.mint` over axes: sums, extrema, statistics, sorted orders, places."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from msdump.mindspore.common.dtype import Type, bool_, complex64, complex128, float_type, int64
from msdump.mindspore.common.signatures import in_forms
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.names import publish
from msdump.mindspore.ops import function as F

_TABLE = """
    all input dim=None keepdim=False
    any input dim=None keepdim=False
    amax input dim=() keepdim=False
    amin input dim=() keepdim=False
    argmax input dim=None keepdim=False
    argmin input dim=None keepdim=False
    cummax input dim
    cummin input dim
    logsumexp input dim keepdim=False
    mean input dim=None keepdim=False | dtype=None
    nansum input dim=None keepdim=False | dtype=None
    norm input p='fro' dim=None keepdim=False | dtype=None
    prod input dim=None keepdim=False | dtype=None
    std input dim=None | correction=1 keepdim=False
    sum input dim=None keepdim=False | dtype=None
    topk input k dim=-1 largest=True sorted=True
    var input dim=None | correction=1 keepdim=False
    var_mean input dim=None | correction=1 keepdim=False
"""


def _with_places(compute: Callable[..., Any]) -> Callable[..., Any]:
    """The function, whose places, its last or only result, become int64."""

    @functools.wraps(compute)
    def wide(*args: Any, **kwargs: Any) -> Any:
        result = compute(*args, **kwargs)
        return (result[0], F.cast(result[1], int64)) if isinstance(result, tuple) else F.cast(result, int64)

    return wide


_PLACED = {
    name: _with_places(vars(F)[name])
    for name in ("argmax", "argmin", "argsort", "cummax", "cummin", "max", "min", "sort", "topk")
}


def _in(input: Tensor, dtype: Type | None) -> Tensor:
    return input if dtype is None else F.cast(input, dtype)


def _summed(input: Tensor, dtype: Type | None) -> Tensor:
    """The operand of a sum or product: whole numbers and bools add up in int64."""
    return _in(input, dtype or (None if input.dtype in (*float_type, complex64, complex128) else int64))


def _axis(dim: Any) -> Any:
    return None if isinstance(dim, tuple | list) and not dim else dim


def _over(compute: Callable[..., Any], widens: bool = False) -> Callable[..., Any]:
    """The function over axes, of all for (); its operand is cast first.   widens: sums of whole numbers are int64"""

    @functools.wraps(compute)
    def over(input: Tensor, dim: Any, keepdim: bool, dtype: Type | None = None) -> Any:
        return compute(_summed(input, dtype) if widens else _in(input, dtype), _axis(dim), keepdim)

    return over


def _spread(compute: Callable[..., Any]) -> Callable[..., Any]:
    """The function of squared deviations: added up, over the count less `correction`."""

    @functools.wraps(compute)
    def spread(input: Tensor, dim: Any, correction: int, keepdim: bool) -> Any:
        return compute(input, _axis(dim), correction, keepdim)

    return spread


_COMPUTING = {
    **vars(F),
    **_PLACED,
    **{name: _over(vars(F)[name]) for name in ("amax", "amin", "mean")},
    **{name: _over(vars(F)[name], widens=True) for name in ("prod", "sum")},
    **{name: _spread(vars(F)[name]) for name in ("std", "var", "var_mean")},
}

globals().update(in_forms(_TABLE, _COMPUTING, __name__))


def count_nonzero(input: Tensor, dim: Any = None) -> Tensor:
    """How many elements are not 0, over axes."""
    return F.sum(F.cast(F.not_equal(input, 0), int64), _axis(dim))


def _extreme(name: str, input: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The three forms of max and min: of all, of an axis with the places, of two tensors."""
    other = args[0] if args and isinstance(args[0], Tensor) else kwargs.get("other")
    if other is not None:
        return (F.maximum if name == "max" else F.minimum)(input, other)
    dim = kwargs.get("dim", args[0] if args else None)
    keepdim = kwargs.get("keepdim", args[1] if len(args) > 1 else False)
    if dim is None:
        return (F.amax if name == "max" else F.amin)(input)
    return _PLACED[name](input, dim, keepdim)


def max(input: Tensor, *args: Any, **kwargs: Any) -> Any:
    """`max(input)`; `max(input, dim, keepdim=False)` with the places; `max(input, other)` of two tensors."""
    return _extreme("max", input, args, kwargs)


def min(input: Tensor, *args: Any, **kwargs: Any) -> Any:
    """`min(input)`; `min(input, dim, keepdim=False)` with the places; `min(input, other)` of two tensors."""
    return _extreme("min", input, args, kwargs)


def sort(input: Tensor, *, dim: int = -1, descending: bool = False, stable: bool = False) -> tuple[Tensor, Tensor]:
    """In order along an axis, and where each came from."""
    values, places = _PLACED["sort"](input, dim, descending)
    return values, places


def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """Places of the elements in order along an axis."""
    return _PLACED["argsort"](input, dim, descending)


def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each whole number occurs, or the sum of its weights."""
    counts = F.bincount(input, weights, minlength)
    return F.cast(counts, int64) if weights is None else counts


def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The k-th least element along an axis, counted from 1, and its place."""
    both = tuple(F.narrow(each, dim, k - 1, 1) for each in sort(input, dim=dim))
    first, second = both if keepdim else tuple(F.squeeze(each, dim) for each in both)
    return first, second


def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The middle element, of an even number the lower one; along an axis with its place."""
    if dim is None:
        return kthvalue(F.reshape(input, (-1,)), (input.size + 1) // 2)[0]
    return kthvalue(input, (input.shape[dim] + 1) // 2, dim, keepdim)


def std_mean(input: Tensor, dim: Any = None, *, correction: int = 1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """`std` and `mean`."""
    variance, center = F.var_mean(input, _axis(dim), correction, keepdim)
    return F.sqrt(variance), center


def softmax(input: Tensor, dim: int, *, dtype: Type | None = None) -> Tensor:
    """exp(x) over its sum along an axis."""
    return F.softmax(_in(input, dtype), dim)


def trace(input: Tensor) -> Tensor:
    """Sum of the diagonal."""
    return F.sum(_summed(F.diagonal(input), None))


def equal(input: Tensor, other: Tensor) -> Any:
    """Whether two tensors have the same shape and elements."""
    if input.shape != other.shape:
        return False
    same = F.all(F.cast(F.equal(input, other), bool_))
    return bool(same) if same.is_concrete else same


publish(__name__)

"""Functions element by element, from tables: all take `dtype`, that of the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msdump.mindspore.common.dtype import Type, bool_, float32, float_type
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.names import publish
from msdump.mindspore.numpy.creation import asarray
from msdump.mindspore.ops import function as F


def _in(result: Any, dtype: Type | None) -> Any:
    return result if dtype is None else F.cast(result, dtype)


def _operand(value: Any) -> Any:
    """Numbers stay numbers beside tensors; sequences become tensors."""
    return value if isinstance(value, bool | int | float | Tensor) else asarray(value)


def _unary(name: str, function: str | Callable[..., Any] = "") -> Callable[..., Any]:
    """numpy's function of one operand, by that of `mindspore.ops`."""
    compute = getattr(F, function or name) if isinstance(function, str) else function

    def unary(x: Any, dtype: Type | None = None) -> Any:
        return _in(compute(asarray(x)), dtype)

    unary.__name__ = unary.__qualname__ = name
    unary.__doc__ = compute.__doc__
    return unary


def _binary(name: str, function: str | Callable[..., Any] = "") -> Callable[..., Any]:
    """numpy's function of two operands, by that of `mindspore.ops`."""
    compute = getattr(F, function or name) if isinstance(function, str) else function

    def binary(x1: Any, x2: Any, dtype: Type | None = None) -> Any:
        first, second = _operand(x1), _operand(x2)
        if not isinstance(first, Tensor) and not isinstance(second, Tensor):
            first = asarray(first)
        return _in(compute(first, second), dtype)

    binary.__name__ = binary.__qualname__ = name
    binary.__doc__ = compute.__doc__
    return binary


def _flag(name: str) -> Callable[..., Any]:
    """A test of an operand that numpy also takes for whole numbers."""
    return _unary(name, lambda x: getattr(F, name)(F.cast(x, float32) if x.dtype not in float_type else x))


def _like(result: Any, x: Any) -> Any:
    """In the dtype of an operand of whole numbers."""
    return result if x.dtype in float_type or x.dtype == bool_ else F.cast(result, x.dtype)


def _without_zeros(x: Any) -> Any:
    """Of whole numbers those in whose place a quotient exists; 2 elsewhere, of which the half is dropped."""
    return x if x.dtype in float_type else F.select(F.equal(x, 0), F.full_like(x, 2), x)


# Functions of the name of that of `mindspore.ops`.
_UNARY = """
    arccos arccosh arcsin arcsinh arctan arctanh ceil cos cosh exp expm1 floor log log10 log1p log2
    negative rad2deg rint sign signbit sin sinh sqrt square tan tanh
"""
_BINARY = """
    add arctan2 bitwise_and bitwise_or bitwise_xor equal fmod gcd greater greater_equal
    heaviside hypot lcm less less_equal logaddexp logaddexp2 matmul multiply not_equal subtract
"""
globals().update({name: _unary(name) for name in _UNARY.split()})
globals().update({name: _binary(name) for name in _BINARY.split()})

# Whole numbers stay such: what is behind the point is dropped.
exp2 = _unary("exp2", lambda x: _like(F.exp2(x), x))
reciprocal = _unary("reciprocal", lambda x: _like(F.reciprocal(_without_zeros(x)), x))
maximum = _binary("maximum", lambda a, b: _like(F.maximum(a, b), a if isinstance(a, Tensor) else b))
minimum = _binary("minimum", lambda a, b: _like(F.minimum(a, b), a if isinstance(a, Tensor) else b))
copysign = _binary("copysign", lambda a, b: _like(F.copysign(a, b), a) if isinstance(a, Tensor) else F.copysign(a, b))

abs = absolute = _unary("abs")
bitwise_not = invert = _unary("invert")
deg2rad = radians = _unary("deg2rad")
fabs = _unary("fabs", "abs")
fix = _unary("fix", lambda x: F.trunc(x if x.dtype in float_type else F.cast(x, float32)))
trunc = _unary("trunc", fix)
isfinite, isinf, isnan = _flag("isfinite"), _flag("isinf"), _flag("isnan")
isneginf, isposinf = _flag("isneginf"), _flag("isposinf")
logical_not = _unary("logical_not", lambda x: F.logical_not(F.cast(x, bool_)))
positive = _unary("positive", lambda x: F.mul(x, 1))
cbrt = _unary("cbrt", lambda x: F.mul(F.sign(x), F.pow(F.abs(F.cast(x, float32)), 1 / 3)))

divide = true_divide = _binary("divide")
float_power = _binary("float_power", lambda a, b: F.cast(F.pow(F.cast(asarray(a), float32), b), float32))
floor_divide = _binary("floor_divide", "floor_div")
logical_and = _binary("logical_and", lambda a, b: F.logical_and(F.cast(a, bool_), F.cast(b, bool_)))
logical_or = _binary("logical_or", lambda a, b: F.logical_or(F.cast(a, bool_), F.cast(b, bool_)))
logical_xor = _binary("logical_xor", lambda a, b: F.logical_xor(F.cast(a, bool_), F.cast(b, bool_)))
mod = remainder = _binary("remainder", "floor_mod")
power = _binary("power", "pow")


def divmod(x1: Any, x2: Any, dtype: Type | None = None) -> tuple[Any, Any]:
    """Floor of the quotient, and the remainder."""
    return floor_divide(x1, x2, dtype), mod(x1, x2, dtype)


def clip(x: Any, xmin: Any, xmax: Any, dtype: Type | None = None) -> Any:
    """Elements kept between two bounds."""
    return _in(F.clip_by_value(asarray(x), xmin, xmax), dtype)


def around(a: Any, decimals: int = 0) -> Any:
    """Rounded to a number of decimals."""
    x = asarray(a)
    return F.round(x) if not decimals else F.div(F.round(F.mul(x, 10.0**decimals)), 10.0**decimals)


round = around


def isclose(a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Any:
    """Where |a - b| <= atol + rtol * |b|."""
    first, second = (F.cast(asarray(each), float32) for each in (a, b))
    near = F.less_equal(F.abs(F.sub(first, second)), F.add(F.mul(F.abs(second), rtol), atol))
    near = F.logical_or(F.logical_and(near, F.isfinite(second)), F.equal(first, second))
    return F.logical_or(near, F.logical_and(F.isnan(first), F.isnan(second))) if equal_nan else near


def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """x where the condition holds, y elsewhere; of the condition alone the places where it holds."""
    if x is None and y is None:
        return F.nonzero(asarray(condition), as_tuple=True)
    if not isinstance(x, Tensor) and not isinstance(y, Tensor):
        x = asarray(x)
    return F.select(asarray(condition), _operand(x), _operand(y))


publish(__name__)

"""Arithmetic and comparison, element by element, and matrix products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import as_tensor, call, promoted
from msdump.mindspore.dispatch import cast as _cast
from msdump.mindspore.names import publish
from msdump.mindspore.ops.array import broadcast_to, reshape
from msdump.mindspore.ops.primitive import operator_class
from msdump.mindspore.releases import DIVISION
from msdump.tensors import dtypes


def _binary(op_type: str, doc: str, *aliases: str) -> Callable[[Any, Any], Tensor]:
    """Function and operator class of two operands in their common dtype."""

    def function(input: Any, other: Any) -> Tensor:
        return call(op_type, *promoted(input, other))

    function.__doc__ = doc
    return operator_class(op_type, *aliases)(function)


add = tensor_add = _binary("Add", "input + other, broadcast.", "TensorAdd")
sub = _binary("Sub", "input - other, broadcast.")
mul = multiply = _binary("Mul", "input * other, broadcast.")
maximum = _binary("Maximum", "The larger of each pair.")
minimum = _binary("Minimum", "The smaller of each pair.")
floor_mod = _binary("FloorMod", "Remainder with the sign of the divisor.")
equal = _binary("Equal", "input == other, element by element.")
not_equal = ne = _binary("NotEqual", "input != other, element by element.")
less = _binary("Less", "input < other, element by element.")
less_equal = le = _binary("LessEqual", "input <= other, element by element.")
greater = gt = _binary("Greater", "input > other, element by element.")
greater_equal = ge = _binary("GreaterEqual", "input >= other, element by element.")
floor_div = _binary("FloorDiv", "input / other, rounded down.")


def _truth(value: Any) -> Tensor:
    """Where a tensor or a number is not zero."""
    tensor = as_tensor(value)
    return tensor if tensor.type_.dtype == "bool" else _cast(tensor, "bool")


def _logical(op_type: str, doc: str) -> Callable[[Any, Any], Tensor]:
    def function(input: Any, other: Any) -> Tensor:
        return call(op_type, _truth(input), _truth(other))

    function.__doc__ = doc
    return operator_class(op_type)(function)


logical_and = _logical("LogicalAnd", "input and other, element by element; numbers are true where they are not zero.")
logical_or = _logical("LogicalOr", "input or other, element by element; numbers are true where they are not zero.")


def subtract(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """input - alpha * other, broadcast."""
    return sub(input, other if alpha == 1 else mul(other, alpha))


def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """input / other, with "floor" rounded down, with "trunc" toward zero; else integers are divided as float32."""
    if rounding_mode == "floor":
        return floor_div(input, other)
    if rounding_mode == "trunc":
        return call("TruncateDiv", *promoted(input, other))
    if rounding_mode is not None:
        raise ValueError(f"For ops.div, rounding_mode value should be None, 'floor' or 'trunc', got {rounding_mode!r}.")
    first, second = promoted(input, other)
    if not dtypes.dtype(first.type_.dtype).is_float:
        first, second = _cast(first, "float32"), _cast(second, "float32")
    return call("Div" if DIVISION.is_in_force else "RealDiv", first, second)


divide = true_divide = div


@operator_class("Pow")
def pow(input: Any, exponent: Any) -> Tensor:
    """input ** exponent."""
    return call("Pow", *promoted(input, exponent))


def _unary(op_type: str, doc: str, is_float: bool = True, has_integers: bool = False) -> Callable[[Tensor], Tensor]:
    """Function and operator class of one operand.

    is_float      other dtypes become float32
    has_integers  but for these
    """

    def function(input: Tensor) -> Tensor:
        if isinstance(input, list | tuple | np.ndarray):
            raise TypeError(f"{op_type}: expected a Tensor, got {type(input).__name__}. Make a Tensor of it.")
        tensor = as_tensor(input)
        row = dtypes.dtype(tensor.type_.dtype)
        if is_float and not row.is_float and not (has_integers and row.kind in (dtypes.INT, dtypes.UINT)):
            tensor = _cast(tensor, "float32")
        return call(op_type, tensor)

    function.__doc__ = doc
    return operator_class(op_type)(function)


_round = _unary("Round", "Rounded to the nearest, halves to even.", False)


def round(input: Tensor, *, decimals: int = 0) -> Tensor:
    """Rounded to so many places behind the point, halves to even."""
    return _round(input) if decimals == 0 else div(_round(mul(input, 10.0**decimals)), 10.0**decimals)


def _not(input: Tensor) -> Tensor:
    """not input; numbers are true where they are not zero."""
    return call("LogicalNot", _truth(input))


neg = negative = _unary("Neg", "-input.", False)
abs = absolute = _unary("Abs", "|input|.", False)
square = _unary("Square", "input * input.", False)
sign = _unary("Sign", "-1, 0 or 1.", False)
logical_not = operator_class("LogicalNot")(_not)
exp = _unary("Exp", "e ** input.")
log = _unary("Log", "Natural logarithm.")
sqrt = _unary("Sqrt", "Square root.")
rsqrt = _unary("Rsqrt", "1 / square root.")
sin = _unary("Sin", "Sine.")
cos = _unary("Cos", "Cosine.")
floor = _unary("Floor", "Rounded down.")
ceil = _unary("Ceil", "Rounded up.")
reciprocal = _unary("Reciprocal", "1 / input.")
erf = _unary("Erf", "Gauss error function.")
isnan = _unary("IsNan", "Where input is NaN.")
isinf = _unary("IsInf", "Where input is infinite.")
isfinite = _unary("IsFinite", "Where input is finite.")
relu = _unary("ReLU", "max(input, 0).", has_integers=True)
relu6 = _unary("ReLU6", "min(max(input, 0), 6).")
sigmoid = _unary("Sigmoid", "1 / (1 + e ** -input).")
tanh = _unary("Tanh", "Hyperbolic tangent.")


@operator_class("AddN")
def addn(x: Sequence[Tensor]) -> Tensor:
    """Sum of tensors of one type."""
    return call("AddN", *x)


def clip_by_value(x: Any, clip_value_min: Any = None, clip_value_max: Any = None) -> Any:
    """Elements kept between two bounds of the dtype of x; None is no bound. Of a list or tuple each, as a tuple."""
    if clip_value_min is None and clip_value_max is None:
        raise ValueError("clip_by_value: expected clip_value_min, clip_value_max or both, got None for both.")
    if isinstance(x, list | tuple):
        return tuple(clip_by_value(each, clip_value_min, clip_value_max) for each in x)
    if clip_value_min is not None:
        x = maximum(x, _bound(clip_value_min, x))
    return x if clip_value_max is None else minimum(x, _bound(clip_value_max, x))


def _bound(value: Any, x: Tensor) -> Any:
    return _cast(as_tensor(value, None if isinstance(value, Tensor) else x.type_.dtype), x.type_.dtype)


def clip(input: Any, min: Any = None, max: Any = None) -> Any:
    """Elements kept between two bounds of the dtype of the input; None is no bound."""
    return clip_by_value(input, min, max)


clamp = clip


@operator_class("Select")
def select(cond: Tensor, x: Any, y: Any) -> Tensor:
    """x where cond, y elsewhere."""
    return call("Select", _cast(as_tensor(cond), "bool"), *promoted(x, y))


where = select


@operator_class("MaskedFill")
def masked_fill(input_x: Tensor, mask: Tensor, value: Any) -> Tensor:
    """input_x with `value` where mask."""
    if as_tensor(mask).type_.dtype != "bool":
        raise TypeError(f"MaskedFill: expected a mask of dtype bool, got {as_tensor(mask).type_}. Compare, or cast it.")
    filler = _cast(as_tensor(value, None if isinstance(value, Tensor) else input_x.type_.dtype), input_x.type_.dtype)
    return call("MaskedFill", input_x, as_tensor(mask), filler)


def matmul(input: Tensor, other: Tensor) -> Tensor:
    """Matrix product; batches broadcast through BatchMatMul, vectors as in numpy."""
    first, second = promoted(input, other)
    if first.ndim == 1 or second.ndim == 1:
        return _product_with_vector(first, second)
    if first.ndim == 2 and second.ndim == 2:
        return call("MatMul", first, second, transpose_a=False, transpose_b=False)
    if second.ndim == 2:
        flat = call("MatMul", reshape(first, (-1, first.shape[-1])), second, transpose_a=False, transpose_b=False)
        return reshape(flat, (*first.shape[:-1], second.shape[-1]))
    lead = np.broadcast_shapes(first.shape[:-2], second.shape[:-2])
    first = broadcast_to(first, (*lead, *first.shape[-2:]))
    second = broadcast_to(second, (*lead, *second.shape[-2:]))
    return call("BatchMatMul", first, second, transpose_a=False, transpose_b=False)


def _product_with_vector(first: Tensor, second: Tensor) -> Tensor:
    """Source: operators of MindSpore: a vector is one row, which the product transposes on its right."""
    is_row, is_column = first.ndim == 1, second.ndim == 1
    left = reshape(first, (1, -1)) if is_row else first
    right = reshape(second, (1, -1)) if is_column else second
    shape = (*(() if is_row else first.shape[:-1]), *(() if is_column else (second.shape[-1],)))
    if left.ndim == 2 and right.ndim == 2:
        return reshape(call("MatMul", left, right, transpose_a=False, transpose_b=is_column), shape)
    product = matmul(left, reshape(second, (-1, 1)) if is_column else second)
    return reshape(product, (*second.shape[:-2], second.shape[-1]) if is_row else first.shape[:-1])


mm = bmm = matmul


def bias_add(input_x: Tensor, bias: Tensor) -> Tensor:
    """input_x plus one number per channel."""
    return call("BiasAdd", input_x, bias, format="NCHW")


publish(__name__)

"""Functions beyond arithmetic, element by element: trigonometry, powers, rounding, bits, special functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.names import publish
from msdump.mindspore.ops.declaration import AS_IS, COMMON, COMMON_FLOAT, FLOAT, operator


def _unary(op_type: str, name: str, doc: str, operands: str = FLOAT) -> Callable[..., Any]:
    """Operator of one operand that PyTorch has under this name."""

    def function(torch: Any, input: Tensor) -> Tensor:
        return _part(torch, name)(input)

    function.__doc__ = doc
    return operator(op_type, operands=operands)(function)


def _binary(
    op_type: str, name: str, doc: str, operands: str = COMMON_FLOAT, has_gradient: bool = True
) -> Callable[..., Any]:
    """Operator of two operands, as `_unary`."""

    def function(torch: Any, input: Tensor, other: Tensor) -> Tensor:
        return _part(torch, name)(input, other)

    function.__doc__ = doc
    return operator(op_type, operands=operands, has_gradient=has_gradient)(function)


def _part(library: Any, path: str) -> Any:
    for name in path.split("."):
        library = getattr(library, name)
    return library


# -- trigonometry ------------------------------------------------------------------------------------------------------

tan = _unary("Tan", "tan", "Tangent.")
asin = arcsin = _unary("Asin", "asin", "Inverse sine.")
acos = arccos = _unary("ACos", "acos", "Inverse cosine.")
atan = arctan = _unary("Atan", "atan", "Inverse tangent.")
sinh = _unary("Sinh", "sinh", "Hyperbolic sine.")
cosh = _unary("Cosh", "cosh", "Hyperbolic cosine.")
asinh = arcsinh = _unary("Asinh", "asinh", "Inverse hyperbolic sine.")
acosh = arccosh = _unary("Acosh", "acosh", "Inverse hyperbolic cosine.")
atanh = arctanh = _unary("Atanh", "atanh", "Inverse hyperbolic tangent.")
sinc = _unary("Sinc", "sinc", "sin(pi x) / (pi x), 1 at zero.")
atan2 = arctan2 = _binary("Atan2", "atan2", "Angle of the point (other, input).")
deg2rad = _unary("Deg2Rad", "deg2rad", "Degrees as radians.")
rad2deg = _unary("Rad2Deg", "rad2deg", "Radians as degrees.")

# -- powers and logarithms ---------------------------------------------------------------------------------------------

exp2 = _unary("Exp2", "exp2", "2 ** input.")
expm1 = _unary("Expm1", "expm1", "e ** input - 1, exact near zero.")
log1p = _unary("Log1p", "log1p", "log(1 + input), exact near zero.")
log2 = _unary("Log2", "log2", "Logarithm of base 2.")
log10 = _unary("Log10", "log10", "Logarithm of base 10.")
hypot = _binary("Hypot", "hypot", "sqrt(input ** 2 + other ** 2).")
logaddexp = _binary("LogAddExp", "logaddexp", "log(exp(input) + exp(other)).")
logaddexp2 = _binary("LogAddExp2", "logaddexp2", "log2(2 ** input + 2 ** other).")
float_power = _binary("FloatPower", "float_power", "input ** other in float64.")
ldexp = _binary("Ldexp", "ldexp", "input * 2 ** other.")
xlogy = _binary("Xlogy", "xlogy", "input * log(other), 0 where input is 0.")

# -- special functions -------------------------------------------------------------------------------------------------


erfc = _unary("Erfc", "erfc", "1 - erf(input).")
erfinv = _unary("Erfinv", "erfinv", "Inverse of erf.")
lgamma = _unary("Lgamma", "lgamma", "Logarithm of |gamma(input)|.")
digamma = _unary("Digamma", "digamma", "Derivative of lgamma.")
i0 = bessel_i0 = _unary("BesselI0", "special.i0", "Modified Bessel function I, order 0.")
bessel_i0e = _unary("BesselI0e", "special.i0e", "exp(-|x|) * i0(x).")
bessel_i1 = _unary("BesselI1", "special.i1", "Modified Bessel function I, order 1.")
bessel_i1e = _unary("BesselI1e", "special.i1e", "exp(-|x|) * i1(x).")


@operator("Igamma", operands=COMMON_FLOAT)
def igamma(torch: Any, input: Tensor, other: Tensor) -> Tensor:
    """Lower regularized incomplete gamma function."""
    return _of_order(torch, torch.special.gammainc, input, other)


@operator("Igammac", operands=COMMON_FLOAT)
def igammac(torch: Any, input: Tensor, other: Tensor) -> Tensor:
    """Upper regularized incomplete gamma function."""
    return _of_order(torch, torch.special.gammaincc, input, other)


@operator("Zeta", operands=COMMON_FLOAT)
def zeta(torch: Any, input: Tensor, other: Tensor) -> Any:
    """Hurwitz zeta function.   Source: MindSpore: the gradient of `input` is 0."""
    fixed: Any = input
    return torch.special.zeta(fixed.detach(), other) + _with_slope(torch, input, 0.0)


def _of_order(torch: Any, function: Callable[..., Any], order: Any, x: Any) -> Any:
    """A function of which PyTorch has no derivative with respect to its order: five points in float64 give it."""
    value = function(order.detach(), x)
    if not order.requires_grad:
        return value
    with torch.no_grad():
        at, where = order.double(), x.double()
        step = 1e-3 * torch.clamp(at.abs(), max=1.0)
        near = function(at + step, where) - function(at - step, where)
        far = function(at + 2 * step, where) - function(at - 2 * step, where)
        slope = ((8 * near - far) / (12 * step)).to(order.dtype)
    return value + _with_slope(torch, order, torch.broadcast_to(slope, value.shape))


def _with_slope(torch: Any, operand: Any, slope: Any) -> Any:
    """0 whose gradient with respect to the operand is `slope`."""
    zero = operand - operand.detach()
    return torch.where(torch.isfinite(zero), zero, 0) * slope


# -- rounding and remainders -------------------------------------------------------------------------------------------

trunc = _unary("Trunc", "trunc", "Rounded toward zero.", AS_IS)
rint = _unary("Rint", "round", "Rounded to the nearest, halves to even.")
frac = _unary("Frac", "frac", "The part behind the point, with the sign of input.")
fmod = _binary("Fmod", "fmod", "Remainder with the sign of input.", COMMON)
copysign = _binary("CopySign", "copysign", "input with the sign of other.")
nextafter = _binary("NextAfter", "nextafter", "The next float after input toward other.", has_gradient=False)
fmax = _binary("Fmax", "fmax", "The larger of each pair, the other where one is NaN.", COMMON)
fmin = _binary("Fmin", "fmin", "The smaller of each pair, the other where one is NaN.", COMMON)


@operator("Heaviside", operands=COMMON, has_gradient=False)
def heaviside(torch: Any, input: Tensor, other: Tensor) -> Tensor:
    """0 below zero and for NaN, 1 above, `other` at zero."""
    is_above = torch.where(input > 0, torch.ones_like(input), torch.zeros_like(input))
    return torch.where(input == 0, other, is_above)


# -- whole numbers and truth -------------------------------------------------------------------------------------------

gcd = _binary("Gcd", "gcd", "Greatest common divisor.", COMMON)
lcm = _binary("Lcm", "lcm", "Least common multiple.", COMMON)
bitwise_and = _binary("BitwiseAnd", "bitwise_and", "input & other.", COMMON)
bitwise_or = _binary("BitwiseOr", "bitwise_or", "input | other.", COMMON)
bitwise_xor = _binary("BitwiseXor", "bitwise_xor", "input ^ other.", COMMON)
bitwise_left_shift = _binary("LeftShift", "bitwise_left_shift", "input << other.", COMMON)
bitwise_right_shift = _binary("RightShift", "bitwise_right_shift", "input >> other.", COMMON)
logical_xor = _binary("LogicalXor", "logical_xor", "Where just one of both is true.", AS_IS)
signbit = _unary("SignBit", "signbit", "Where the sign is negative, also of zeros.", AS_IS)
isposinf = _unary("IsPosInf", "isposinf", "Where input is +inf.", AS_IS)
isneginf = _unary("IsNegInf", "isneginf", "Where input is -inf.", AS_IS)


@operator("Invert")
def invert(torch: Any, input: Tensor) -> Any:
    """~input."""
    own: Any = input.dtype
    if own not in (torch.uint16, torch.uint32, torch.uint64):
        return torch.bitwise_not(input)
    return torch.bitwise_xor(input, torch.full_like(input, torch.iinfo(own).max))


# -- complex numbers ---------------------------------------------------------------------------------------------------

conj = _unary("Conj", "conj_physical", "The complex conjugate.", AS_IS)
polar = _binary("Polar", "polar", "Complex number of a length and an angle.")


@operator("Angle", operands=FLOAT)
def angle(torch: Any, input: Tensor) -> Any:
    """The angle of a complex number; of a real one 0 or pi."""
    return torch.angle(input)


@operator("Real")
def real(torch: Any, input: Tensor) -> Tensor:
    """The real part."""
    return input.real.clone() if torch.is_complex(input) else input.clone()  # type: ignore[attr-defined]


publish(__name__)

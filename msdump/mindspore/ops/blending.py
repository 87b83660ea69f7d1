"""Functions of several operands, element by element: closeness, quotients without NaN, weights between tensors."""

from __future__ import annotations

from typing import Any

from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.names import publish
from msdump.mindspore.ops.arithmetic import floor_mod, less
from msdump.mindspore.ops.declaration import COMMON, COMMON_FLOAT, FLOAT, operator

# -- comparison --------------------------------------------------------------------------------------------------------


@operator("IsClose", init="rtol atol equal_nan", operands=COMMON, has_gradient=False)
def _isclose(
    torch: Any, input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Any:
    """Where |input - other| is at most atol + rtol * |other|."""
    return torch.isclose(input, other, rtol, atol, equal_nan)


def isclose(input: Any, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    """Where |input - other| is at most atol + rtol * |other|."""
    return _isclose(input, other, rtol, atol, equal_nan)


@operator("ApproximateEqual", init="tolerance", operands=COMMON, has_gradient=False)
def approximate_equal(torch: Any, x: Tensor, y: Tensor, tolerance: float = 1e-5) -> Any:
    """Where |x - y| is less than the tolerance."""
    return torch.abs(torch.subtract(x, y)) < tolerance


@operator("CompareAndBitpack", has_gradient=False)
def _compare_and_bitpack(torch: Any, x: Tensor, threshold: Tensor) -> Any:
    """Where x is above the threshold, eight elements of the last axis as the bits of a byte, the first the highest."""
    if not x.ndim or x.shape[-1] % 8:
        raise ValueError(f"expected a last axis of a size that 8 divides, got shape {tuple(x.shape)}.")
    bits: Any = torch.reshape(x > threshold, (*x.shape[:-1], x.shape[-1] // 8, 8))
    return sum(bits[..., place].to(torch.uint8) << (7 - place) for place in range(8))


lt = less


@operator("NanToNum", init="nan posinf neginf")
def nan_to_num(torch: Any, input: Tensor, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Any:
    """NaN and infinities replaced; None: by 0 and by the ends of the dtype's range."""
    return torch.nan_to_num(input, nan, posinf, neginf)


@operator("Eps", has_gradient=False)
def _eps(torch: Any, x: Tensor) -> Any:
    """The distance from 1 to the next number of the dtype, in the shape of x."""
    return torch.full_like(x, torch.finfo(x.dtype).eps)


# -- quotients and remainders ------------------------------------------------------------------------------------------


@operator("Xdivy", operands=COMMON_FLOAT)
def xdivy(torch: Any, x: Tensor, y: Tensor) -> Any:
    """x / y, 0 where x is 0."""
    is_zero = x == 0
    quotient = torch.divide(x, torch.where(is_zero, torch.ones_like(y), y))
    return torch.where(is_zero, torch.zeros_like(quotient), quotient)


@operator("DivNoNan", operands=COMMON)
def _div_no_nan(torch: Any, x1: Tensor, x2: Tensor) -> Any:
    """x1 / x2, 0 where x2 is 0."""
    is_zero = x2 == 0
    quotient = torch.divide(x1, torch.where(is_zero, torch.ones_like(x2), x2))
    return torch.where(is_zero, torch.zeros_like(quotient), quotient)


@operator("MulNoNan", operands=COMMON)
def _mul_no_nan(torch: Any, x: Tensor, y: Tensor) -> Any:
    """x * y, 0 where y is 0 whatever x is."""
    product = torch.multiply(x, y)
    return torch.where(y == 0, torch.zeros_like(product), product)


def whole_quotient(library: Any, x: Any, y: Any) -> Any:
    """x / y, rounded toward zero.   Edges: integers over 0 give the ends of their range, and 0 over 0 gives 0."""
    if x.is_floating_point():
        return library.trunc(x / y)
    limits = library.iinfo(x.dtype)
    ends = library.where(x > 0, library.full_like(x, limits.max), library.full_like(x, limits.min))
    ends = library.where(x == 0, library.zeros_like(x), ends)
    divisor = library.where(y == 0, library.ones_like(y), y)
    return library.where(y == 0, ends, library.floor_divide(x - library.fmod(x, divisor), divisor))


@operator("TruncateDiv", operands=COMMON)
def truncate_div(torch: Any, x: Tensor, y: Tensor) -> Any:
    """x / y, rounded toward zero."""
    return whole_quotient(torch, x, y)


@operator("TruncateMod", operands=COMMON)
def truncate_mod(torch: Any, x: Tensor, y: Tensor) -> Any:
    """The remainder of the division that rounds toward zero."""
    return torch.fmod(x, y)


def remainder(input: Any, other: Any) -> Tensor:
    """The remainder with the sign of the divisor."""
    return floor_mod(input, other)


# -- weights -----------------------------------------------------------------------------------------------------------


@operator("Lerp", operands=COMMON)
def lerp(torch: Any, input: Tensor, end: Tensor, weight: Tensor) -> Any:
    """input + weight * (end - input)."""
    return torch.add(input, torch.multiply(weight, torch.subtract(end, input)))


@operator("Addcdiv", operands=COMMON)
def addcdiv(torch: Any, input: Tensor, tensor1: Tensor, tensor2: Tensor, value: Tensor = 1) -> Any:  # type: ignore[assignment]
    """input + value * tensor1 / tensor2, the quotient of integers rounded toward zero."""
    quotient = torch.divide(tensor1, tensor2) if input.is_floating_point() else whole_quotient(torch, tensor1, tensor2)  # type: ignore[attr-defined]
    return torch.add(input, torch.multiply(value, quotient))


@operator("Addcmul", operands=COMMON)
def addcmul(torch: Any, input: Tensor, tensor1: Tensor, tensor2: Tensor, value: Tensor = 1) -> Any:  # type: ignore[assignment]
    """input + value * tensor1 * tensor2."""
    return torch.add(input, torch.multiply(value, torch.multiply(tensor1, tensor2)))


# -- special functions -------------------------------------------------------------------------------------------------


@operator("Logit", init="eps", operands=FLOAT)
def _logit(torch: Any, input: Tensor, eps: float = -1.0) -> Any:
    """log(x / (1 - x)), with x kept between eps and 1 - eps where eps is not negative."""
    return torch.logit(input, eps if eps >= 0 else None)


def logit(input: Tensor, eps: float | None = None) -> Any:
    """log(x / (1 - x)), with x kept between eps and 1 - eps."""
    return _logit(input, -1.0 if eps is None else eps)


@operator("Mvlgamma", init="p", operands=FLOAT)
def mvlgamma(torch: Any, input: Tensor, p: int) -> Any:
    """Logarithm of the gamma function of p dimensions."""
    return torch.special.multigammaln(input, p)


@operator("Polygamma", init="", operands=FLOAT)
def _polygamma(torch: Any, a: int, x: Tensor) -> Any:
    """The derivative of order a of digamma."""
    return torch.special.polygamma(a, x)


def polygamma(n: Any, input: Tensor) -> Any:
    """The derivative of order n of digamma."""
    return _polygamma(n, input)


@operator("PopulationCount", has_gradient=False)
def population_count(torch: Any, input_x: Tensor) -> Any:
    """How many bits of each whole number are 1; uint8."""
    numbers: Any = input_x
    bits = torch.iinfo(numbers.dtype).bits
    wide = numbers.to(torch.int64)
    return sum((wide >> place) & 1 for place in range(bits)).to(torch.uint8)


publish(__name__, "lt")

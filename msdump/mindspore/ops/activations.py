"""Activation functions beyond those of `arithmetic` and `network`, under MindSpore's types of operators."""

from __future__ import annotations

from typing import Any

from msdump.mindspore.common.dtype import int_type
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import call, execute
from msdump.mindspore.names import publish
from msdump.mindspore.ops.arithmetic import greater, log, maximum, minimum, mul, select, sigmoid, sub, tanh
from msdump.mindspore.ops.array import cast, full
from msdump.mindspore.ops.declaration import operator


def _activation(op_type: str, torch_name: str, doc: str) -> Any:
    """Operator of one operand that `torch.nn.functional` has under this name."""

    def function(torch: Any, input: Tensor) -> Tensor:
        compute = getattr(torch.nn.functional, torch_name)
        given: Any = input  # a tensor of torch
        # Whole numbers stay such: what is behind the point is dropped.   Source: MindSpore on a CPU.
        is_whole = not given.is_floating_point() and given.dtype != torch.bool
        return compute(given.double()).to(given.dtype) if is_whole else compute(given)

    function.__doc__ = doc
    function.__name__ = torch_name
    return operator(op_type)(function)


selu = _activation("SeLU", "selu", "Scaled exponential linear unit.")


@operator("HSwish")
def hardswish(torch: Any, input: Tensor) -> Tensor:
    """input * (input + 3) / 6 from -3 to 3, 0 below, input above.

    Edges: -Inf -> 0; at -3 and 3 the slopes are -0.5 and 1.5, those of the inside, as in MindSpore.
    """
    x = torch.as_tensor(input).double()
    inside = torch.clip(x, -3, 3)
    result: Tensor = torch.where(x > 3, x, torch.where(x < -3, inside * 0, inside * (inside + 3) / 6)).to(input.dtype)
    return result


hardsigmoid = _activation("HSigmoid", "hardsigmoid", "min(max(input + 3, 0), 6) / 6.")
mish = _activation("Mish", "mish", "input * tanh(log(1 + e ** input)).")
softsign = _activation("Softsign", "softsign", "input / (1 + |input|).")
_softplus = _activation("Softplus", "softplus", "log(1 + e ** input).")


def silu(input: Tensor) -> Tensor:
    """input * sigmoid(input).   Source: MindSpore 2.0 composes it of Sigmoid and Mul."""
    return mul(input, sigmoid(input))


@operator("Elu")
def elu(torch: Any, input_x: Tensor, alpha: float = 1.0) -> Tensor:
    """input above zero, alpha * (e ** input - 1) below."""
    return torch.nn.functional.elu(input_x, alpha)


@operator("CeLU")
def celu(torch: Any, x: Tensor, alpha: float = 1.0) -> Tensor:
    """x above zero, alpha * (e ** (x / alpha) - 1) below.   Raises: ValueError for alpha 0, as MindSpore."""
    if alpha == 0:
        raise ValueError("For 'CeLU', the 'alpha' must not be 0.")
    return torch.nn.functional.celu(x, alpha)


@operator("HShrink")
def hardshrink(torch: Any, x: Tensor, lambd: float = 0.5) -> Tensor:
    """0 between -lambd and lambd, x elsewhere."""
    return torch.nn.functional.hardshrink(x, lambd)


@operator("SoftShrink")
def softshrink(torch: Any, x: Tensor, lambd: float = 0.5) -> Tensor:
    """x drawn toward 0 by lambd, and 0 between."""
    return torch.nn.functional.softshrink(x, lambd)


@operator("FastGeLU")
def fast_gelu(torch: Any, x: Tensor) -> Tensor:
    """x / (1 + e ** (-1.702 * x)), the quick form of GeLU.   Source: formula of MindSpore's FastGeLU."""
    size: Any = torch.abs(x)
    return x / (1 + torch.exp(-1.702 * size)) * torch.exp(0.851 * (x - size))


@operator("PReLU")
def prelu(torch: Any, input: Tensor, weight: Tensor) -> Tensor:
    """input above zero, weight * input below; one weight, or one per channel (axis 1), of any floats."""
    return torch.nn.functional.prelu(input, weight.to(input.dtype))


def softplus(input: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    """log(1 + e ** (beta * input)) / beta; input itself where beta * input is above the threshold."""
    if beta == 0:
        raise ValueError("For 'softplus', the beta cannot be 0.")
    if beta == 1:
        return select(greater(input, threshold), input, _softplus(input))
    scaled = mul(input, beta)
    return select(greater(scaled, threshold), input, mul(_softplus(scaled), 1 / beta))


def softmin(x: Tensor, axis: int = -1, *, dtype: Any = None) -> Tensor:
    """Softmax of -x."""
    return call("Softmax", mul(x if dtype is None else cast(x, dtype), -1), axis=axis)


def logsigmoid(x: Tensor) -> Tensor:
    """Logarithm of sigmoid(x)."""
    return log(sigmoid(x))


def tanhshrink(input: Tensor) -> Tensor:
    """input - tanh(input)."""
    return sub(input, tanh(input))


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """input kept between two bounds, whole ones for integers, which stay such."""
    if input.dtype in int_type:
        min_val, max_val = int(min_val), int(max_val)
    return minimum(maximum(input, min_val), max_val)


def threshold(input: Tensor, thr: float, value: float) -> Tensor:
    """input above `thr`, `value` elsewhere."""
    return select(greater(input, thr), input, full(input.shape, value, dtype=input.dtype))


def glu(x: Tensor, axis: int = -1) -> Tensor:
    """First half along an axis, times sigmoid of the second."""
    first, second = execute("Split", [x], {"axis": axis, "output_num": 2})
    return mul(first, sigmoid(second))


publish(__name__)

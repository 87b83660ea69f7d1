"""Activations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from msdump.errors import did_you_mean
from msdump.mindspore.common.dtype import float16, float32, int_type
from msdump.mindspore.common.parameter import Parameter
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.names import publish
from msdump.mindspore.nn.cell import Cell
from msdump.mindspore.nn.declared import as_layer, check_sizes
from msdump.mindspore.ops import function as F


def _activation(name: str, function: Callable[[Tensor], Tensor], doc: str) -> Any:
    """Cell class without arguments that calls one function."""

    def construct(self: Cell, x: Tensor) -> Tensor:
        return function(x)

    return type(name, (Cell,), {"construct": construct, "__doc__": doc, "__module__": __name__})


ReLU = _activation("ReLU", F.relu, "max(x, 0).")
ReLU6 = _activation("ReLU6", F.relu6, "min(max(x, 0), 6).")
Sigmoid = _activation("Sigmoid", F.sigmoid, "1 / (1 + e ** -x).")
Tanh = _activation("Tanh", F.tanh, "Hyperbolic tangent.")
Tanhshrink = _activation("Tanhshrink", F.tanhshrink, "x - tanh(x).")
SiLU = _activation("SiLU", F.silu, "x * sigmoid(x).")
SeLU = _activation("SeLU", F.selu, "Scaled exponential linear unit.")
HSwish = _activation("HSwish", F.hardswish, "x * min(max(x + 3, 0), 6) / 6.")
HSigmoid = _activation("HSigmoid", F.hardsigmoid, "min(max(x + 3, 0), 6) / 6.")
Mish = _activation("Mish", F.mish, "x * tanh(log(1 + e ** x)).")
Softsign = _activation("Softsign", F.softsign, "x / (1 + |x|).")
FastGelu = _activation("FastGelu", F.fast_gelu, "x / (1 + e ** (-1.702 * x)).")


@as_layer()
def GELU(x: Tensor, *, approximate: bool = True) -> Tensor:
    """Gauss error linear unit; with `approximate` through tanh."""
    return F.gelu(x, "tanh" if approximate else "none")


@as_layer()
def LeakyReLU(x: Tensor, *, alpha: float = 0.2) -> Tensor:
    """x above zero, alpha * x below."""
    # Source: MindSpore casts alpha to the dtype of x, which integers keep.
    return F.leaky_relu(x, int(alpha) if x.dtype in int_type else alpha)


@as_layer(check=lambda alpha: _check_number("ELU", "alpha", alpha))
def ELU(x: Tensor, *, alpha: float = 1.0) -> Any:
    """x above zero, alpha * (e ** x - 1) below."""
    return F.elu(x, alpha)


def _check_celu(alpha: float) -> None:
    _check_number("CeLU", "alpha", alpha)
    if alpha == 0:
        raise ValueError("For 'CeLU', the 'alpha' must not be 0.0.")


@as_layer(_check_celu)
def CELU(x: Tensor, *, alpha: float = 1.0) -> Any:
    """x above zero, alpha * (e ** (x / alpha) - 1) below."""
    return F.celu(x, alpha)


@as_layer(check=lambda lambd: _check_number("HShrink", "lambd", lambd))
def HShrink(input_x: Tensor, *, lambd: float = 0.5) -> Any:
    """0 between -lambd and lambd, x elsewhere."""
    return F.hardshrink(input_x, lambd)


def _check_soft_shrink(lambd: float) -> None:
    _check_number("SoftShrink", "lambd", lambd)
    if lambd < 0:
        raise ValueError(f"For 'SoftShrink', the 'lambd' must be >= 0, but got {lambd}.")


@as_layer(_check_soft_shrink)
def SoftShrink(input_x: Tensor, *, lambd: float = 0.5) -> Any:
    """x drawn toward 0 by lambd, 0 between."""
    return F.softshrink(input_x, lambd)


def _check_hardtanh(min_val: float, max_val: float) -> None:
    _check_number("Hardtanh", "min_val", min_val)
    _check_number("Hardtanh", "max_val", max_val)
    if min_val >= max_val:
        raise ValueError(
            f"For 'Hardtanh', min_val should be less than max_val, but got min_val: {min_val}, max_val: {max_val}."
        )


@as_layer(_check_hardtanh)
def Hardtanh(x: Tensor, *, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """x kept between two bounds."""
    return F.hardtanh(x, min_val, max_val)


def _check_threshold(threshold: float, value: float) -> None:
    _check_number("Threshold", "threshold", threshold)
    _check_number("Threshold", "value", value)


@as_layer(_check_threshold)
def Threshold(input_x: Tensor, *, threshold: float, value: float) -> Tensor:
    """x above the threshold, `value` elsewhere."""
    return F.threshold(input_x, threshold, value)


def _check_number(cls_name: str, name: str, value: Any) -> None:
    """Raises: TypeError for what is no number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"For '{cls_name}', the type of '{name}' must be float or int, but got {type(value).__name__}.")


@as_layer()
def Softmax(x: Tensor, *, axis: int = -1) -> Tensor:
    """e ** x, scaled to sum 1 along an axis."""
    return F.softmax(x, axis)


@as_layer()
def LogSoftmax(x: Tensor, *, axis: int = -1) -> Tensor:
    """Logarithm of Softmax."""
    return F.log_softmax(x, axis)


@as_layer()
def Softmin(x: Tensor, *, axis: int = -1) -> Tensor:
    """Softmax of -x."""
    return F.softmin(x, axis)


class Softmax2d(Cell):
    """Softmax over the channels of (N, C, H, W) or (C, H, W)."""

    def construct(self, x: Tensor) -> Tensor:
        if x.ndim not in (3, 4):
            raise ValueError(f"For '{self.cls_name}', the in_shape must have 3 or 4 dims, but got {x.ndim}.")
        return F.softmax(x, -3)


@as_layer()
def LogSigmoid(input_x: Tensor) -> Tensor:
    """Logarithm of sigmoid(x), through the operators that MindSpore takes."""
    return F.log(F.reciprocal(F.add(F.exp(F.mul(input_x, -1)), 1)))


@as_layer()
def GLU(x: Tensor, *, axis: int = -1) -> Tensor:
    """First half along an axis, times sigmoid of the second."""
    return F.glu(x, axis)


class PReLU(Cell):
    """x above zero, w * x below; w is trained, one for all or one per channel."""

    def __init__(self, channel: int = 1, w: Any = 0.25) -> None:
        super().__init__()
        check_sizes("PReLU", channel=channel)
        if isinstance(w, float | np.floating):
            values = np.full(channel, w, np.float32)
        elif isinstance(w, list | Tensor):
            if isinstance(w, Tensor) and w.dtype not in (float16, float32):
                raise ValueError(f"For 'PReLU', the dtype of 'w' must be float16 or float32, but got {w.dtype}.")
            values = w.asnumpy() if isinstance(w, Tensor) else np.array(w, np.float32)
        else:
            raise TypeError(f"For 'PReLU', the 'w' only supported float, list and tensor, but got {type(w)}.")
        if values.shape != (channel,):
            raise ValueError(f"For 'PReLU', the 'w' must have {channel} elements, but got shape {values.shape}.")
        self.w = Parameter(Tensor(values), name="a")

    def construct(self, x: Tensor) -> Any:
        return F.prelu(x, F.cast(self.w, x.dtype))


class RReLU(Cell):
    """x above zero, below a slope drawn between `lower` and `upper` for each element."""

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3) -> None:
        super().__init__()
        _check_number("RReLU", "lower", lower)
        _check_number("RReLU", "upper", upper)
        if lower > upper:
            raise ValueError(
                f"For 'RReLU', the value of 'upper' must be greater than or equal to 'lower', got {upper}, {lower}."
            )
        self.lower, self.upper = Tensor(np.float32(lower)), Tensor(np.float32(upper))

    def construct(self, x: Tensor) -> Tensor:
        signs = F.sign(x)
        slopes = F.cast(F.uniform(x.shape, self.lower, self.upper), x.dtype)
        below = F.mul(F.mul(F.minimum(signs, 0), slopes), -1)
        return F.mul(F.add(below, F.maximum(signs, 0)), x)


_BY_NAME: dict[str, type[Cell]] = {
    "softmin": Softmin,
    "softmax": Softmax,
    "softmax2d": Softmax2d,
    "logsoftmax": LogSoftmax,
    "relu": ReLU,
    "relu6": ReLU6,
    "rrelu": RReLU,
    "silu": SiLU,
    "tanh": Tanh,
    "tanhshrink": Tanhshrink,
    "hardtanh": Hardtanh,
    "gelu": GELU,
    "fast_gelu": FastGelu,
    "elu": ELU,
    "sigmoid": Sigmoid,
    "softsign": Softsign,
    "prelu": PReLU,
    "leakyrelu": LeakyReLU,
    "hswish": HSwish,
    "hsigmoid": HSigmoid,
    "logsigmoid": LogSigmoid,
    "softshrink": SoftShrink,
    "hshrink": HShrink,
    "mish": Mish,
}


def get_activation(name: str | None, prim_name: str | None = None) -> Any:
    """Activation cell of a name; None stays None.   Raises: KeyError with the nearest name."""
    if name is None:
        return None
    if name not in _BY_NAME:
        raise KeyError(f"activation: expected one of {list(_BY_NAME)}, got {name!r}. {did_you_mean(name, _BY_NAME)}")
    return _BY_NAME[name]()


publish(__name__)

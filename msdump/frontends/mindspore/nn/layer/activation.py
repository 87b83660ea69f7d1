"""Activations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from msdump.errors import did_you_mean
from msdump.frontends.mindspore.common.dtype import float16, float32
from msdump.frontends.mindspore.common.parameter import Parameter
from msdump.frontends.mindspore.common.tensor import Tensor
from msdump.frontends.mindspore.dispatch import call
from msdump.frontends.mindspore.names import publish
from msdump.frontends.mindspore.nn.cell import Cell
from msdump.frontends.mindspore.ops import function as F


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


class GELU(Cell):
    """Gauss error linear unit; with `approximate` through tanh."""

    def __init__(self, approximate: bool = True) -> None:
        super().__init__()
        self.approximate = approximate

    def construct(self, x: Tensor) -> Tensor:
        return F.gelu(x, "tanh" if self.approximate else "none")


class LeakyReLU(Cell):
    """x above zero, alpha * x below."""

    def __init__(self, alpha: float = 0.2) -> None:
        super().__init__()
        self.alpha = alpha

    def construct(self, x: Tensor) -> Tensor:
        return F.leaky_relu(x, self.alpha)


class ELU(Cell):
    """x above zero, alpha * (e ** x - 1) below."""

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__()
        self.alpha = _number("ELU", "alpha", alpha)

    def construct(self, x: Tensor) -> Any:
        return F.elu(x, self.alpha)


class CELU(Cell):
    """x above zero, alpha * (e ** (x / alpha) - 1) below."""

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__()
        self.alpha = _number("CeLU", "alpha", alpha)
        if alpha == 0:
            raise ValueError("For 'CeLU', the 'alpha' must not be 0.0.")

    def construct(self, x: Tensor) -> Any:
        return F.celu(x, self.alpha)


class HShrink(Cell):
    """0 between -lambd and lambd, x elsewhere."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = _number("HShrink", "lambd", lambd)

    def construct(self, input_x: Tensor) -> Any:
        return F.hardshrink(input_x, self.lambd)


class SoftShrink(Cell):
    """x drawn toward 0 by lambd, 0 between."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = _number("SoftShrink", "lambd", lambd)
        if lambd < 0:
            raise ValueError(f"For 'SoftShrink', the 'lambd' must be >= 0, but got {lambd}.")

    def construct(self, input_x: Tensor) -> Any:
        return F.softshrink(input_x, self.lambd)


class Hardtanh(Cell):
    """x kept between two bounds."""

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0) -> None:
        super().__init__()
        self.min_val = _number("Hardtanh", "min_val", min_val)
        self.max_val = _number("Hardtanh", "max_val", max_val)
        if min_val >= max_val:
            raise ValueError(
                f"For 'Hardtanh', min_val should be less than max_val, but got min_val: {min_val}, max_val: {max_val}."
            )

    def construct(self, x: Tensor) -> Tensor:
        return F.hardtanh(x, self.min_val, self.max_val)


class Threshold(Cell):
    """x above the threshold, `value` elsewhere."""

    def __init__(self, threshold: float, value: float) -> None:
        super().__init__()
        self.threshold = _number("Threshold", "threshold", threshold)
        self.value = _number("Threshold", "value", value)

    def construct(self, input_x: Tensor) -> Tensor:
        return F.threshold(input_x, self.threshold, self.value)


def _number(cls_name: str, name: str, value: Any) -> float:
    """Raises: TypeError for what is no number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"For '{cls_name}', the type of '{name}' must be float or int, but got {type(value).__name__}.")
    return value


class Softmax(Cell):
    """e ** x, scaled to sum 1 along an axis."""

    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        self.axis = axis

    def construct(self, x: Tensor) -> Tensor:
        return F.softmax(x, self.axis)


class LogSoftmax(Cell):
    """Logarithm of Softmax."""

    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        self.axis = axis

    def construct(self, x: Tensor) -> Tensor:
        return F.log_softmax(x, self.axis)


class Softmin(Cell):
    """Softmax of -x."""

    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        self.axis = axis

    def construct(self, x: Tensor) -> Tensor:
        return F.softmin(x, self.axis)


class Softmax2d(Cell):
    """Softmax over the channels of (N, C, H, W) or (C, H, W)."""

    def construct(self, x: Tensor) -> Tensor:
        if x.ndim not in (3, 4):
            raise ValueError(f"For '{self.cls_name}', the in_shape must have 3 or 4 dims, but got {x.ndim}.")
        return F.softmax(x, -3)


class LogSigmoid(Cell):
    """Logarithm of sigmoid(x), through the operators that MindSpore takes."""

    def construct(self, input_x: Tensor) -> Tensor:
        return F.log(F.reciprocal(F.add(F.exp(F.mul(input_x, -1)), 1)))


class GLU(Cell):
    """First half along an axis, times sigmoid of the second."""

    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        self.axis = axis

    def construct(self, x: Tensor) -> Tensor:
        return F.glu(x, self.axis)


class PReLU(Cell):
    """x above zero, w * x below; w is trained, one for all or one per channel."""

    def __init__(self, channel: int = 1, w: Any = 0.25) -> None:
        super().__init__()
        if isinstance(channel, bool) or not isinstance(channel, int) or channel < 1:
            raise ValueError(f"For 'PReLU', the 'channel' must be int and must > 0, but got {channel!r}.")
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
        if _number("RReLU", "lower", lower) > _number("RReLU", "upper", upper):
            raise ValueError(
                f"For 'RReLU', the value of 'upper' must be greater than or equal to 'lower', got {upper}, {lower}."
            )
        self.lower, self.upper = Tensor(np.float32(lower)), Tensor(np.float32(upper))

    def construct(self, x: Tensor) -> Tensor:
        signs = F.sign(x)
        slopes = F.cast(F.uniform(x.shape, self.lower, self.upper), x.dtype)
        below = F.mul(F.mul(F.minimum(signs, 0), slopes), -1)
        return F.mul(F.add(below, F.maximum(signs, 0)), x)


class LRN(Cell):
    """Each element over its neighbours in the channels beside it."""

    def __init__(
        self,
        depth_radius: int = 5,
        bias: float = 1.0,
        alpha: float = 1.0,
        beta: float = 0.5,
        norm_region: str = "ACROSS_CHANNELS",
    ) -> None:
        super().__init__()
        if norm_region != "ACROSS_CHANNELS":
            raise ValueError(f"For 'LRN', the 'norm_region' must be 'ACROSS_CHANNELS', but got {norm_region}.")
        self._attrs: dict[str, Any] = {"depth_radius": depth_radius, "bias": bias, "alpha": alpha, "beta": beta}
        self._attrs["norm_region"] = norm_region

    def construct(self, input_x: Tensor) -> Tensor:
        return call("LRN", input_x, **self._attrs)


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

"""Activations."""

from __future__ import annotations

from typing import Any

from msdump.errors import did_you_mean
from msdump.frontends.mindspore.common.tensor import Tensor
from msdump.frontends.mindspore.names import publish
from msdump.frontends.mindspore.nn.cell import Cell
from msdump.frontends.mindspore.ops import function as F


class ReLU(Cell):
    """max(x, 0)."""

    def construct(self, x: Tensor) -> Tensor:
        return F.relu(x)


class ReLU6(Cell):
    """min(max(x, 0), 6)."""

    def construct(self, x: Tensor) -> Tensor:
        return F.relu6(x)


class Sigmoid(Cell):
    """1 / (1 + e ** -x)."""

    def construct(self, x: Tensor) -> Tensor:
        return F.sigmoid(x)


class Tanh(Cell):
    """Hyperbolic tangent."""

    def construct(self, x: Tensor) -> Tensor:
        return F.tanh(x)


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


_BY_NAME: dict[str, type[Cell]] = {
    "relu": ReLU,
    "relu6": ReLU6,
    "sigmoid": Sigmoid,
    "tanh": Tanh,
    "gelu": GELU,
    "leakyrelu": LeakyReLU,
    "softmax": Softmax,
    "logsoftmax": LogSoftmax,
}


def get_activation(name: str | None, prim_name: str | None = None) -> Any:
    """Activation cell of a name; None stays None.   Raises: KeyError with the nearest name."""
    if name is None:
        return None
    if name not in _BY_NAME:
        raise KeyError(f"activation: expected one of {list(_BY_NAME)}, got {name!r}. {did_you_mean(name, _BY_NAME)}")
    return _BY_NAME[name]()


publish(__name__)

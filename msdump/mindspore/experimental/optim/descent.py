"""Optimizers that go along the gradient or its sign: SGD, ASGD, Rprop."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from msdump.mindspore.common.parameter import Parameter
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import call
from msdump.mindspore.experimental.optim.optimizer import _check_numbers, _Stepping
from msdump.mindspore.names import publish
from msdump.mindspore.ops import function as F


class SGD(_Stepping):
    """Gradient descent, with momentum when it is above 0. Weight decay is part of the operator."""

    states: ClassVar[dict[str, Any]] = {"accum": "zeros", "stat": "ones"}
    decays = False

    def __init__(
        self,
        params: Any,
        lr: Any,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        _check_numbers("SGD", {}, {"lr": lr, "momentum": momentum})
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError(
                "For 'SGD', if 'nesterov' is true, 'momentum' must be > 0.0 and 'dampening' must equal to 0.0, "
                f"but got 'momentum' {momentum}, 'dampening' {dampening}."
            )
        super().__init__(
            params,
            lr=lr,
            momentum=float(momentum),
            dampening=dampening,
            weight_decay=weight_decay,
            nesterov=nesterov,
            maximize=maximize,
            grad_centralization=False,
        )

    def update(self, index: int, gradient: Tensor, rate: Parameter, group: dict[str, Any]) -> None:
        momentum = Tensor(np.float32(group["momentum"]))
        options = {name: group[name] for name in ("weight_decay", "nesterov")}
        states = (self.accum[index], momentum, self.stat[index])
        call("SGD", self.parameters[index], gradient, rate, *states, dampening=float(group["dampening"]), **options)

    accum: Any
    stat: Any


class ASGD(_Stepping):
    """Averaged gradient descent: `ax` holds the average of the weights from step t0 on."""

    states: ClassVar[dict[str, Any]] = {"ax": "zeros"}
    scalars: ClassVar[dict[str, float]] = {"mu": 1.0, "eta": 0.0}
    counter = "step_t"

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0.0,
        maximize: bool = False,
    ) -> None:
        _check_numbers("ASGD", {"lr": lr}, {"weight_decay": weight_decay})
        for name, number in (("lambd", lambd), ("t0", t0)):
            if not isinstance(number, float):
                raise TypeError(f"For 'ASGD', the type of {name} must be float, but got {type(number)}.")
        super().__init__(params, lr=lr, lambd=lambd, alpha=alpha, t0=t0, weight_decay=weight_decay, maximize=maximize)

    ax: Any
    mu: Any
    eta: Any

    def update(self, index: int, gradient: Tensor, rate: Parameter, group: dict[str, Any]) -> None:
        weight, average, mu = self.parameters[index], self.ax[index], self.mu[index]
        step, lambd = self.step(), group["lambd"]
        eta = F.select(F.equal(step, 1.0), rate, self.eta[index])
        new = weight * (1.0 - lambd * eta) - eta * gradient
        F.assign(weight, new)
        F.assign_add(average, (new - average) * mu)
        F.assign(self.eta[index], rate / F.pow(1.0 + lambd * rate * step, group["alpha"]))
        F.assign(mu, 1.0 / F.maximum(step - group["t0"], 1.0))


class Rprop(_Stepping):
    """Steps that grow while the gradient keeps its sign, and shrink when it changes."""

    states: ClassVar[dict[str, Any]] = {"prev": "zeros", "step_size": "zeros"}
    counter = "step_t"
    decays = False

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        maximize: bool = False,
    ) -> None:
        _check_numbers("Rprop", {"lr": lr}, {})
        if not 0 < etas[0] < 1 < etas[1]:
            raise ValueError(f"For 'Rprop', etas must be below and above 1.0, the first positive, but got {etas}.")
        super().__init__(params, lr=lr, etas=etas, step_sizes=step_sizes, maximize=maximize)

    prev: Any
    step_size: Any

    def update(self, index: int, gradient: Tensor, rate: Parameter, group: dict[str, Any]) -> None:
        weight, previous, size = self.parameters[index], self.prev[index], self.step_size[index]
        ones = F.ones_like(size)
        is_first = F.broadcast_to(F.equal(self.step(), 1.0), size.shape)
        length = F.select(is_first, ones * rate, size)
        sign = F.sign(gradient * previous)
        has_turned = F.less(sign, 0.0)
        factor = F.select(F.greater(sign, 0.0), ones * group["etas"][1], ones)
        factor = F.select(has_turned, ones * group["etas"][0], factor)
        length = F.clip_by_value(length * factor, *map(float, group["step_sizes"]))
        gradient = F.select(has_turned, F.zeros_like(gradient), gradient)
        F.assign(size, length)
        F.assign(previous, gradient)
        F.assign(weight, weight - F.sign(gradient) * length)


publish(__name__)

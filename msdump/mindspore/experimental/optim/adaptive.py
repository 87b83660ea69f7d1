"""SGD, Adam and AdamW."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from msdump.mindspore.common.parameter import Parameter
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import call
from msdump.mindspore.experimental.optim.optimizer import _Stepping
from msdump.mindspore.names import publish
from msdump.mindspore.ops import function as F


class SGD(
    _Stepping, takes="params lr:from_0 momentum:from_0=0 dampening=0 weight_decay=0.0 nesterov=False | maximize=False"
):
    """Gradient descent, with momentum when it is above 0. Weight decay is part of the operator."""

    states: ClassVar[dict[str, Any]] = {"accum": "zeros", "stat": "ones"}
    decays = False

    def _begin(self, settings: dict[str, Any]) -> None:
        momentum, dampening = settings["momentum"], settings["dampening"]
        if settings["nesterov"] and (momentum <= 0 or dampening != 0):
            raise ValueError(
                "For 'SGD', if 'nesterov' is true, 'momentum' must be > 0.0 and 'dampening' must equal to 0.0, "
                f"but got 'momentum' {momentum}, 'dampening' {dampening}."
            )
        settings.update(momentum=float(momentum), grad_centralization=False)
        super()._begin(settings)

    def update(self, index: int, gradient: Tensor, rate: Parameter, group: dict[str, Any]) -> None:
        momentum = Tensor(np.float32(group["momentum"]))
        options = {name: group[name] for name in ("weight_decay", "nesterov")}
        states = (self.accum[index], momentum, self.stat[index])
        call("SGD", self.parameters[index], gradient, rate, *states, dampening=float(group["dampening"]), **options)

    accum: Any
    stat: Any


def _number(value: float) -> Tensor:
    return Tensor(np.float32(value))


class _Moments(_Stepping):
    """Base of those with running means of the gradient and of its square."""

    states: ClassVar[dict[str, Any]] = {"exp_avg": "zeros", "exp_avg_sq": "zeros"}
    counter = "step_t"

    exp_avg: Any
    exp_avg_sq: Any

    def means(self, index: int, gradient: Tensor, betas: tuple[float, float]) -> tuple[Tensor, Tensor]:
        """The running means, this gradient among them."""
        first = self.exp_avg[index] * betas[0] + gradient * (1 - betas[0])
        second = self.exp_avg_sq[index] * betas[1] + gradient * gradient * (1 - betas[1])
        F.assign(self.exp_avg[index], first)
        F.assign(self.exp_avg_sq[index], second)
        return first, second

    def bias(self, beta: float) -> Tensor:
        """1 - beta ** step."""
        return F.sub(1.0, F.pow(_number(beta), self.step()))


_SETTINGS = "params lr:from_0=0.001 betas:betas=(0.9,0.999) eps:from_0=1e-08"


class Adam(_Moments, takes=f"{_SETTINGS} weight_decay:from_0=0.0 amsgrad=False | maximize=False"):
    """Adaptive moments. `amsgrad`: the second moment never falls."""

    states: ClassVar[dict[str, Any]] = {**_Moments.states, "max_exp_avg_sq": "zeros"}
    counter = "state_step"

    max_exp_avg_sq: Any

    def update(self, index: int, gradient: Tensor, rate: Parameter, group: dict[str, Any]) -> None:
        states = [self.parameters[index], self.exp_avg[index], self.exp_avg_sq[index]]
        betas = [_number(beta) for beta in group["betas"]]
        powers = [F.pow(beta, self.step()) for beta in betas]
        numbers = (*powers, rate, *betas, _number(group["eps"]), gradient)
        if group["amsgrad"]:
            call("ApplyAdamWithAmsgradV2", *states, self.max_exp_avg_sq[index], *numbers, use_locking=False)
        else:
            call("Adam", *states, *numbers, use_locking=False, use_nesterov=False)


class AdamW(_Moments, takes=f"{_SETTINGS} weight_decay:from_0=0.01 amsgrad=False | maximize=False"):
    """Adam, whose weights decay beside the step of the gradient."""

    states: ClassVar[dict[str, Any]] = {**_Moments.states, "max_exp_avg_sq": "zeros"}
    counter = "state_step"
    decays = False

    max_exp_avg_sq: Any

    def update(self, index: int, gradient: Tensor, rate: Parameter, group: dict[str, Any]) -> None:
        weight, (beta1, beta2) = self.parameters[index], group["betas"]
        first, second = self.means(index, gradient, group["betas"])
        if group["amsgrad"]:
            second = F.maximum(self.max_exp_avg_sq[index], second)
            F.assign(self.max_exp_avg_sq[index], second)
        spread = F.sqrt(second) / F.sqrt(self.bias(beta2)) + group["eps"]
        decayed = weight * (1.0 - rate * group["weight_decay"])
        F.assign(weight, decayed - first / spread * (rate / self.bias(beta1)))


publish(__name__)

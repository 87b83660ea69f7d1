"""SGD, and optimizers that divide the gradient by what it was before: Adam, AdamW, Adagrad, Adadelta."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from msdump.mindspore.common.parameter import Parameter
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import call
from msdump.mindspore.experimental.optim.optimizer import _check_betas, _check_numbers, _Stepping
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


def _number(value: float) -> Tensor:
    return Tensor(np.float32(value))


class _Moments(_Stepping):
    """Base of those with running means of the gradient and of its square."""

    states: ClassVar[dict[str, Any]] = {"exp_avg": "zeros", "exp_avg_sq": "zeros"}
    counter = "step_t"

    exp_avg: Any
    exp_avg_sq: Any

    def __init__(
        self, params: Any, lr: Any, betas: tuple[float, float], eps: float, weight_decay: float, **options: Any
    ) -> None:
        _check_numbers(type(self).__name__, {}, {"lr": lr, "eps": eps, "weight_decay": weight_decay})
        _check_betas(type(self).__name__, betas)
        super().__init__(params, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, **options)

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


class Adam(_Moments):
    """Adaptive moments. `amsgrad`: the second moment never falls."""

    states: ClassVar[dict[str, Any]] = {**_Moments.states, "max_exp_avg_sq": "zeros"}
    counter = "state_step"

    max_exp_avg_sq: Any

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad=amsgrad, maximize=maximize)

    def update(self, index: int, gradient: Tensor, rate: Parameter, group: dict[str, Any]) -> None:
        states = [self.parameters[index], self.exp_avg[index], self.exp_avg_sq[index]]
        betas = [_number(beta) for beta in group["betas"]]
        powers = [F.pow(beta, self.step()) for beta in betas]
        numbers = (*powers, rate, *betas, _number(group["eps"]), gradient)
        if group["amsgrad"]:
            call("ApplyAdamWithAmsgradV2", *states, self.max_exp_avg_sq[index], *numbers, use_locking=False)
        else:
            call("Adam", *states, *numbers, use_locking=False, use_nesterov=False)


class AdamW(_Moments):
    """Adam, whose weights decay beside the step of the gradient."""

    states: ClassVar[dict[str, Any]] = {**_Moments.states, "max_exp_avg_sq": "zeros"}
    counter = "state_step"
    decays = False

    max_exp_avg_sq: Any

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad=amsgrad, maximize=maximize)

    def update(self, index: int, gradient: Tensor, rate: Parameter, group: dict[str, Any]) -> None:
        weight, (beta1, beta2) = self.parameters[index], group["betas"]
        first, second = self.means(index, gradient, group["betas"])
        if group["amsgrad"]:
            second = F.maximum(self.max_exp_avg_sq[index], second)
            F.assign(self.max_exp_avg_sq[index], second)
        spread = F.sqrt(second) / F.sqrt(self.bias(beta2)) + group["eps"]
        decayed = weight * (1.0 - rate * group["weight_decay"])
        F.assign(weight, decayed - first / spread * (rate / self.bias(beta1)))


class Adagrad(_Stepping):
    """Gradients over the root of the sum of their squares, with a rate that falls."""

    counter = "step_t"

    accum: Any

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
        *,
        maximize: bool = False,
    ) -> None:
        at_least = {"lr_decay": lr_decay, "weight_decay": weight_decay}
        at_least["initial_accumulator_value"] = initial_accumulator_value
        _check_numbers("Adagrad", {"lr": lr, "eps": eps}, at_least)
        options = {"lr_decay": lr_decay, "weight_decay": weight_decay, "eps": eps, "maximize": maximize}
        super().__init__(params, lr=lr, initial_accumulator_value=initial_accumulator_value, **options)

    def _starts(self) -> dict[str, Any]:
        return {"accum": self.defaults["initial_accumulator_value"]}

    def update(self, index: int, gradient: Tensor, rate: Parameter, group: dict[str, Any]) -> None:
        own = rate / (1.0 + (self.step() - 1.0) * group["lr_decay"])
        states = self.parameters[index], self.accum[index]
        call("ApplyAdagradV2", *states, own, gradient, epsilon=float(group["eps"]), update_slots=True)


class Adadelta(_Stepping):
    """Gradients over the root of the mean of their squares, times the root of the mean of squared steps."""

    states: ClassVar[dict[str, Any]] = {"accum": "zeros", "accum_update": "zeros"}

    accum: Any
    accum_update: Any

    def __init__(
        self,
        params: Any,
        lr: Any = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        _check_numbers("Adadelta", {"lr": lr, "eps": eps}, {"weight_decay": weight_decay})
        if not 0 <= rho <= 1:
            raise ValueError(f"For 'Adadelta', the 'rho' must be in range [0.0, 1.0], but got {rho}.")
        super().__init__(params, lr=lr, rho=rho, eps=eps, weight_decay=weight_decay, maximize=maximize)

    def update(self, index: int, gradient: Tensor, rate: Parameter, group: dict[str, Any]) -> None:
        states = self.parameters[index], self.accum[index], self.accum_update[index]
        call("ApplyAdadelta", *states, rate, _number(group["rho"]), _number(group["eps"]), gradient)


publish(__name__)

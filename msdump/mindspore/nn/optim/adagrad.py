"""Optimizers that divide by the root of summed or averaged squares: Adagrad, Adadelta, FTRL, ProximalAdagrad."""

from __future__ import annotations

from typing import Any

import numpy as np

from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import call
from msdump.mindspore.names import publish
from msdump.mindspore.nn.optim.optimizer import Optimizer


def _check_numbers(cls_name: str, **numbers: float) -> None:
    """Raises: TypeError for what is no float, ValueError for negative ones."""
    for name, number in numbers.items():
        if isinstance(number, bool) or not isinstance(number, float):
            raise TypeError(f"For '{cls_name}', the type of '{name}' must be float, but got {type(number).__name__}.")
        if number < 0:
            raise ValueError(f"For '{cls_name}', the '{name}' must be >= 0, but got {number}.")


def _scalar(number: float) -> Tensor:
    return Tensor(np.float32(number))


class Adagrad(Optimizer):
    """Gradients over the root of the sum of their squares. `update_slots` False leaves that sum as it is."""

    def __init__(
        self,
        params: Any,
        accum: float = 0.1,
        learning_rate: Any = 1e-3,
        update_slots: bool = True,
        loss_scale: float = 1.0,
        weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        _check_numbers("Adagrad", accum=accum)
        if not isinstance(update_slots, bool):
            raise TypeError(f"For 'Adagrad', the type of 'update_slots' must be bool, but got {type(update_slots)}.")
        self.accum = self.parameters.clone("accum", accum)
        self.update_slots = update_slots

    def update(self, index: int, gradient: Tensor, rate: Tensor, decay: Tensor) -> None:
        states = self.parameters[index], self.accum[index]
        call("ApplyAdagrad", *states, rate, gradient, update_slots=self.update_slots)


class Adadelta(Optimizer):
    """Gradients over the root of the mean of their squares, times the root of the mean of squared steps."""

    def __init__(
        self,
        params: Any,
        learning_rate: Any = 1.0,
        rho: float = 0.9,
        epsilon: float = 1e-6,
        loss_scale: float = 1.0,
        weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        _check_numbers("Adadelta", rho=rho, epsilon=epsilon)
        if rho > 1:
            raise ValueError(f"For 'Adadelta', the 'rho' must be in range [0.0, 1.0], but got {rho}.")
        self.accum = self.parameters.clone("accum", 0)
        self.accum_update = self.parameters.clone("accum_update", 0)
        self.rho, self.epsilon = rho, epsilon

    def update(self, index: int, gradient: Tensor, rate: Tensor, decay: Tensor) -> None:
        states = self.parameters[index], self.accum[index], self.accum_update[index]
        call("ApplyAdadelta", *states, rate, _scalar(self.rho), _scalar(self.epsilon), gradient)


class FTRL(Optimizer):
    """Follow the regularized leader: small weights become exactly 0."""

    is_reversed = False

    def __init__(
        self,
        params: Any,
        initial_accum: float = 0.1,
        learning_rate: float = 1e-3,
        lr_power: float = -0.5,
        l1: float = 0.0,
        l2: float = 0.0,
        use_locking: bool = False,
        loss_scale: float = 1.0,
        weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        if self.dynamic_lr or self.is_group_lr:
            raise ValueError(
                "For 'FTRL', dynamic learning rate and group learning rate are currently not supported, they should "
                f"all be false, but got dynamic learning rate {self.dynamic_lr} and group {self.is_group_lr}."
            )
        _check_numbers("FTRL", initial_accum=initial_accum, learning_rate=learning_rate, l1=l1, l2=l2)
        if lr_power > 0:
            raise ValueError(f"For 'FTRL', the 'lr_power' must be <= 0.0, but got {lr_power}.")
        self.moments = self.parameters.clone("moments", initial_accum)
        self.linear = self.parameters.clone("linear", "zeros")
        self.l1, self.l2, self.lr_power, self.use_locking = l1, l2, lr_power, use_locking
        if not self.is_group:
            # Source: here the weights of normalisations decay as well.
            self.decay_flags = (self.exec_weight_decay,) * self.param_length

    def update(self, index: int, gradient: Tensor, rate: Tensor, decay: Tensor) -> None:
        states = self.parameters[index], self.moments[index], self.linear[index]
        numbers = (rate, _scalar(self.l1), _scalar(self.l2), _scalar(self.lr_power))
        call("ApplyFtrl", *states, gradient, *numbers, use_locking=self.use_locking)


publish(__name__)

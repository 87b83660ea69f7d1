"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from msdump.frontends.mindspore.common.parameter import Parameter
from msdump.frontends.mindspore.common.tensor import Tensor
from msdump.frontends.mindspore.dispatch import call
from msdump.frontends.mindspore.nn.optim.optimizer import Optimizer


class SGD(Optimizer):
    """Gradient descent, with momentum when it is above 0. Weight decay is part of the operator."""

    def __init__(
        self,
        params: Any,
        learning_rate: Any = 0.1,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        loss_scale: float = 1.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        for name, number in (("momentum", momentum), ("dampening", dampening)):
            if number < 0:
                raise ValueError(f"For 'SGD', the argument '{name}' must be at least 0.0, but got {number}.")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError(
                "For 'SGD', if 'nesterov' is true, 'momentum' must be > 0.0 and 'dampening' must equal to 0.0."
            )
        self.dampening, self.nesterov = float(dampening), nesterov
        self.momentum = Parameter(Tensor(float(momentum)), "momentum", requires_grad=False)
        self.accum = self.parameters.clone("accum", "zeros")
        self.stat = self.parameters.clone("stat", "ones")

    def _decayed(self, index: int, gradient: Tensor) -> Tensor:
        return gradient

    def update(self, index: int, gradient: Tensor, rate: Tensor) -> None:
        call(
            "SGD",
            self.parameters[index],
            gradient,
            rate,
            self.accum[index],
            self.momentum,
            self.stat[index],
            dampening=self.dampening,
            weight_decay=self._decays[index],
            nesterov=self.nesterov,
        )

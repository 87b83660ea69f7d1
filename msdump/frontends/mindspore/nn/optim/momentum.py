"""Momentum."""

from __future__ import annotations

from typing import Any

from msdump.frontends.mindspore.common.parameter import Parameter
from msdump.frontends.mindspore.common.tensor import Tensor
from msdump.frontends.mindspore.dispatch import call
from msdump.frontends.mindspore.nn.optim.optimizer import Optimizer


class Momentum(Optimizer):
    """moment = moment * momentum + gradient;  parameter -= rate * moment."""

    def __init__(
        self,
        params: Any,
        learning_rate: Any,
        momentum: float,
        weight_decay: float = 0.0,
        loss_scale: float = 1.0,
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        if not isinstance(momentum, int | float) or momentum < 0:
            raise ValueError(f"For 'Momentum', the argument 'momentum' must be at least 0.0, but got {momentum}.")
        self.momentum = Parameter(Tensor(float(momentum)), "momentum", requires_grad=False)
        self.use_nesterov = use_nesterov
        self.moments = self.parameters.clone("moments", "zeros")

    def update(self, index: int, gradient: Tensor, rate: Tensor) -> None:
        call(
            "ApplyMomentum",
            self.parameters[index],
            self.moments[index],
            rate,
            gradient,
            self.momentum,
            use_nesterov=self.use_nesterov,
            use_locking=False,
            gradient_scale=1.0,
        )

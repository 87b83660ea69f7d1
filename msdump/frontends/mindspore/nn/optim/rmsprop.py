"""RMSProp."""

from __future__ import annotations

from typing import Any

from msdump.frontends.mindspore.common.tensor import Tensor
from msdump.frontends.mindspore.dispatch import call
from msdump.frontends.mindspore.nn.optim.optimizer import Optimizer


class RMSProp(Optimizer):
    """Gradients divided by the root of their running mean square."""

    def __init__(
        self,
        params: Any,
        learning_rate: Any = 0.1,
        decay: float = 0.9,
        momentum: float = 0.0,
        epsilon: float = 1e-10,
        use_locking: bool = False,
        centered: bool = False,
        loss_scale: float = 1.0,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        for name, number in (("decay", decay), ("momentum", momentum)):
            if number < 0:
                raise ValueError(f"For 'RMSProp', the '{name}' must be at least 0.0, but got {number}.")
        if epsilon <= 0:
            raise ValueError(f"For 'RMSProp', the 'epsilon' must be > 0, but got {epsilon}.")
        self.centered = centered
        self._numbers = {"rho": float(decay), "momentum": float(momentum), "epsilon": float(epsilon)}
        self._numbers["use_locking"] = use_locking
        self.mean_square = self.parameters.clone("mean_square", "ones")
        self.moment = self.parameters.clone("moment", "zeros")
        if centered:
            self.mg = self.parameters.clone("mean_grad", "zeros")

    def update(self, index: int, gradient: Tensor, rate: Tensor) -> None:
        weight, square, moment = self.parameters[index], self.mean_square[index], self.moment[index]
        if self.centered:
            call("ApplyCenteredRMSProp", weight, self.mg[index], square, moment, gradient, rate, **self._numbers)
        else:
            call("ApplyRMSProp", weight, square, moment, rate, gradient, **self._numbers)

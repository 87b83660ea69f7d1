"""Momentum."""

from __future__ import annotations

from typing import Any

from msdump.mindspore.common.parameter import Parameter
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import call
from msdump.mindspore.names import publish
from msdump.mindspore.nn.optim.optimizer import Optimizer
from msdump.mindspore.releases import SGD_DECAY


class Momentum(Optimizer):
    """moment = moment * momentum + gradient;  parameter -= rate * moment."""

    def __init__(
        self,
        params: Any,
        learning_rate: Any,
        momentum: float,
        weight_decay: Any = 0.0,
        loss_scale: float = 1.0,
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        if not isinstance(momentum, int | float) or momentum < 0:
            raise ValueError(f"For 'Momentum', the argument 'momentum' must be at least 0.0, but got {momentum}.")
        self.momentum = Parameter(Tensor(float(momentum)), "momentum", requires_grad=False)
        self.use_nesterov = use_nesterov
        self.moments = self.parameters.clone("moments", "zeros")

    def update(self, index: int, gradient: Tensor, rate: Tensor, decay: Tensor) -> None:
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


class SGD(Optimizer):
    """Gradient descent, with momentum when it is above 0. Weight decay was part of the operator in MindSpore 2.0."""

    def __init__(
        self,
        params: Any,
        learning_rate: Any = 0.1,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: Any = 0.0,
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
        if self.dynamic_weight_decay:
            raise TypeError(
                "For 'SGD', dynamic weight decay is currently not supported, the argument 'weight_decay' or "
                "'weight_decay' set in grouped 'params' must be float or int type."
            )
        self.dampening, self.nesterov = float(dampening), nesterov
        self.momentum = Parameter(Tensor(float(momentum)), "momentum", requires_grad=False)
        self.accum = self.parameters.clone("accum", "zeros")
        self.stat = self.parameters.clone("stat", "ones")

    def _decayed(self, index: int, gradient: Tensor, decay: Tensor) -> Tensor:
        return super()._decayed(index, gradient, decay) if SGD_DECAY.is_in_force else gradient

    def update(self, index: int, gradient: Tensor, rate: Tensor, decay: Tensor) -> None:
        call(
            "SGD",
            self.parameters[index],
            gradient,
            rate,
            self.accum[index],
            self.momentum,
            self.stat[index],
            dampening=self.dampening,
            weight_decay=0.0 if SGD_DECAY.is_in_force else self._decays[index],
            nesterov=self.nesterov,
        )


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
        weight_decay: Any = 0.0,
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

    def update(self, index: int, gradient: Tensor, rate: Tensor, decay: Tensor) -> None:
        weight, square, moment = self.parameters[index], self.mean_square[index], self.moment[index]
        if self.centered:
            call("ApplyCenteredRMSProp", weight, self.mg[index], square, moment, gradient, rate, **self._numbers)
        else:
            call("ApplyRMSProp", weight, square, moment, rate, gradient, **self._numbers)


publish(__name__)

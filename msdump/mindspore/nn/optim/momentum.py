"""Momentum."""

from __future__ import annotations

from msdump.mindspore.common.parameter import Parameter
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.names import publish
from msdump.mindspore.nn.optim.optimizer import _DeclaredOptimizer
from msdump.mindspore.releases import SGD_DECAY


class Momentum(
    _DeclaredOptimizer, takes="params learning_rate momentum weight_decay=0.0 loss_scale=1.0 use_nesterov=False"
):
    """moment = moment * momentum + gradient;  parameter -= rate * moment."""

    def _set_up(self, momentum: float) -> None:
        if not isinstance(momentum, int | float) or momentum < 0:
            raise ValueError(f"For 'Momentum', the argument 'momentum' must be at least 0.0, but got {momentum}.")
        self.momentum = Parameter(Tensor(float(momentum)), "momentum", requires_grad=False)
        self.moments = self.parameters.clone("moments", "zeros")

    def update(self, index: int, gradient: Tensor, rate: Tensor, decay: Tensor) -> None:
        attrs = {"use_nesterov": self.use_nesterov, "use_locking": False, "gradient_scale": 1.0}
        self.call("ApplyMomentum", index, (self.moments,), rate, gradient, self.momentum, **attrs)


class SGD(
    _DeclaredOptimizer,
    takes="params learning_rate=0.1 momentum=0.0 dampening=0.0 weight_decay=0.0 nesterov=False loss_scale=1.0",
):
    """Gradient descent, with momentum when it is above 0. Weight decay was part of the operator in MindSpore 2.0."""

    def _set_up(self, momentum: float, dampening: float) -> None:
        for name, number in (("momentum", momentum), ("dampening", dampening)):
            if number < 0:
                raise ValueError(f"For 'SGD', the argument '{name}' must be at least 0.0, but got {number}.")
        if self.nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError(
                "For 'SGD', if 'nesterov' is true, 'momentum' must be > 0.0 and 'dampening' must equal to 0.0."
            )
        if self.dynamic_weight_decay:
            raise TypeError(
                "For 'SGD', dynamic weight decay is currently not supported, the argument 'weight_decay' or "
                "'weight_decay' set in grouped 'params' must be float or int type."
            )
        self.dampening = float(dampening)
        self.momentum = Parameter(Tensor(float(momentum)), "momentum", requires_grad=False)
        self.accum = self.parameters.clone("accum", "zeros")
        self.stat = self.parameters.clone("stat", "ones")

    def _decayed(self, index: int, gradient: Tensor, decay: Tensor) -> Tensor:
        return super()._decayed(index, gradient, decay) if SGD_DECAY.is_in_force else gradient

    def update(self, index: int, gradient: Tensor, rate: Tensor, decay: Tensor) -> None:
        operands = (gradient, rate, self.accum[index], self.momentum, self.stat[index])
        weight_decay = 0.0 if SGD_DECAY.is_in_force else self._decays[index]
        attrs = {"dampening": self.dampening, "weight_decay": weight_decay, "nesterov": self.nesterov}
        self.call("SGD", index, (), *operands, **attrs)


class RMSProp(
    _DeclaredOptimizer,
    takes="params learning_rate=0.1 decay:least_0=0.9 momentum:least_0=0.0 epsilon:above_0=1e-10 use_locking=False "
    "centered=False loss_scale=1.0 weight_decay=0.0",
):
    """Gradients divided by the root of their running mean square."""

    def _set_up(self, decay: float, momentum: float, epsilon: float, use_locking: bool) -> None:
        self._numbers = {"rho": float(decay), "momentum": float(momentum), "epsilon": float(epsilon)}
        self._numbers["use_locking"] = use_locking
        self.mean_square = self.parameters.clone("mean_square", "ones")
        self.moment = self.parameters.clone("moment", "zeros")
        if self.centered:
            self.mg = self.parameters.clone("mean_grad", "zeros")

    def update(self, index: int, gradient: Tensor, rate: Tensor, decay: Tensor) -> None:
        if self.centered:
            states = (self.mg, self.mean_square, self.moment)
            self.call("ApplyCenteredRMSProp", index, states, gradient, rate, **self._numbers)
        else:
            self.call("ApplyRMSProp", index, (self.mean_square, self.moment), rate, gradient, **self._numbers)


publish(__name__)

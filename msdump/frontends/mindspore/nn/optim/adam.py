"""Adam, and Adam with decoupled weight decay."""

from __future__ import annotations

from typing import Any

import numpy as np

from msdump.frontends.mindspore.common.parameter import Parameter
from msdump.frontends.mindspore.common.tensor import Tensor
from msdump.frontends.mindspore.dispatch import call
from msdump.frontends.mindspore.names import publish
from msdump.frontends.mindspore.nn.optim.optimizer import Optimizer
from msdump.frontends.mindspore.ops import function as F


def _check_betas(cls_name: str, beta1: float, beta2: float, eps: float) -> None:
    for name, number in (("beta1", beta1), ("beta2", beta2)):
        if not 0 < number < 1:
            raise ValueError(f"For '{cls_name}', the '{name}' must be in range (0.0, 1.0), but got {number}.")
    if eps <= 0:
        raise ValueError(f"For '{cls_name}', the 'eps' must be > 0, but got {eps}.")


class Adam(Optimizer):
    """Adaptive moments."""

    def __init__(
        self,
        params: Any,
        learning_rate: Any = 1e-3,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-8,
        use_locking: bool = False,
        use_nesterov: bool = False,
        weight_decay: float = 0.0,
        loss_scale: float = 1.0,
        use_amsgrad: bool = False,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        _check_betas("Adam", beta1, beta2, eps)
        if use_amsgrad:
            raise ValueError("For 'Adam', 'use_amsgrad' must be False here, but got True.")
        self.use_locking, self.use_nesterov = use_locking, use_nesterov
        self.beta1, self.beta2, self.eps = Tensor(float(beta1)), Tensor(float(beta2)), Tensor(float(eps))
        self.beta1_power = Parameter(Tensor(np.ones(1, np.float32)), "beta1_power", requires_grad=False)
        self.beta2_power = Parameter(Tensor(np.ones(1, np.float32)), "beta2_power", requires_grad=False)
        self.moment1 = self.parameters.clone("moment1", "zeros")
        self.moment2 = self.parameters.clone("moment2", "zeros")

    def prepare(self) -> None:
        """Powers of both betas: two Mul and two Assign a step, as in MindSpore's graphs."""
        powers = [F.mul(self.beta1_power, self.beta1), F.mul(self.beta2_power, self.beta2)]
        F.assign(self.beta1_power, powers[0])
        F.assign(self.beta2_power, powers[1])
        object.__setattr__(self, "_powers", powers)

    _powers: list[Tensor]

    def update(self, index: int, gradient: Tensor, rate: Tensor) -> None:
        call(
            "Adam",
            self.parameters[index],
            self.moment1[index],
            self.moment2[index],
            *self._powers,
            rate,
            self.beta1,
            self.beta2,
            self.eps,
            gradient,
            use_locking=self.use_locking,
            use_nesterov=self.use_nesterov,
        )


class AdamWeightDecay(Optimizer):
    """Adam without bias correction; weight decay is part of the operator."""

    def __init__(
        self,
        params: Any,
        learning_rate: Any = 1e-3,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-6,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay)
        _check_betas("AdamWeightDecay", beta1, beta2, eps)
        self.beta1, self.beta2, self.eps = Tensor(float(beta1)), Tensor(float(beta2)), Tensor(float(eps))
        self.moments1 = self.parameters.clone("adam_m", "zeros")
        self.moments2 = self.parameters.clone("adam_v", "zeros")

    def _decayed(self, index: int, gradient: Tensor) -> Tensor:
        return gradient

    def update(self, index: int, gradient: Tensor, rate: Tensor) -> None:
        call(
            "AdamWeightDecay",
            self.parameters[index],
            self.moments1[index],
            self.moments2[index],
            rate,
            self.beta1,
            self.beta2,
            self.eps,
            Tensor(self._decays[index]),
            gradient,
            use_locking=False,
        )


publish(__name__)

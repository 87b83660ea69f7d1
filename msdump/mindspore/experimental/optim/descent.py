"""Optimizers that go along the gradient or its sign: SGD, ASGD, Rprop."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from msdump.mindspore.common.parameter import Parameter
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import call
from msdump.mindspore.experimental.optim.optimizer import _check_numbers, _Stepping
from msdump.mindspore.names import publish


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


publish(__name__)

"""LARS: another optimizer, whose gradients are scaled before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from msdump.mindspore.common.parameter import Parameter
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import call, cast, execute
from msdump.mindspore.names import publish
from msdump.mindspore.nn.optim.optimizer import Optimizer
from msdump.mindspore.ops import function as F
from msdump.mindspore.tracer import current_tracer


def _is_scaled(parameter: Parameter) -> bool:
    return "LayerNorm" not in parameter.name and "bias" not in parameter.name


class LARS(Optimizer):
    """Another optimizer, whose gradients are scaled by |weight| / |gradient| before."""

    def __init__(
        self, optimizer: Optimizer, epsilon: float = 1e-5, coefficient: float = 1e-3, use_clip: bool = False,
        lars_filter: Callable[[Parameter], bool] = _is_scaled,
    ) -> None:  # fmt: skip
        super().__init__(0.0, [Parameter(Tensor(0.0), name="fake_param")])
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"For 'LARS', the type of 'optimizer' must be Optimizer, but got {type(optimizer)}.")
        self.opt, self.parameters = optimizer, optimizer.parameters
        self.lars_flag = tuple(bool(lars_filter(parameter)) for parameter in optimizer.parameters)
        self._attrs = {"epsilon": float(epsilon), "hyperpara": float(coefficient), "use_clip": bool(use_clip)}
        # This optimizer decays weights and scales gradients in place of the one that it wraps.
        self._own_flags, optimizer.decay_flags = optimizer.decay_flags, (False,) * len(self.lars_flag)
        self.need_scale, optimizer.need_scale = optimizer.need_scale, False
        self.reciprocal_scale, optimizer.exec_weight_decay = optimizer.reciprocal_scale, False

    def construct(self, gradients: Sequence[Tensor]) -> bool:
        tracer = current_tracer()
        with nullcontext() if tracer is None else tracer.updating():
            scaled = [self._scaled(index, self._unscaled(gradient)) for index, gradient in enumerate(gradients)]
        return self.opt.construct(scaled)

    def _scaled(self, index: int, gradient: Tensor) -> Tensor:
        if not self.lars_flag[index]:
            return gradient
        weight, opt = self.parameters[index], self.opt
        norms = execute("SquareSumAll", [weight, gradient])
        decay: Any = opt.weight_decay[index] if opt.is_group else opt.weight_decay
        decay = F.div(decay, opt.loss_scale) if self._own_flags[index] else Tensor(np.float32(0))
        rate = opt._rate_of[index].construct(opt.global_step) if self._attrs["use_clip"] else Tensor(np.float32(0))
        return call("LARSUpdate", weight, gradient, *norms, cast(decay, "float32"), rate, **self._attrs)


publish(__name__)

"""Learning rates computed from the step while a graph runs."""

from __future__ import annotations

import math
from typing import Any

from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.names import publish
from msdump.mindspore.nn.cell import Cell
from msdump.mindspore.nn.dynamic_lr import check_rates, check_steps
from msdump.mindspore.ops import function as F


class LearningRateSchedule(Cell):
    """Base: `construct(global_step)` gives the learning rate of that step."""

    def construct(self, global_step: Tensor) -> Tensor:
        raise NotImplementedError(f"{self.cls_name}: expected a construct(global_step) method.")


class _Decay(LearningRateSchedule):
    """What falling rates share; with `is_stair` they fall once in `decay_steps` steps."""

    def __init__(self, learning_rate: float, decay_rate: float, decay_steps: int, is_stair: bool = False) -> None:
        super().__init__()
        check_rates(self.cls_name, learning_rate=learning_rate, decay_rate=decay_rate)
        check_steps(self.cls_name, decay_steps=decay_steps)
        self.learning_rate, self.decay_rate, self.decay_steps = learning_rate, decay_rate, decay_steps
        self.is_stair = is_stair

    def _part(self, global_step: Tensor) -> Tensor:
        """The step in units of `decay_steps`."""
        part = F.div(F.cast(global_step, "float32"), float(self.decay_steps))
        return F.floor(part) if self.is_stair else part


class ExponentialDecayLR(_Decay):
    """learning_rate * decay_rate ** (step / decay_steps)."""

    def construct(self, global_step: Tensor) -> Tensor:
        return F.mul(F.pow(Tensor(self.decay_rate), self._part(global_step)), self.learning_rate)


class NaturalExpDecayLR(_Decay):
    """learning_rate * e ** (-decay_rate * step)."""

    def construct(self, global_step: Tensor) -> Tensor:
        step = F.cast(global_step, "float32")
        if self.is_stair:
            step = F.mul(F.floor_div(step, float(self.decay_steps)), float(self.decay_steps))
        return F.mul(F.pow(Tensor(math.e), F.mul(step, -self.decay_rate)), self.learning_rate)


class InverseDecayLR(_Decay):
    """learning_rate / (1 + decay_rate * step / decay_steps)."""

    def construct(self, global_step: Tensor) -> Tensor:
        return F.div(self.learning_rate, F.add(F.mul(self._part(global_step), self.decay_rate), 1.0))


class CosineDecayLR(LearningRateSchedule):
    """From max_lr to min_lr along half a cosine of decay_steps steps."""

    def __init__(self, min_lr: float, max_lr: float, decay_steps: int) -> None:
        super().__init__()
        check_rates(self.cls_name, 0.0, min_lr=min_lr)
        check_rates(self.cls_name, max_lr=max_lr)
        check_steps(self.cls_name, decay_steps=decay_steps)
        if min_lr >= max_lr:
            raise ValueError(
                f"For 'CosineDecayLR', the 'max_lr' must be greater than the 'min_lr', got {max_lr}, {min_lr}."
            )
        self.min_lr, self.max_lr, self.decay_steps = min_lr, max_lr, decay_steps

    def construct(self, global_step: Tensor) -> Tensor:
        step = F.cast(F.minimum(global_step, self.decay_steps), "float32")
        wave = F.sin(F.mul(F.add(F.div(step, float(self.decay_steps)), 0.5), math.pi))
        return F.add(F.mul(F.add(wave, 1.0), 0.5 * (self.max_lr - self.min_lr)), self.min_lr)


class PolynomialDecayLR(LearningRateSchedule):
    """From learning_rate to end_learning_rate; with `update_decay_steps` again from the start after decay_steps."""

    def __init__(
        self,
        learning_rate: float,
        end_learning_rate: float,
        decay_steps: int,
        power: float,
        update_decay_steps: bool = False,
    ) -> None:
        super().__init__()
        check_rates(self.cls_name, learning_rate=learning_rate, power=power)
        check_rates(self.cls_name, 0.0, end_learning_rate=end_learning_rate)
        check_steps(self.cls_name, decay_steps=decay_steps)
        self.start_learning_rate, self.end_learning_rate = learning_rate, end_learning_rate
        self.decay_steps, self.power, self.update_decay_steps = decay_steps, power, update_decay_steps

    def construct(self, global_step: Tensor) -> Tensor:
        step, length = F.cast(global_step, "float32"), float(self.decay_steps)
        steps: Any = length
        if self.update_decay_steps:
            steps = F.mul(F.maximum(F.ceil(F.div(step, length)), 1.0), length)
        else:
            step = F.minimum(step, length)
        rest = F.pow(F.sub(1.0, F.div(step, steps)), self.power)
        return F.add(F.mul(rest, self.start_learning_rate - self.end_learning_rate), self.end_learning_rate)


class WarmUpLR(LearningRateSchedule):
    """From 0 to learning_rate in warmup_steps steps."""

    def __init__(self, learning_rate: float, warmup_steps: int) -> None:
        super().__init__()
        check_rates(self.cls_name, 0.0, learning_rate=learning_rate)
        check_steps(self.cls_name, warmup_steps=warmup_steps)
        self.learning_rate, self.warmup_steps = learning_rate, warmup_steps

    def construct(self, global_step: Tensor) -> Tensor:
        step = F.cast(F.minimum(global_step, self.warmup_steps), "float32")
        return F.mul(F.div(step, float(self.warmup_steps)), self.learning_rate)


publish(__name__)

"""Learning rates computed from the step while a graph runs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msdump.frontends.mindspore.common.tensor import Tensor
from msdump.frontends.mindspore.names import publish
from msdump.frontends.mindspore.nn.cell import Cell
from msdump.frontends.mindspore.ops import function as F


class LearningRateSchedule(Cell):
    """Base: `construct(global_step)` gives the learning rate of that step."""

    def construct(self, global_step: Tensor) -> Tensor:
        raise NotImplementedError(f"{self.cls_name}: expected a construct(global_step) method.")


class ExponentialDecayLR(LearningRateSchedule):
    """learning_rate * decay_rate ** (step / decay_steps)."""

    def __init__(self, learning_rate: float, decay_rate: float, decay_steps: int, is_stair: bool = False) -> None:
        super().__init__()
        self.learning_rate, self.decay_rate, self.decay_steps = learning_rate, decay_rate, decay_steps
        self.is_stair = is_stair

    def construct(self, global_step: Tensor) -> Tensor:
        power = F.div(F.cast(global_step, "float32"), float(self.decay_steps))
        if self.is_stair:
            power = F.floor(power)
        return F.mul(F.pow(Tensor(self.decay_rate), power), self.learning_rate)


class CosineDecayLR(LearningRateSchedule):
    """From max_lr to min_lr along half a cosine of decay_steps steps."""

    def __init__(self, min_lr: float, max_lr: float, decay_steps: int) -> None:
        super().__init__()
        if min_lr >= max_lr:
            raise ValueError(
                f"For 'CosineDecayLR', the 'max_lr' must be greater than the 'min_lr', got {max_lr}, {min_lr}."
            )
        self.min_lr, self.max_lr, self.decay_steps = min_lr, max_lr, decay_steps

    def construct(self, global_step: Tensor) -> Tensor:
        step = F.minimum(F.cast(global_step, "float32"), float(self.decay_steps))
        wave = F.add(F.cos(F.mul(step, math.pi / self.decay_steps)), 1.0)
        return F.add(F.mul(wave, 0.5 * (self.max_lr - self.min_lr)), self.min_lr)


class WarmUpLR(LearningRateSchedule):
    """From 0 to learning_rate in warmup_steps steps."""

    def __init__(self, learning_rate: float, warmup_steps: int) -> None:
        super().__init__()
        self.learning_rate, self.warmup_steps = learning_rate, warmup_steps

    def construct(self, global_step: Tensor) -> Tensor:
        part = F.minimum(F.div(F.cast(global_step, "float32"), float(self.warmup_steps)), 1.0)
        return F.mul(part, self.learning_rate)


def _check(total_step: int, step_per_epoch: int, decay_epoch: int) -> None:
    for name, number in (("total_step", total_step), ("step_per_epoch", step_per_epoch), ("decay_epoch", decay_epoch)):
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise ValueError(f"{name}: expected a positive int, got {number!r}.")


def cosine_decay_lr(
    min_lr: float, max_lr: float, total_step: int, step_per_epoch: int, decay_epoch: int
) -> list[float]:
    """From max_lr to min_lr along half a cosine of decay_epoch epochs."""
    _check(total_step, step_per_epoch, decay_epoch)
    if min_lr >= max_lr:
        raise ValueError(
            f"For 'cosine_decay_lr', the 'max_lr' must be greater than the 'min_lr', got {max_lr}, {min_lr}."
        )
    delta = 0.5 * (max_lr - min_lr)
    epochs = (min(step // step_per_epoch, decay_epoch) for step in range(total_step))
    return [min_lr + delta * (1 + math.cos(math.pi * epoch / decay_epoch)) for epoch in epochs]


def exponential_decay_lr(
    learning_rate: float,
    decay_rate: float,
    total_step: int,
    step_per_epoch: int,
    decay_epoch: int,
    is_stair: bool = False,
) -> list[float]:
    """learning_rate * decay_rate ** (epoch / decay_epoch)."""
    _check(total_step, step_per_epoch, decay_epoch)
    powers = ((step // step_per_epoch) / decay_epoch for step in range(total_step))
    return [learning_rate * decay_rate ** (math.floor(power) if is_stair else power) for power in powers]


def piecewise_constant_lr(milestone: Sequence[int], learning_rates: Sequence[float]) -> list[float]:
    """learning_rates[i] up to step milestone[i]."""
    if len(milestone) != len(learning_rates) or not milestone:
        raise ValueError(
            f"piecewise_constant_lr: expected as many rates as milestones, got {milestone}, {learning_rates}."
        )
    rates: list[float] = []
    for last, rate in zip(milestone, learning_rates, strict=True):
        if last < len(rates):
            raise ValueError(f"piecewise_constant_lr: expected rising milestones, got {milestone}.")
        rates.extend([rate] * (last - len(rates)))
    return rates


def warmup_lr(learning_rate: float, total_step: int, step_per_epoch: int, warmup_epoch: int) -> list[float]:
    """From 0 to learning_rate in warmup_epoch epochs."""
    _check(total_step, step_per_epoch, max(warmup_epoch, 1))
    epochs = (min(step // step_per_epoch, warmup_epoch) for step in range(total_step))
    return [learning_rate * epoch / warmup_epoch if warmup_epoch else learning_rate for epoch in epochs]


publish(__name__)

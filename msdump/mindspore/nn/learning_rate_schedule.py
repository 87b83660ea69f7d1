"""Learning rates: computed from the step while a graph runs, or as lists with one number for each step."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from msdump.mindspore.common.declared import KINDS, checked_settings
from msdump.mindspore.common.signatures import declared
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.names import publish
from msdump.mindspore.nn.cell import Cell
from msdump.mindspore.nn.declared import Declared
from msdump.mindspore.ops import function as F


class LearningRateSchedule(Cell):
    """Base: `construct(global_step)` gives the learning rate of that step."""

    def construct(self, global_step: Tensor) -> Tensor:
        raise NotImplementedError(f"{self.cls_name}: expected a construct(global_step) method.")


class _Decay(
    LearningRateSchedule, Declared, takes="learning_rate:rate decay_rate:rate decay_steps:steps is_stair=False"
):
    """What falling rates share; with `is_stair` they fall once in `decay_steps` steps."""

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


class CosineDecayLR(LearningRateSchedule, Declared, takes="min_lr:rate_from_0 max_lr:rate decay_steps:steps"):
    """From max_lr to min_lr along half a cosine of decay_steps steps."""

    def _set_up(self) -> None:
        _check_order(self.cls_name, self.min_lr, self.max_lr)

    def construct(self, global_step: Tensor) -> Tensor:
        step = F.cast(F.minimum(global_step, self.decay_steps), "float32")
        wave = F.sin(F.mul(F.add(F.div(step, float(self.decay_steps)), 0.5), math.pi))
        return F.add(F.mul(F.add(wave, 1.0), 0.5 * (self.max_lr - self.min_lr)), self.min_lr)


class PolynomialDecayLR(
    LearningRateSchedule,
    Declared,
    takes="learning_rate:rate end_learning_rate:rate_from_0 decay_steps:steps power:rate update_decay_steps=False",
):
    """From learning_rate to end_learning_rate; with `update_decay_steps` again from the start after decay_steps."""

    def _set_up(self, learning_rate: float) -> None:
        self.start_learning_rate = learning_rate

    def construct(self, global_step: Tensor) -> Tensor:
        step, length = F.cast(global_step, "float32"), float(self.decay_steps)
        steps: Any = length
        if self.update_decay_steps:
            steps = F.mul(F.maximum(F.ceil(F.div(step, length)), 1.0), length)
        else:
            step = F.minimum(step, length)
        rest = F.pow(F.sub(1.0, F.div(step, steps)), self.power)
        return F.add(F.mul(rest, self.start_learning_rate - self.end_learning_rate), self.end_learning_rate)


class WarmUpLR(LearningRateSchedule, Declared, takes="learning_rate:rate_from_0 warmup_steps:steps"):
    """From 0 to learning_rate in warmup_steps steps."""

    def construct(self, global_step: Tensor) -> Tensor:
        step = F.cast(F.minimum(global_step, self.warmup_steps), "float32")
        return F.mul(F.div(step, float(self.warmup_steps)), self.learning_rate)


def _check_order(where: str, min_lr: float, max_lr: float) -> None:
    if min_lr >= max_lr:
        raise ValueError(f"For '{where}', the 'max_lr' must be greater than the 'min_lr', got {max_lr}, {min_lr}.")


def _listed(takes: str) -> Callable[[Callable[..., float]], Any]:
    """Decorator: the rate of an epoch, counted from 0, becomes the function that lists the rates of all steps.

    takes   settings, as `declared` reads them; "total_step" and "step_per_epoch" are not for the rate
    """
    signature, kinds = declared(takes)

    def declare(rate: Callable[..., float]) -> Any:
        def function(*args: Any, **kwargs: Any) -> list[float]:
            settings = checked_settings(rate.__name__, signature, kinds, args, kwargs)
            steps, each = settings.pop("total_step"), settings.pop("step_per_epoch")
            return [rate(step // each, **settings) for step in range(steps)]

        made: Any = functools.wraps(rate)(function)
        made.__signature__ = signature
        return made

    return declare


def piecewise_constant_lr(milestone: Sequence[int], learning_rates: Sequence[float]) -> list[float]:
    """learning_rates[i] up to step milestone[i]."""
    where = "piecewise_constant_lr"
    for name, numbers in (("milestone", milestone), ("learning_rates", learning_rates)):
        if not isinstance(numbers, tuple | list):
            raise TypeError(f"For '{where}', the type of '{name}' must be tuple or list, but got {type(numbers)}.")
    if len(milestone) != len(learning_rates):
        raise ValueError(
            f"For '{where}', the size of 'milestone' must be same with the size of 'learning_rates', "
            f"but got {len(milestone)} and {len(learning_rates)}."
        )
    rates: list[float] = []
    for last, rate in zip(milestone, learning_rates, strict=True):
        KINDS["steps"](where, "milestone", last)
        KINDS["any_rate"](where, "learning_rates", rate)
        if last < len(rates):
            raise ValueError(f"For '{where}', the 'milestone' must rise, but got {milestone}.")
        rates.extend([rate] * (last - len(rates)))
    return rates


_STEPS = "total_step:steps step_per_epoch:steps"
_DECAY = f"learning_rate:rate decay_rate:rate {_STEPS} decay_epoch:steps is_stair=False"


@_listed(_DECAY)
def exponential_decay_lr(
    epoch: int, learning_rate: float, decay_rate: float, decay_epoch: int, is_stair: bool
) -> float:
    """learning_rate * decay_rate ** (epoch / decay_epoch)."""
    return float(learning_rate * decay_rate ** (epoch // decay_epoch if is_stair else epoch / decay_epoch))


@_listed(_DECAY)
def natural_exp_decay_lr(
    epoch: int, learning_rate: float, decay_rate: float, decay_epoch: int, is_stair: bool
) -> float:
    """learning_rate * e ** (-decay_rate * epoch); with `is_stair` it falls once in decay_epoch epochs."""
    return float(learning_rate * math.e ** (-decay_rate * (epoch // decay_epoch * decay_epoch if is_stair else epoch)))


@_listed(_DECAY)
def inverse_decay_lr(epoch: int, learning_rate: float, decay_rate: float, decay_epoch: int, is_stair: bool) -> float:
    """learning_rate / (1 + decay_rate * epoch / decay_epoch)."""
    return learning_rate / (1 + (decay_rate * (epoch // decay_epoch) if is_stair else decay_rate * epoch / decay_epoch))


@_listed(f"min_lr:rate_from_0 max_lr:rate {_STEPS} decay_epoch:steps")
def cosine_decay_lr(epoch: int, min_lr: float, max_lr: float, decay_epoch: int) -> float:
    """From max_lr to min_lr along half a cosine of decay_epoch epochs."""
    _check_order("cosine_decay_lr", min_lr, max_lr)
    return min_lr + 0.5 * (max_lr - min_lr) * (1 + math.cos(math.pi * min(epoch, decay_epoch) / decay_epoch))


@_listed(
    f"learning_rate:rate end_learning_rate:rate_from_0 {_STEPS} decay_epoch:steps power:rate update_decay_epoch=False"
)
def polynomial_decay_lr(
    epoch: int, learning_rate: float, end_learning_rate: float, decay_epoch: int, power: float, update_decay_epoch: bool
) -> float:
    """From learning_rate to end_learning_rate; with `update_decay_epoch` again from the start after decay_epoch."""
    length = decay_epoch * max(math.ceil(epoch / decay_epoch), 1) if update_decay_epoch else decay_epoch
    rest: float = (1 - min(epoch, length) / length) ** power
    return (learning_rate - end_learning_rate) * rest + end_learning_rate


@_listed(f"learning_rate:rate_from_0 {_STEPS} warmup_epoch:steps")
def warmup_lr(epoch: int, learning_rate: float, warmup_epoch: int) -> float:
    """From 0 to learning_rate in warmup_epoch epochs."""
    return learning_rate * min(epoch, warmup_epoch) / warmup_epoch


publish(__name__)

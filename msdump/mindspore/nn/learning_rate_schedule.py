"""Learning rates: computed from the step while a graph runs, or as lists with one number for each step."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.names import publish
from msdump.mindspore.nn.cell import Cell
from msdump.mindspore.ops import function as F


class LearningRateSchedule(Cell):
    """Base: `construct(global_step)` gives the learning rate of that step."""

    def construct(self, global_step: Tensor) -> Tensor:
        raise NotImplementedError(f"{self.cls_name}: expected a construct(global_step) method.")


class _Decay(LearningRateSchedule):
    """What falling rates share; with `is_stair` they fall once in `decay_steps` steps."""

    def __init__(self, learning_rate: float, decay_rate: float, decay_steps: int, is_stair: bool = False) -> None:
        super().__init__()
        _check_rates(self.cls_name, learning_rate=learning_rate, decay_rate=decay_rate)
        _check_steps(self.cls_name, decay_steps=decay_steps)
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
        _check_rates(self.cls_name, 0.0, min_lr=min_lr)
        _check_rates(self.cls_name, max_lr=max_lr)
        _check_steps(self.cls_name, decay_steps=decay_steps)
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
        _check_rates(self.cls_name, learning_rate=learning_rate, power=power)
        _check_rates(self.cls_name, 0.0, end_learning_rate=end_learning_rate)
        _check_steps(self.cls_name, decay_steps=decay_steps)
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
        _check_rates(self.cls_name, 0.0, learning_rate=learning_rate)
        _check_steps(self.cls_name, warmup_steps=warmup_steps)
        self.learning_rate, self.warmup_steps = learning_rate, warmup_steps

    def construct(self, global_step: Tensor) -> Tensor:
        step = F.cast(F.minimum(global_step, self.warmup_steps), "float32")
        return F.mul(F.div(step, float(self.warmup_steps)), self.learning_rate)


def _check_rates(where: str, least: float | None = None, /, **numbers: float) -> None:
    """Raises: TypeError for what is no float, ValueError below `least`; without it for what is not above 0."""
    for name, number in numbers.items():
        if isinstance(number, bool) or not isinstance(number, float):
            raise TypeError(
                f"For '{where}', the argument '{name}' must be type of float, but got {type(number).__name__}."
            )
        if number <= 0 and (least is None or number < least):
            bound = "> 0.0" if least is None else f">= {least}"
            raise ValueError(f"For '{where}', the '{name}' must be {bound}, but got {number}.")


def _check_steps(where: str, **numbers: int) -> None:
    """Raises: TypeError for what is no int, ValueError for what is not above 0."""
    for name, number in numbers.items():
        if isinstance(number, bool) or not isinstance(number, int):
            raise TypeError(f"For '{where}', the '{name}' must be int, but got {type(number).__name__}.")
        if number < 1:
            raise ValueError(f"For '{where}', the '{name}' must be > 0, but got {number}.")


def _by_epoch(total_step: int, step_per_epoch: int, rate: Callable[[int], float]) -> list[float]:
    return [rate(step // step_per_epoch) for step in range(total_step)]


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
        _check_steps(where, milestone=last)
        _check_rates(where, -math.inf, learning_rates=rate)
        if last < len(rates):
            raise ValueError(f"For '{where}', the 'milestone' must rise, but got {milestone}.")
        rates.extend([rate] * (last - len(rates)))
    return rates


def exponential_decay_lr(
    learning_rate: float,
    decay_rate: float,
    total_step: int,
    step_per_epoch: int,
    decay_epoch: int,
    is_stair: bool = False,
) -> list[float]:
    """learning_rate * decay_rate ** (epoch / decay_epoch)."""
    where = "exponential_decay_lr"
    _check_rates(where, learning_rate=learning_rate, decay_rate=decay_rate)
    _check_steps(where, total_step=total_step, step_per_epoch=step_per_epoch, decay_epoch=decay_epoch)

    def rate(epoch: int) -> float:
        return learning_rate * decay_rate ** (epoch // decay_epoch if is_stair else epoch / decay_epoch)

    return _by_epoch(total_step, step_per_epoch, rate)


def natural_exp_decay_lr(
    learning_rate: float,
    decay_rate: float,
    total_step: int,
    step_per_epoch: int,
    decay_epoch: int,
    is_stair: bool = False,
) -> list[float]:
    """learning_rate * e ** (-decay_rate * epoch); with `is_stair` it falls once in decay_epoch epochs."""
    where = "natural_exp_decay_lr"
    _check_rates(where, learning_rate=learning_rate, decay_rate=decay_rate)
    _check_steps(where, total_step=total_step, step_per_epoch=step_per_epoch, decay_epoch=decay_epoch)

    def rate(epoch: int) -> float:
        reached = epoch // decay_epoch * decay_epoch if is_stair else epoch
        return float(learning_rate * math.e ** (-decay_rate * reached))

    return _by_epoch(total_step, step_per_epoch, rate)


def inverse_decay_lr(
    learning_rate: float,
    decay_rate: float,
    total_step: int,
    step_per_epoch: int,
    decay_epoch: int,
    is_stair: bool = False,
) -> list[float]:
    """learning_rate / (1 + decay_rate * epoch / decay_epoch)."""
    where = "inverse_decay_lr"
    _check_rates(where, learning_rate=learning_rate, decay_rate=decay_rate)
    _check_steps(where, total_step=total_step, step_per_epoch=step_per_epoch, decay_epoch=decay_epoch)

    def rate(epoch: int) -> float:
        part = decay_rate * (epoch // decay_epoch) if is_stair else decay_rate * epoch / decay_epoch
        return learning_rate / (1 + part)

    return _by_epoch(total_step, step_per_epoch, rate)


def cosine_decay_lr(
    min_lr: float, max_lr: float, total_step: int, step_per_epoch: int, decay_epoch: int
) -> list[float]:
    """From max_lr to min_lr along half a cosine of decay_epoch epochs."""
    where = "cosine_decay_lr"
    _check_rates(where, 0.0, min_lr=min_lr)
    _check_rates(where, max_lr=max_lr)
    _check_steps(where, total_step=total_step, step_per_epoch=step_per_epoch, decay_epoch=decay_epoch)
    if min_lr >= max_lr:
        raise ValueError(f"For '{where}', the 'max_lr' must be greater than the 'min_lr', got {max_lr}, {min_lr}.")
    delta = 0.5 * (max_lr - min_lr)

    def rate(epoch: int) -> float:
        return min_lr + delta * (1 + math.cos(math.pi * min(epoch, decay_epoch) / decay_epoch))

    return _by_epoch(total_step, step_per_epoch, rate)


def polynomial_decay_lr(
    learning_rate: float,
    end_learning_rate: float,
    total_step: int,
    step_per_epoch: int,
    decay_epoch: int,
    power: float,
    update_decay_epoch: bool = False,
) -> list[float]:
    """From learning_rate to end_learning_rate; with `update_decay_epoch` again from the start after decay_epoch."""
    where = "polynomial_decay_lr"
    _check_rates(where, learning_rate=learning_rate, power=power)
    _check_rates(where, 0.0, end_learning_rate=end_learning_rate)
    _check_steps(where, total_step=total_step, step_per_epoch=step_per_epoch, decay_epoch=decay_epoch)

    def rate(epoch: int) -> float:
        length = decay_epoch * max(math.ceil(epoch / decay_epoch), 1) if update_decay_epoch else decay_epoch
        rest: float = (1 - min(epoch, length) / length) ** power
        return (learning_rate - end_learning_rate) * rest + end_learning_rate

    return _by_epoch(total_step, step_per_epoch, rate)


def warmup_lr(learning_rate: float, total_step: int, step_per_epoch: int, warmup_epoch: int) -> list[float]:
    """From 0 to learning_rate in warmup_epoch epochs."""
    where = "warmup_lr"
    _check_rates(where, 0.0, learning_rate=learning_rate)
    _check_steps(where, total_step=total_step, step_per_epoch=step_per_epoch, warmup_epoch=warmup_epoch)
    return _by_epoch(total_step, step_per_epoch, lambda epoch: learning_rate * min(epoch, warmup_epoch) / warmup_epoch)


publish(__name__)

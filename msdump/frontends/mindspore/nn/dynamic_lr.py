"""Learning rates as lists, one per step."""

from __future__ import annotations

import math
from collections.abc import Sequence


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

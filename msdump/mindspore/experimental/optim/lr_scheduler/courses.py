"""Schedules whose rate depends on more than the number of the epoch: cosines, cycles, functions, metrics, sequences."""

from __future__ import annotations

import math
from typing import Any

from msdump.mindspore.experimental.optim.lr_scheduler.formulas import (
    LRScheduler,
    _held,
    _number,
    _of_groups,
    _Schedule,
    _set,
)
from msdump.mindspore.experimental.optim.optimizer import Optimizer
from msdump.mindspore.names import publish


class _ByFunctions(LRScheduler):
    """Base of schedules by functions of the epoch, one for each group."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        count = len(optimizer.param_groups)
        self.lr_lambdas = list(lr_lambda) if isinstance(lr_lambda, list | tuple) else [lr_lambda] * count
        if len(self.lr_lambdas) != count:
            raise ValueError(f"Expected {count} lr_lambdas, but got {len(self.lr_lambdas)}")
        super().__init__(optimizer, last_epoch)

    def _factors(self) -> list[float]:
        return [float(function(_held(self.last_epoch))) for function in self.lr_lambdas]


class LambdaLR(_ByFunctions):
    """The rate at the start times a function of the epoch."""

    def get_lr(self) -> list[float]:
        return [base * factor for base, factor in zip(self.base_lrs, self._factors(), strict=True)]


class ReduceLROnPlateau(_Schedule):
    """Times a factor when a metric has not become better for more than `patience` epochs."""

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: Any = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError("The lr factor should be less than 1.0.")
        super().__init__(optimizer)
        if mode not in ("min", "max"):
            raise ValueError(f"`mode` should be 'min' or 'max', but got {mode}.")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"`threshold mode` should be 'rel' or 'abs', but got {threshold_mode}.")
        self.min_lrs = _of_groups(optimizer, min_lr, "min_lr")
        self.mode, self.factor, self.patience, self.cooldown, self.eps = mode, factor, patience, cooldown, eps
        self.threshold, self.threshold_mode = threshold, threshold_mode
        self.best = math.inf if mode == "min" else -math.inf
        self.wait = self.cooldown_counter = 0
        self.last_epoch = _number("last_epoch_ReduceLROnPlateau", 0)

    def step(self, metrics: Any) -> bool:
        """An epoch has ended with this metric."""
        self._check_place()
        _set(self.last_epoch, float(self.last_epoch) + 1)
        current = float(metrics)
        is_better = self._is_improvement(current, self.best)
        self.best, self.wait = (current, 0) if is_better else (self.best, self.wait + 1)
        if self.in_cooldown():
            self.cooldown_counter -= 1
            self.wait = 0
        if self.wait > self.patience:
            self._reduce()
            self.cooldown_counter, self.wait = self.cooldown, 0
        return True

    def _reduce(self) -> None:
        old = self._rates()
        new = [max(rate * self.factor, lowest) for rate, lowest in zip(old, self.min_lrs, strict=True)]
        self._set_rates([a if b > a + self.eps else b for a, b in zip(new, old, strict=True)])

    def in_cooldown(self) -> bool:
        """Does it wait for the last change of the rate to show?"""
        return self.cooldown_counter > 0

    def _is_improvement(self, current: float, best: float) -> bool:
        distance = self.threshold * (best if self.threshold_mode == "rel" else 1.0)
        if self.mode == "min":
            return current < (best if math.isinf(best) else best - distance)
        return current > (best if math.isinf(best) else best + distance)


publish(__name__)

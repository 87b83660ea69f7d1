"""Schedules whose rate depends on more than the number of the epoch: cosines, cycles, functions, metrics, sequences."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any

from msdump.mindspore.experimental.optim.lr_scheduler.formulas import (
    LRScheduler,
    _check_kind,
    _held,
    _number,
    _of_groups,
    _Schedule,
    _set,
)
from msdump.mindspore.experimental.optim.optimizer import Optimizer
from msdump.mindspore.names import publish


class CosineAnnealingLR(LRScheduler):
    """Falls to eta_min in T_max epochs, as half a cosine, and rises again."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        _check_kind("CosineAnnealingLR", "eta_min", eta_min, float, int)
        _check_kind("CosineAnnealingLR", "T_max", T_max, int)
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        epoch, rates = self._epoch, self._rates()
        if epoch == 0:
            return rates
        if (epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            rise = (1 - math.cos(math.pi / self.T_max)) / 2
            return [rate + (base - self.eta_min) * rise for base, rate in zip(self.base_lrs, rates, strict=True)]
        now, before = (1 + math.cos(math.pi * each / self.T_max) for each in (epoch, epoch - 1))
        return [now / before * (rate - self.eta_min) + self.eta_min for rate in rates]

    def _get_closed_form_lr(self) -> list[float]:
        share = (1 + math.cos(math.pi * self._epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine again and again, each T_mult times as long as the one before."""

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0, last_epoch: int = -1
    ) -> None:
        for name, value in (("T_0", T_0), ("T_mult", T_mult)):
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} should be an integer and equal or greater than 1, but got {value}")
        _check_kind("CosineAnnealingWarmRestarts", "eta_min", eta_min, float, int)
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        self.T_i, self.T_cur = T_0, float(last_epoch)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        share = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]

    def step(self, epoch: Any = None) -> bool:
        """Go to the next epoch, or to this one, which may be a fraction.   Raises: ValueError below 0."""
        self._check_place()
        place = self._epoch + 1 if epoch is None else float(epoch)
        if place < 0:
            raise ValueError(f"epoch should be a non-negative integer, but got {epoch}")
        self.T_cur, self.T_i = place, self.T_0
        while self.T_cur >= self.T_i:
            self.T_cur -= self.T_i
            self.T_i *= self.T_mult
        _set(self.last_epoch, math.floor(place))
        self._set_rates(self.get_lr())
        return True


class CyclicLR(LRScheduler):
    """Between base_lr and max_lr, up and down."""

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: Any,
        max_lr: Any,
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[Any], Any] | None = None,
        scale_mode: str = "cycle",
        last_epoch: int = -1,
    ) -> None:
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self._lowest = _of_groups(optimizer, base_lr, "base_lr")
        self.max_lrs = _of_groups(optimizer, max_lr, "max_lr")
        self.total_step_size = float(step_size_up + (step_size_up if step_size_down is None else step_size_down))
        self.step_up_ratio = step_size_up / self.total_step_size
        self.mode, self.gamma, self._own_scale = mode, gamma, scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else "iterations" if mode == "exp_range" else "cycle"
        if last_epoch == -1:
            for memory, rate in zip(optimizer.lrs, self._lowest, strict=True):
                _set(memory, rate)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = self._lowest

    def scale_fn(self, x: Any) -> Any:
        """How high the peak of this cycle, or of this epoch, is."""
        if self._own_scale is not None:
            return self._own_scale(x)
        if self.mode == "triangular2":
            return 1 / 2.0 ** (x - 1)
        return 1.0 if self.mode == "triangular" else self.gamma**x

    def get_lr(self) -> list[float]:
        epoch = self._epoch
        cycle = math.floor(1 + epoch / self.total_step_size)
        x = 1.0 + epoch / self.total_step_size - cycle
        share = x / self.step_up_ratio if x <= self.step_up_ratio else (x - 1) / (self.step_up_ratio - 1)
        share *= float(self.scale_fn(cycle if self.scale_mode == "cycle" else epoch))
        return [low + (high - low) * share for low, high in zip(self._lowest, self.max_lrs, strict=True)]


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


class MultiplicativeLR(_ByFunctions):
    """The last rate times a function of the epoch."""

    def get_lr(self) -> list[float]:
        if self._epoch == 0:
            return self._rates()
        return [rate * factor for rate, factor in zip(self._rates(), self._factors(), strict=True)]


class SequentialLR(_Schedule):
    """Several schedules, one after the other: each starts at its milestone."""

    def __init__(
        self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: list[int], last_epoch: int = -1
    ) -> None:
        super().__init__(optimizer)
        if any(scheduler.optimizer is not optimizer for scheduler in schedulers):
            raise ValueError("Sequential Schedulers expects all schedulers to belong to the same optimizer.")
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of "
                f"milestone points, but got {len(schedulers)} and {len(milestones)}"
            )
        self._schedulers, self.milestones = list(schedulers), milestones
        self.last_epoch = _number("last_epoch_SequentialLR", last_epoch + 1)
        self._set_rates([group["initial_lr"] for group in optimizer.param_groups])
        for scheduler in self._schedulers:
            _set(scheduler.last_epoch, float(scheduler.last_epoch) - 1)
        self._schedulers[0].step()

    def step(self) -> None:
        """Go to the next epoch."""
        self._check_place()
        epoch = int(self.last_epoch) + 1
        _set(self.last_epoch, epoch)
        number = bisect_right(self.milestones, epoch)
        is_first = number > 0 and self.milestones[number - 1] == epoch
        self._schedulers[number].step(*[0] * is_first)


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

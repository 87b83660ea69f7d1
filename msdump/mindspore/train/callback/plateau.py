"""Callbacks that steer by a number: stop early, lower the learning rate on a plateau, or set it by a function."""

from __future__ import annotations

import logging
import math
from typing import Any, final

import numpy as np

from msdump.mindspore.common.declared import Declared
from msdump.mindspore.common.parameter import Parameter
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.names import publish
from msdump.mindspore.train.callback.base import Callback, RunContext, loss_of
from msdump.tensors.arrays import Array

log = logging.getLogger("msdump")

_SMALLER_IS_BETTER = ("hausdorff_distance", "mae", "mse", "loss", "perplexity", "mean_surface_distance",
                      "root_mean_square_distance", "eval_loss")  # fmt: skip


class _Monitor(Declared, Callback):
    """What both callbacks of a plateau share: the number that they watch, and whether it is better than the best."""

    min_delta: float

    def _set_up(self) -> None:
        name, monitor, mode, patience = type(self).__name__, self.monitor, self.mode, self.patience
        if not isinstance(monitor, str):
            raise TypeError(f"For '{name}', the argument 'monitor' must be str, but got {type(monitor).__name__}.")
        if mode not in ("auto", "min", "max"):
            raise ValueError(f"mode should be 'auto', 'min' or 'max', but got {mode}.")
        if isinstance(patience, bool) or not isinstance(patience, int) or patience < 0:
            raise ValueError(f"For '{name}', the argument 'patience' must be an int >= 0, but got {patience!r}.")
        self.min_delta = abs(self.min_delta)
        self._sign = 1 if mode == "min" or (mode == "auto" and monitor in _SMALLER_IS_BETTER) else -1
        self.restart()

    def on_train_begin(self, run_context: RunContext) -> None:
        self.restart()

    def restart(self) -> None:
        """Forget what was before this training."""
        self.best, self.wait = self._sign * math.inf, 0

    def is_improvement(self, value: float, best: float) -> bool:
        """Is a value better than another, by more than `min_delta`?"""
        return self._sign * value < self._sign * best - self.min_delta

    def _value(self, args: Any) -> float | None:
        """The monitored number of this epoch, None with a warning when there is none."""
        results = args.get("eval_results") or {}
        value = loss_of(args.net_outputs) if self.monitor == "loss" else results.get(self.monitor)
        if value is None:
            choices = sorted({"loss", *results})
            log.warning("%s: expected %s, got none; there are %s.", type(self).__name__, self.monitor, choices)
            return None
        if np.ndim(value):
            raise ValueError(f"{type(self).__name__} only supports scalar monitor now.")
        return float(value)


@final
class EarlyStopping(
    _Monitor,
    takes="monitor='eval_loss' min_delta=0 patience=0 verbose=False mode='auto' baseline=None "
    "restore_best_weights=False",
):
    """Stops a training whose monitored number has not become better for `patience` epochs."""

    def restart(self) -> None:
        super().restart()
        self.stopped_epoch, self._weights = 0, None

    _weights: dict[str, Array] | None

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        args = run_context.original_args()
        value = self._value(args)
        if value is None:
            return
        is_better = self.is_improvement(value, self.best)
        if self.restore_best_weights and (is_better or self._weights is None):
            network = args.train_network
            self._weights = {parameter.name: parameter.asnumpy().copy() for parameter in network.get_parameters()}
        self.wait += 1
        if is_better:
            self.best = value
            if self.baseline is None or self.is_improvement(value, self.baseline):
                self.wait = 0
        if self.wait >= self.patience:
            self.stopped_epoch = args.cur_epoch_num
            run_context.request_stop()
            self._restore(args.train_network)

    def _restore(self, network: Any) -> None:
        if self._weights is None:
            return
        if self.verbose:
            print("Restoring model weights from the end of the best epoch.")
        for parameter in network.get_parameters():
            parameter.set_data(Tensor(self._weights[parameter.name]))

    def on_train_end(self, run_context: RunContext) -> None:
        if self.stopped_epoch and self.verbose:
            print(f"Epoch {self.stopped_epoch:05d}: early stopping")


@final
class ReduceLROnPlateau(
    _Monitor,
    takes="monitor='eval_loss' factor=0.1 patience=10 verbose=False mode='auto' min_delta=0.0001 cooldown=0 min_lr=0",
):
    """Multiplies the learning rate by `factor` when the number has not become better for `patience` epochs."""

    def _set_up(self) -> None:
        super()._set_up()
        if not 0 < self.factor < 1:
            raise ValueError(f"For 'ReduceLROnPlateau', 'factor' must be in (0, 1), but got {self.factor}.")

    def restart(self) -> None:
        super().restart()
        self.cooldown_counter = 0

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        args = run_context.original_args()
        rate = _rate_of(args, "ReduceLROnPlateau")
        value = self._value(args)
        if value is None:
            return
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.wait = 0
        if self.is_improvement(value, self.best):
            self.best, self.wait = value, 0
        elif self.cooldown_counter <= 0:
            self.wait += 1
            if self.wait >= self.patience:
                self._lower(rate, args.cur_epoch_num)

    def _lower(self, rate: Parameter, epoch: int) -> None:
        if float(rate) > self.min_lr:
            lower = max(float(rate) * self.factor, self.min_lr)
            rate.set_data(Tensor(np.float32(lower)))
            if self.verbose:
                print(f"Epoch {epoch:05d}: ReduceLROnPlateau reducing learning rate to {lower}.")
        self.cooldown_counter, self.wait = self.cooldown, 0


def _rate_of(args: Any, name: str) -> Parameter:
    rate = getattr(args.optimizer, "learning_rate", None)
    if not isinstance(rate, Parameter) or rate.size != 1:
        raise ValueError(f"{name} does not support dynamic learning rate and group learning rate now.")
    return rate


@final
class LearningRateScheduler(Callback):
    """Sets the learning rate after each step: `learning_rate_function(rate, step)`."""

    def __init__(self, learning_rate_function: Any) -> None:
        self.learning_rate_function = learning_rate_function

    def step_end(self, run_context: RunContext) -> None:
        args = run_context.original_args()
        rate = _rate_of(args, "LearningRateScheduler")
        # Source: the function gets the shortest decimal number that is the float32.
        before = float(np.array2string(rate.asnumpy()))
        after = self.learning_rate_function(before, args.cur_step_num)
        if not math.isclose(before, after, rel_tol=1e-10):
            rate.set_data(Tensor(np.float32(after)))


publish(__name__)

"""Callbacks that print: the loss, the time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from msdump.frontends.mindspore.common.tensor import Tensor
from msdump.frontends.mindspore.train.callback.callback import Callback, RunContext


def loss_of(outputs: Any) -> float | None:
    """The loss among a step's outputs: the first tensor; None when there is none."""
    if isinstance(outputs, tuple | list):
        outputs = outputs[0] if outputs else None
    return float(np.mean(outputs.asnumpy())) if isinstance(outputs, Tensor) else None


class LossMonitor(Callback):
    """Prints the loss every `per_print_times` steps.

    Raises: ValueError when the loss is NaN or infinite, as MindSpore: training on would be pointless.
    """

    def __init__(self, per_print_times: int = 1) -> None:
        if isinstance(per_print_times, bool) or not isinstance(per_print_times, int) or per_print_times < 0:
            raise ValueError(f"The argument 'per_print_times' must be int and >= 0, but got {per_print_times!r}.")
        self._per_print_times = per_print_times

    def step_end(self, run_context: RunContext) -> None:
        args = run_context.original_args()
        loss = loss_of(args.net_outputs)
        if loss is None:
            return
        step = (args.cur_step_num - 1) % args.batch_num + 1
        if not np.isfinite(loss):
            raise ValueError(
                f"In epoch: {args.cur_epoch_num} step: {step}, loss is NAN or INF, training process cannot continue, "
                "terminating training."
            )
        if self._per_print_times and args.cur_step_num % self._per_print_times == 0:
            print(f"epoch: {args.cur_epoch_num} step: {step}, loss is {loss}", flush=True)


class TimeMonitor(Callback):
    """Prints how long each epoch took, and a step of it."""

    def __init__(self, data_size: int | None = None, clock: Callable[[], float] = time.perf_counter) -> None:
        if data_size is not None and (isinstance(data_size, bool) or not isinstance(data_size, int) or data_size < 1):
            raise ValueError(f"The argument 'data_size' must be None or an int > 0, but got {data_size!r}.")
        self.data_size = data_size
        self._clock = clock
        self._started = clock()

    def epoch_begin(self, run_context: RunContext) -> None:
        self._started = self._clock()

    def epoch_end(self, run_context: RunContext) -> None:
        milliseconds = (self._clock() - self._started) * 1000
        steps = self.data_size or run_context.original_args().batch_num or 1
        print(f"Train epoch time: {milliseconds:5.3f} ms, per step time: {milliseconds / steps:5.3f} ms", flush=True)

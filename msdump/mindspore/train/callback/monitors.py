"""Callbacks that watch: loss, time, history, functions of the script; and summaries, which are not written."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, final

import numpy as np

from msdump.mindspore.common.declared import Declared
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.log import warn_once
from msdump.mindspore.names import publish
from msdump.mindspore.train.callback.base import HOOKS, Callback, RunContext, loss_of


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

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        args = run_context.original_args()
        if args.get("metrics"):
            print(f"Eval result: epoch {args.cur_epoch_num}, metrics: {args.metrics}", flush=True)


class TimeMonitor(Callback):
    """Prints how long each epoch took, and a step of it; with `data_time` also the wait for data."""

    def __init__(
        self, data_size: int | None = None, data_time: bool = False, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        if data_size is not None and (isinstance(data_size, bool) or not isinstance(data_size, int) or data_size < 1):
            raise ValueError(f"The argument 'data_size' must be None or an int > 0, but got {data_size!r}.")
        self.data_size, self.data_time = data_size, data_time
        self._clock = clock
        self._started = self._waits_since = clock()
        self._waited = 0.0

    def on_train_step_begin(self, run_context: RunContext) -> None:
        self._waited += self._clock() - self._waits_since if self.data_time else 0.0

    def on_train_step_end(self, run_context: RunContext) -> None:
        if self.data_time:
            self._waits_since = self._clock()

    def epoch_begin(self, run_context: RunContext) -> None:
        self._started = self._waits_since = self._clock()
        self._waited = 0.0

    def epoch_end(self, run_context: RunContext) -> None:
        milliseconds = (self._clock() - self._started) * 1000
        args = run_context.original_args()
        steps = args.get("batch_num") or self.data_size or 1
        text = f"{args.get('mode', 'train').title()} epoch time: {milliseconds:5.3f} ms, "
        text += f"per step time: {milliseconds / steps:5.3f} ms"
        if self.data_time:
            text += f" (data time: {self._waited * 1000 / steps:5.3f} ms)"
        print(text, flush=True)


@final
class History(Callback):
    """Remembers the network's result and the metrics at the end of each epoch.

    history   name -> one value for each epoch; "net_output" is the loss of the last step
    epoch     {"epoch": numbers of the epochs}
    """

    def __init__(self) -> None:
        self.history: dict[str, list[Any]] = {}
        self.epoch: dict[str, list[int]] | None = None

    def begin(self, run_context: RunContext) -> None:
        self.epoch = {"epoch": []}

    def epoch_end(self, run_context: RunContext) -> None:
        args = run_context.original_args()
        if self.epoch is not None:
            self.epoch["epoch"].append(args.get("cur_epoch_num", 1))
        output = args.net_outputs
        if isinstance(output, tuple | list) and output and isinstance(output[0], Tensor):
            output = output[0]
        output = np.mean(output.asnumpy()) if isinstance(output, Tensor) else output
        for name, value in {"net_output": output, **(args.get("metrics") or {})}.items():
            self.history.setdefault(name, []).append(value)


@final
class LambdaCallback(Declared, Callback, takes=" ".join(f"{name}=None" for name in HOOKS)):
    """Calls functions of the script: one for each hook, by the hook's name."""

    def _set_up(self, **functions: Any) -> None:
        for name, function in functions.items():
            setattr(self, name, function or _nothing)


def _nothing(run_context: RunContext) -> None:
    """A hook without a function."""


@final
class SummaryCollector(
    Declared,
    Callback,
    takes="summary_dir collect_freq=10 num_process=32 collect_specified_data=None keep_default_action=True "
    "custom_lineage_data=None collect_tensor_freq=None max_file_size=None export_options=None",
):
    """Takes its arguments and writes nothing."""

    def _set_up(self, summary_dir: str, collect_freq: int) -> None:
        if not isinstance(summary_dir, str):
            raise TypeError(f"For 'SummaryCollector', 'summary_dir' must be str, got {type(summary_dir).__name__}.")
        if isinstance(collect_freq, bool) or not isinstance(collect_freq, int) or collect_freq < 1:
            raise ValueError(f"For 'SummaryCollector', 'collect_freq' must be an int > 0, but got {collect_freq!r}.")
        self.summary_dir = summary_dir
        warn_once(
            "SummaryCollector: no summary is written to %s. msdump dumps tensors instead: set a dump.", summary_dir
        )


publish(__name__)

"""`mindspore.train.callback`: what training and evaluation call at their begin, end, epochs and steps."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from msdump.frontends.mindspore.common.tensor import Tensor
from msdump.frontends.mindspore.names import explain_missing, publish
from msdump.frontends.mindspore.train.serialization import save_checkpoint


class RunParameters(dict[str, Any]):
    """What a run knows about itself, as attributes: cur_step_num, cur_epoch_num, batch_num, net_outputs, ..."""

    def __getattr__(self, name: str) -> Any:
        if name not in self:
            raise AttributeError(f"callback parameters: there is no {name!r}. There are: {', '.join(sorted(self))}.")
        return self[name]

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


class RunContext:
    """What a callback gets: the run's parameters, and the way to stop it."""

    def __init__(self, original_args: RunParameters) -> None:
        if not isinstance(original_args, dict):
            raise TypeError(
                f"The argument 'original_args' of RunContext should be dict type, but got {type(original_args)}."
            )
        self._original_args = original_args
        self._is_stop_requested = False

    def original_args(self) -> RunParameters:
        """Parameters of the run."""
        return self._original_args

    def request_stop(self) -> None:
        """End the run after this step."""
        self._is_stop_requested = True

    def get_stop_requested(self) -> bool:
        """Was a stop requested?"""
        return self._is_stop_requested


class Callback:
    """Base of callbacks: write the hooks you need.

    The plain hooks (`begin`, `step_end`, ...) are called in training and in evaluation, unless the special ones
    (`on_train_step_end`, `on_eval_begin`, ...) are written.
    """

    def begin(self, run_context: RunContext) -> None: ...

    def epoch_begin(self, run_context: RunContext) -> None: ...

    def epoch_end(self, run_context: RunContext) -> None: ...

    def step_begin(self, run_context: RunContext) -> None: ...

    def step_end(self, run_context: RunContext) -> None: ...

    def end(self, run_context: RunContext) -> None: ...

    def on_train_begin(self, run_context: RunContext) -> None:
        self.begin(run_context)

    def on_train_epoch_begin(self, run_context: RunContext) -> None:
        self.epoch_begin(run_context)

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        self.epoch_end(run_context)

    def on_train_step_begin(self, run_context: RunContext) -> None:
        self.step_begin(run_context)

    def on_train_step_end(self, run_context: RunContext) -> None:
        self.step_end(run_context)

    def on_train_end(self, run_context: RunContext) -> None:
        self.end(run_context)

    def on_eval_begin(self, run_context: RunContext) -> None:
        self.begin(run_context)

    def on_eval_epoch_begin(self, run_context: RunContext) -> None:
        self.epoch_begin(run_context)

    def on_eval_epoch_end(self, run_context: RunContext) -> None:
        self.epoch_end(run_context)

    def on_eval_step_begin(self, run_context: RunContext) -> None:
        self.step_begin(run_context)

    def on_eval_step_end(self, run_context: RunContext) -> None:
        self.step_end(run_context)

    def on_eval_end(self, run_context: RunContext) -> None:
        self.end(run_context)

    def __enter__(self) -> Callback:
        return self

    def __exit__(self, *error: object) -> None: ...


class CallbackList:
    """Several callbacks, called in order."""

    def __init__(self, callbacks: Any) -> None:
        """Raises: TypeError for anything but callbacks."""
        items = [] if callbacks is None else [callbacks] if isinstance(callbacks, Callback) else callbacks
        if not isinstance(items, Iterable):
            raise TypeError(f"When the 'callbacks' is not a list, it must be a Callback, but got {type(callbacks)}.")
        self.callbacks = list(items)
        for callback in self.callbacks:
            if not isinstance(callback, Callback):
                raise TypeError(f"callbacks: expected Callback objects, got {type(callback).__name__}.")

    def call(self, hook: str, run_context: RunContext) -> None:
        """Call one hook of each callback."""
        for callback in self.callbacks:
            getattr(callback, hook)(run_context)


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


@dataclass
class CheckpointConfig:
    """When to save, and how many files to keep. None or 0 switches a rule off."""

    save_checkpoint_steps: int | None = 1
    save_checkpoint_seconds: int | None = 0
    keep_checkpoint_max: int | None = 5
    keep_checkpoint_per_n_minutes: int | None = 0
    integrated_save: bool = True
    async_save: bool = False
    saved_network: Any = None
    append_info: Any = None
    enc_key: bytes | None = None
    enc_mode: str = "AES-GCM"
    exception_save: bool = False

    def __post_init__(self) -> None:
        """Raises: ValueError for negative numbers, when no rule is on, or for encryption."""
        for name in ("save_checkpoint_steps", "save_checkpoint_seconds", "keep_checkpoint_max"):
            number = getattr(self, name)
            if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < 0):
                raise ValueError(f"{name}: expected an int >= 0 or None, got {number!r}.")
        if not self.save_checkpoint_steps and not self.save_checkpoint_seconds:
            raise ValueError(
                "CheckpointConfig: expected save_checkpoint_steps or save_checkpoint_seconds, got neither."
            )
        if self.enc_key is not None:
            raise ValueError("enc_key: expected None, got a key. Encrypted checkpoints are not supported.")


class ModelCheckpoint(Callback):
    """Writes `{prefix}-{epoch}_{step}.ckpt` into `directory`."""

    def __init__(
        self,
        prefix: str = "CKP",
        directory: str | None = None,
        config: CheckpointConfig | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not isinstance(prefix, str) or "/" in prefix or not prefix:
            raise ValueError(f"For 'ModelCheckpoint', the argument 'prefix' must be a file name, but got {prefix!r}.")
        self._prefix, self._directory = prefix, os.path.abspath(directory or ".")
        self._config = config or CheckpointConfig()
        self._clock = clock
        self._last_step, self._last_time = 0, clock()
        self._files: list[str] = []

    @property
    def latest_ckpt_file_name(self) -> str:
        """The last file that was written, "" when there is none."""
        return self._files[-1] if self._files else ""

    def begin(self, run_context: RunContext) -> None:
        self._last_time = self._clock()

    def step_end(self, run_context: RunContext) -> None:
        args, config = run_context.original_args(), self._config
        is_step = bool(config.save_checkpoint_steps) and args.cur_step_num >= self._last_step + (
            config.save_checkpoint_steps or 0
        )
        elapsed = self._clock() - self._last_time
        is_time = bool(config.save_checkpoint_seconds) and elapsed >= (config.save_checkpoint_seconds or 0)
        if is_step or is_time:
            self._save(args)

    def end(self, run_context: RunContext) -> None:
        args = run_context.original_args()
        if args.cur_step_num > self._last_step:
            self._save(args)

    def _save(self, args: Any) -> None:
        os.makedirs(self._directory, exist_ok=True)
        step = (args.cur_step_num - 1) % args.batch_num + 1
        path = os.path.join(self._directory, f"{self._prefix}-{args.cur_epoch_num}_{step}.ckpt")
        network = self._config.saved_network or args.train_network
        save_checkpoint(network, path, append_dict=_append_info(self._config.append_info, args))
        self._last_step, self._last_time = args.cur_step_num, self._clock()
        self._files = [file for file in self._files if file != path] + [path]
        limit = self._config.keep_checkpoint_max
        while limit and len(self._files) > limit:
            oldest = self._files.pop(0)
            if os.path.exists(oldest):
                os.remove(oldest)


def _append_info(selected: Any, args: Any) -> dict[str, Any] | None:
    """Source: `append_info` names "epoch_num" and "step_num", or holds dicts of further values."""
    if not selected:
        return None
    info: dict[str, Any] = {}
    for item in selected:
        if isinstance(item, dict):
            info.update(item)
        elif item == "epoch_num":
            info[item] = args.cur_epoch_num
        elif item == "step_num":
            info[item] = args.cur_step_num
        else:
            raise TypeError(f"append_info: expected 'epoch_num', 'step_num' or a dict, got {item!r}.")
    return info


publish(__name__)

__getattr__ = explain_missing(__name__)

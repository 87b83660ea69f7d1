"""Callbacks that save and restore: checkpoints while training, backups, and an orderly end on a signal."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

from msdump.mindspore.context import get_context
from msdump.mindspore.names import publish
from msdump.mindspore.train.callback.base import Callback, RunContext
from msdump.mindspore.train.checkpoint_files import wait_for_saving
from msdump.mindspore.train.serialization import export, load_checkpoint, save_checkpoint

_RULES = ("save_checkpoint_steps", "save_checkpoint_seconds", "keep_checkpoint_max", "keep_checkpoint_per_n_minutes")


@final
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
    crc_check: bool = False
    remove_redundancy: bool = False
    format: str = "ckpt"

    def __post_init__(self) -> None:
        """Raises: ValueError for negative numbers, when no rule is on, or for encryption."""
        for name in _RULES:
            number = getattr(self, name)
            if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < 0):
                raise ValueError(f"{name}: expected an int >= 0 or None, got {number!r}.")
        if not any(getattr(self, name) for name in _RULES):
            raise ValueError(f"For 'CheckpointConfig', {', '.join(_RULES)} can't be all None or 0. Set one of them.")
        if self.format not in ("ckpt", "safetensors"):
            raise ValueError(f"For 'CheckpointConfig', 'format' must be 'ckpt' or 'safetensors', got {self.format!r}.")
        _append_info(self.append_info, 0, 0)
        if self.save_checkpoint_steps:
            self.save_checkpoint_seconds = None
        if self.keep_checkpoint_max:
            self.keep_checkpoint_per_n_minutes = None
        elif not self.keep_checkpoint_per_n_minutes:
            self.keep_checkpoint_max = 1
        if self.enc_key is not None:
            raise ValueError("enc_key: expected None, got a key. Encrypted checkpoints are not supported.")


@final
class ModelCheckpoint(Callback):
    """Writes `{prefix}-{epoch}_{step}.ckpt` into `directory`.

    prefix      a name, or a function of the run's parameters, whose result is the file's name without its ending
    directory   a folder, or a function of the run's parameters
    Edges:  files of an earlier training with this prefix stay: this one's are called `{prefix}_1-...`, and so on.
    """

    def __init__(
        self, prefix: Any = "CKP", directory: Any = None, config: CheckpointConfig | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        if not callable(prefix) and not _is_file_name(prefix):
            raise ValueError(f"For 'ModelCheckpoint', the argument 'prefix' must be a file name, but got {prefix!r}.")
        if config is not None and not isinstance(config, CheckpointConfig):
            raise TypeError(
                "For 'ModelCheckpoint', the type of argument 'config' should be 'CheckpointConfig', but got "
                f"{type(config)}."
            )
        self._config = config or CheckpointConfig()
        self._directory = directory if callable(directory) else os.path.abspath(directory or ".")
        self._prefix = prefix
        if not callable(prefix) and not callable(directory):
            self._prefix = _free_prefix(self._directory, prefix)
        self._clock = clock
        self._last_step, self._last_time = 0, clock()
        self._files: list[tuple[str, float]] = []

    @property
    def latest_ckpt_file_name(self) -> str:
        """The last file that was written, "" when there is none."""
        return self._files[-1][0] if self._files else ""

    def begin(self, run_context: RunContext) -> None:
        self._last_time = self._clock()

    def step_end(self, run_context: RunContext) -> None:
        args, config = run_context.original_args(), self._config
        steps, seconds = config.save_checkpoint_steps, config.save_checkpoint_seconds
        is_due = bool(steps) and args.cur_step_num >= self._last_step + (steps or 0)
        if is_due or (seconds and self._clock() - self._last_time >= seconds):
            self._save(args)

    def end(self, run_context: RunContext) -> None:
        args, config = run_context.original_args(), self._config
        has_rule = config.save_checkpoint_steps or config.save_checkpoint_seconds
        if has_rule and args.cur_step_num > self._last_step:
            self._save(args)
        wait_for_saving()

    def _save(self, args: Any) -> None:
        directory = self._directory(args) if callable(self._directory) else self._directory
        os.makedirs(directory, exist_ok=True)
        config = self._config
        step = (args.cur_step_num - 1) % args.batch_num + 1
        stem = self._prefix(args) if callable(self._prefix) else f"{self._prefix}-{args.cur_epoch_num}_{step}"
        if not _is_file_name(stem):
            raise ValueError(f"For 'ModelCheckpoint', expected a file name from the function 'prefix', got {stem!r}.")
        path = os.path.join(directory, f"{stem}.{config.format}")
        network = config.saved_network or args.train_network
        info = _append_info(config.append_info, args.cur_epoch_num, args.cur_step_num)
        save_checkpoint(
            network, path, config.integrated_save, config.async_save, info,
            crc_check=config.crc_check, format=config.format,
        )  # fmt: skip
        self._last_step, self._last_time = args.cur_step_num, self._clock()
        self._files = [file for file in self._files if file[0] != path] + [(path, self._last_time)]
        self._remove_old()

    def _remove_old(self) -> None:
        """Keep the newest files, or the first of each span of minutes."""
        limit, minutes = self._config.keep_checkpoint_max, self._config.keep_checkpoint_per_n_minutes
        if limit:
            old, self._files = self._files[:-limit], self._files[-limit:]
        elif minutes and len(self._files) > 2 and self._files[-2][1] - self._files[-3][1] < minutes * 60:
            old = [self._files.pop(-2)]
        else:
            return
        wait_for_saving()
        for path, _ in old:
            if os.path.exists(path):
                os.remove(path)


def _is_file_name(name: Any) -> bool:
    return isinstance(name, str) and bool(name) and "/" not in name


def _free_prefix(directory: str, prefix: str) -> str:
    """`prefix`, or with the first free number when files of it are there."""
    pattern = re.compile(rf"{re.escape(prefix)}(?:_(\d+))?-\d+_\d+\.(?:ckpt|safetensors)")
    names = os.listdir(directory) if os.path.isdir(directory) else []
    used = [int(match[1] or 0) for name in names if (match := pattern.fullmatch(name))]
    return f"{prefix}_{max(used) + 1}" if used else prefix


def _append_info(selected: Any, epoch: int, step: int) -> dict[str, Any] | None:
    """Source: `append_info` names "epoch_num" and "step_num", or holds one dict of further values."""
    if not selected:
        return None
    if not isinstance(selected, list | tuple):
        raise TypeError(f"For 'CheckpointConfig', the type of 'append_info' must be list, but got {type(selected)}.")
    numbers = {"epoch_num": epoch, "step_num": step}
    info: dict[str, Any] = {}
    for item in selected:
        if isinstance(item, dict):
            info.update(item)
        elif item in numbers:
            info[item] = numbers[item]
        else:
            raise TypeError(f"append_info: expected 'epoch_num', 'step_num' or a dict, got {item!r}.")
    return info


@final
class OnRequestExit(Callback):
    """Ends a training or an evaluation after its step when a signal comes, and saves the network.

    Files: `{directory}/rank_{device_id}/{file_name}_train` and `_eval`, `.ckpt` and `.mindir`. A training that begins
    loads its file when it is there.
    """

    def __init__(
        self, save_ckpt: bool = True, save_mindir: bool = True, file_name: str = "Net", directory: str | None = "./",
        config_file: str | None = None, sig: int = signal.SIGTERM,
    ) -> None:  # fmt: skip
        if sig == getattr(signal, "SIGKILL", None):
            raise ValueError("Not support send exit request by signal SIGKILL.")
        self.save_ckpt, self.save_mindir, self.sig = save_ckpt, save_mindir, sig
        self.exit = False
        folder = os.path.join(directory or os.getcwd(), f"rank_{get_context('device_id')}")
        if save_ckpt or save_mindir:
            os.makedirs(folder, exist_ok=True)
        self.train_name = os.path.join(folder, f"{file_name}_train")
        self.eval_name = os.path.join(folder, f"{file_name}_eval")

    def _listen(self) -> None:
        signal.signal(self.sig, self._request)

    def _request(self, number: int, frame: Any) -> None:
        self.exit = True

    def _load(self, network: Any, *names: str) -> None:
        path = next((f"{name}.ckpt" for name in names if os.path.isfile(f"{name}.ckpt")), None)
        if self.save_ckpt and path is not None:
            load_checkpoint(path, network)

    def _save(self, network: Any, name: str, inputs: Any) -> None:
        if self.exit and self.save_ckpt:
            save_checkpoint(network, name)
        if self.exit and self.save_mindir:
            export(network, *inputs, file_name=name, file_format="MINDIR")

    def on_train_begin(self, run_context: RunContext) -> None:
        self._listen()
        self._load(run_context.original_args().train_network, self.train_name)

    def on_train_step_end(self, run_context: RunContext) -> None:
        if self.exit:
            run_context.request_stop()

    def on_train_end(self, run_context: RunContext) -> None:
        args = run_context.original_args()
        self._save(args.train_network, self.train_name, args.train_dataset_element or ())

    def on_eval_begin(self, run_context: RunContext) -> None:
        self._listen()
        self._load(run_context.original_args().eval_network, self.eval_name, self.train_name)

    def on_eval_step_end(self, run_context: RunContext) -> None:
        if self.exit:
            run_context.request_stop()

    def on_eval_end(self, run_context: RunContext) -> None:
        args = run_context.original_args()
        self._save(args.eval_network, self.eval_name, args.get("eval_dataset_element") or ())


publish(__name__)

"""ModelCheckpoint: saves the network while it is trained."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from msdump.frontends.mindspore.train.callback.callback import Callback, RunContext
from msdump.frontends.mindspore.train.serialization import save_checkpoint


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
        self._files = [known for known in self._files if known != path] + [path]
        limit = self._config.keep_checkpoint_max
        while limit and len(self._files) > limit:
            oldest = self._files.pop(0)
            if os.path.exists(oldest):
                os.remove(oldest)


def _append_info(wanted: Any, args: Any) -> dict[str, Any] | None:
    """Source: `append_info` names "epoch_num" and "step_num", or holds dicts of further values."""
    if not wanted:
        return None
    info: dict[str, Any] = {}
    for item in wanted:
        if isinstance(item, dict):
            info.update(item)
        elif item == "epoch_num":
            info[item] = args.cur_epoch_num
        elif item == "step_num":
            info[item] = args.cur_step_num
        else:
            raise TypeError(f"append_info: expected 'epoch_num', 'step_num' or a dict, got {item!r}.")
    return info

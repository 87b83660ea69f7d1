"""`mindspore.train.summary`: accepted, and not written: a summary is read by MindInsight, a dump by msdump."""

from __future__ import annotations

from typing import Any, final

from msdump.mindspore.common.declared import Declared
from msdump.mindspore.log import warn_once
from msdump.mindspore.names import explain_missing, publish

_MODES = ("train", "eval")


@final
class SummaryRecord(
    Declared,
    takes="log_dir file_prefix='events' file_suffix='_MS' num_process=32 network=None max_file_size=None "
    "raise_exception=False export_options=None",
):
    """Takes values and writes nothing, which it says once.   Raises: as MindSpore for wrong arguments."""

    def _set_up(self, log_dir: str, network: Any) -> None:
        if not isinstance(log_dir, str):
            raise TypeError(f"For 'SummaryRecord', 'log_dir' must be str, but got {type(log_dir).__name__}.")
        self.log_dir, self.full_file_name = log_dir, ""
        self._mode = "train"
        warn_once("SummaryRecord: no summary is written to %s. Set a dump to see tensors.", log_dir)

    def __enter__(self) -> SummaryRecord:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def set_mode(self, mode: str) -> None:
        """Raises: ValueError for anything but train and eval."""
        if mode not in _MODES:
            raise ValueError(f"For 'SummaryRecord', 'mode' must be one of {list(_MODES)}, but got {mode!r}.")
        self._mode = mode

    def add_value(self, plugin: str, name: str, value: Any) -> None:
        """Accepted."""

    def record(self, step: int, train_network: Any = None, plugin_filter: Any = None) -> bool:
        """Nothing is written: False."""
        return False

    def flush(self) -> None:
        """Nothing waits to be written."""

    def close(self) -> None:
        """Nothing is open."""


publish(__name__)

__getattr__ = explain_missing(__name__)

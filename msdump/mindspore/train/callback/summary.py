"""Callbacks that collect summaries: accepted, and not written, which they say once."""

from __future__ import annotations

from typing import Any, final

from msdump.mindspore.log import warn_once
from msdump.mindspore.names import publish
from msdump.mindspore.train.callback.base import Callback


@final
class SummaryCollector(Callback):
    """Takes its arguments and writes nothing."""

    def __init__(
        self,
        summary_dir: str,
        collect_freq: int = 10,
        num_process: int = 32,
        collect_specified_data: dict[str, Any] | None = None,
        keep_default_action: bool = True,
        custom_lineage_data: dict[str, Any] | None = None,
        collect_tensor_freq: int | None = None,
        max_file_size: int | None = None,
        export_options: dict[str, Any] | None = None,
    ) -> None:
        if not isinstance(summary_dir, str):
            raise TypeError(f"For 'SummaryCollector', 'summary_dir' must be str, got {type(summary_dir).__name__}.")
        if isinstance(collect_freq, bool) or not isinstance(collect_freq, int) or collect_freq < 1:
            raise ValueError(f"For 'SummaryCollector', 'collect_freq' must be an int > 0, but got {collect_freq!r}.")
        self.summary_dir = summary_dir
        warn_once(
            "SummaryCollector: no summary is written to %s. msdump dumps tensors instead: set a dump.", summary_dir
        )


publish(__name__)

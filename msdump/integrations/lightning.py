"""A callback of Lightning's `Trainer`: each step of the optimizer is one iteration of the dump.

    from msdump.integrations.lightning import DumpCallback
    trainer = Trainer(callbacks=[DumpCallback("data_dump.json")])

Source: Lightning, Callback.
"""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from msdump.integrations.training import TrainingDump

if TYPE_CHECKING:
    from msdump.engine.opening import Config
    from msdump.process.report import Report

# Two names of one package, whose classes are not those of each other.
_PACKAGE = "lightning.pytorch" if find_spec("lightning") is not None else "pytorch_lightning"
_Callback: Any = importlib.import_module(_PACKAGE).Callback


class DumpCallback(_Callback):  # type: ignore[misc]
    """Iterations have the numbers of `trainer.global_step`, also where training goes on from a checkpoint.

    config  as of `msdump.watch`; None: what MINDSPORE_DUMP_CONFIG says, and without that nothing is dumped

    Edges: where several optimizers run in a batch, which Lightning counts as several steps, the batch is one iteration.
    """

    def __init__(self, config: Config | None = None) -> None:
        super().__init__()
        self._dump = TrainingDump(config)
        self._step = 0

    @property
    def report(self) -> Report | None:
        """Counts of the last training; None before it has ended, and where nothing was dumped."""
        return self._dump.report

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self._step = trainer.global_step
        self._dump.begin(self._step)

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        self._dump.begin_batch()

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        self._dump.end_batch(is_step=trainer.global_step != self._step)
        self._step = trainer.global_step

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self._dump.end()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._dump.end()

"""A callback of Hugging Face's `Trainer`: each step of the optimizer is one iteration of the dump.

    from msdump.integrations.transformers import DumpCallback
    trainer = Trainer(model, arguments, callbacks=[DumpCallback("data_dump.json")], ...)

Source: transformers, TrainerCallback.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from transformers import TrainerCallback

from msdump.integrations.training import TrainingDump

if TYPE_CHECKING:
    from msdump.engine.opening import Config
    from msdump.process.report import Report


class DumpCallback(TrainerCallback):  # type: ignore[misc]
    """Iterations have the numbers of `state.global_step`, also where training goes on from a checkpoint.

    config  as of `msdump.watch`; None: what MINDSPORE_DUMP_CONFIG says, and without that nothing is dumped

    `with DumpCallback(config) as callback:` around `trainer.train()` ends the dump also where that raises.
    """

    def __init__(self, config: Config | None = None) -> None:
        self._dump = TrainingDump(config)

    @property
    def report(self) -> Report | None:
        """Counts of the last training; None before it has ended, and where nothing was dumped."""
        return self._dump.report

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._dump.begin(state.global_step)

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._dump.begin_batch()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        # Gradients that were accumulated are one step: it comes once for all their batches.
        self._dump.end_batch(is_step=True)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._dump.end()

    def __enter__(self) -> DumpCallback:
        return self

    def __exit__(self, *_: object) -> None:
        self._dump.end()

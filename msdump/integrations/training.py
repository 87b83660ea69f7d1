"""What callbacks of training loops share: an eager dump whose iterations are the loop's own steps."""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING, Any

from msdump.frontends.torch import watch

if TYPE_CHECKING:
    from msdump.engine.opening import Config
    from msdump.frontends.torch.eager.watching import Watch
    from msdump.process.report import Report

log = logging.getLogger("msdump")


class TrainingDump(contextlib.AbstractContextManager[Any]):
    """`msdump.watch` around the steps of a loop, and around nothing else: validation between them is not dumped.

    config  as of `msdump.watch`

    As a `with` block it ends the dump also where the loop raises.
    """

    def __init__(self, config: Config | None = None) -> None:
        self._config = config
        self._watch: Watch | None = None
        self.report: Report | None = None
        """Counts of the last training; None before it has ended, and where nothing was dumped."""

    def begin(self, step: int) -> None:
        """Training begins, or goes on.   step: number of the step that comes first

        Raises: as `msdump.watch`.
        """
        self.end()
        block = watch(config=self._config)
        block.__enter__()
        self._watch = block
        block.continue_at(step)
        block.pause()

    def begin_batch(self) -> None:
        if self._watch is not None:
            self._watch.resume()

    def end_batch(self, is_step: bool) -> None:
        """A batch has been run.   is_step: an optimizer has run; else the next batch belongs to the same step"""
        # Not between batches of one step: a tensor that is changed unseen would be shown as it was.
        if self._watch is not None and is_step:
            self._watch.step()
            self._watch.pause()

    def end(self) -> None:
        """Training has ended. Idempotent."""
        block, self._watch = self._watch, None
        if block is None:
            return
        try:
            block.__exit__(None, None, None)
        finally:
            self.report = block.report()
            if self.report is not None:
                log.info(
                    "%s: dumped %d of %d steps, %d tensors in %d files.",
                    *(self.report.path, self.report.iterations_dumped, self.report.iterations_run),
                    *(self.report.tensors_written, self.report.files),
                )

    def __exit__(self, *_: object) -> None:
        self.end()

"""`DSCallback`: what a script does around the epochs and steps of a `map`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from msdump.mindspore.dataset import checks
from msdump.mindspore.dataset.rows import Row, Values


@dataclass
class RunContext:
    """Where a `map` is. All numbers count from 1; `cur_step_num` over all epochs."""

    cur_epoch_num: int = 0
    cur_step_num: int = 0
    cur_step_num_in_epoch: int = 0


class DSCallback:
    """Base class of a script's callback. `step_size`: its step functions are called for every so many rows.

    The functions run on the thread that prepares the data, some rows before the training loop sees them.
    """

    def __init__(self, step_size: int = 1) -> None:
        self.step_size = checks.whole_number("DSCallback(step_size)", step_size)

    def ds_begin(self, ds_run_context: RunContext) -> None:
        """Before the first row of all."""

    def ds_epoch_begin(self, ds_run_context: RunContext) -> None:
        """Before the first row of an epoch."""

    def ds_epoch_end(self, ds_run_context: RunContext) -> None:
        """After the last row of an epoch."""

    def ds_step_begin(self, ds_run_context: RunContext) -> None:
        """Before a row is mapped."""

    def ds_step_end(self, ds_run_context: RunContext) -> None:
        """After a row was mapped."""


class MapCalls:
    """The callbacks of one `map`, and where it is. Owned by the thread that computes the rows."""

    def __init__(self, callbacks: Sequence[DSCallback]) -> None:
        self._callbacks = callbacks
        self._context = RunContext()

    @classmethod
    def of(cls, callbacks: Any) -> MapCalls | None:
        """None without callbacks.   Raises: TypeError for what is none."""
        if callbacks is None:
            return None
        given = list(callbacks) if isinstance(callbacks, (list, tuple)) else [callbacks]
        for callback in given:
            if not isinstance(callback, DSCallback):
                raise TypeError(f"map(callbacks): expected DSCallback objects, got {type(callback).__name__}.")
        return cls(given) if given else None

    def around(self, rows: Iterator[Row], epoch: int) -> Iterator[Row]:
        """`rows` of epoch number `epoch` (from 0), with the calls around them."""
        context = self._context
        context.cur_epoch_num, context.cur_step_num_in_epoch = epoch + 1, 0
        if epoch == 0:
            context.cur_step_num = 0
            self._call("ds_begin")
        self._call("ds_epoch_begin")
        for row in rows:
            yield self._around_step(row)
        self._call("ds_epoch_end")

    def _around_step(self, row: Row) -> Row:
        def compute() -> Values:
            self._context.cur_step_num += 1
            self._context.cur_step_num_in_epoch += 1
            self._call("ds_step_begin", is_step=True)
            values = row()
            self._call("ds_step_end", is_step=True)
            return values

        return compute

    def _call(self, name: str, is_step: bool = False) -> None:
        for callback in self._callbacks:
            # Source: MindSpore calls for the first row of an epoch and for every step_size-th after it.
            if not is_step or (self._context.cur_step_num_in_epoch - 1) % callback.step_size == 0:
                getattr(callback, name)(self._context)

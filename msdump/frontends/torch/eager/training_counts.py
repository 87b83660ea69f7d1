"""Which iterations train, and in which of them optimizers make their steps."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msdump.formats.steps_json import OptimizerSteps, TrainingSteps

if TYPE_CHECKING:
    import torch

_MAX_OPTIMIZERS = 10_000


class TrainingCounts:
    """Of one program, from its beginning on, in iterations that are dumped and in others."""

    def __init__(self) -> None:
        self._iterations = 0
        self._steps = 0
        self._rows: list[_Row] = []
        # By identity, which a new optimizer may take over from one that is gone.
        self._by_id: dict[int, tuple[weakref.ref[torch.optim.Optimizer], _Row]] = {}

    def begin_iteration(self) -> None:
        """Gradients were left in parameters, for the first time in an iteration."""
        self._iterations += 1

    def note_step(self, optimizer: torch.optim.Optimizer) -> None:
        """It has made a step, or a scaler has skipped it. One before the first backward pass is none of training."""
        at = self._iterations - 1
        if at < 0:
            return
        reference, row = self._by_id.get(id(optimizer), (None, None))
        if row is None or reference is None or reference() is not optimizer:
            if len(self._rows) >= _MAX_OPTIMIZERS:
                return
            row = _Row(type(optimizer).__name__, at)
            self._rows.append(row)
            self._by_id[id(optimizer)] = weakref.ref(optimizer), row
        row.steps += 1
        row.last = at
        self._steps += 1

    @property
    def is_round(self) -> bool:
        """Whether the number of steps is a power of two: a good time to keep what is known."""
        return self._steps & (self._steps - 1) == 0

    def so_far(self) -> TrainingSteps:
        rows = (OptimizerSteps(row.name, row.steps, row.first, row.last) for row in self._rows)
        return TrainingSteps(self._iterations, tuple(rows))


@dataclass(slots=True)
class _Row:
    name: str
    first: int
    steps: int = 0
    last: int = 0

"""StepBook: which steps run, which have ended, and which of those are on the disk to their ends."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

_DURATIONS = 50
_FEWEST_DURATIONS = 3


class StepBook:
    """Steps by their numbers. A step has the runs of one graph or several; any thread may tell of their ends.

    on_whole   called with a step all of whose runs are on the disk, once
    clock      seconds
    """

    def __init__(self, on_whole: Callable[[int], None], clock: Callable[[], float]) -> None:
        self.running: int | None = None
        self._on_whole = on_whole
        self._clock = clock
        self._begun: dict[int, set[int]] = {}
        self._ended: dict[int, set[int]] = {}
        self._began = clock()
        self._durations: deque[float] = deque(maxlen=_DURATIONS)
        self._lock = threading.Lock()

    def begin(self, graph_id: int, step: int) -> None:
        """A graph begins to run in a step; -1: the step is not recorded."""
        with self._lock:
            before = self.running
            if before is None or step > before:
                self.running, self._began = step, self._clock()
            if graph_id >= 0:
                self._begun.setdefault(step, set()).add(graph_id)
        if before is not None and step > before:
            self._check(before)

    def end(self, graph_id: int, step: int) -> None:
        """What a graph has shown in a step is on the disk."""
        with self._lock:
            self._ended.setdefault(step, set()).add(graph_id)
        self._check(step)

    def close(self) -> int | None:
        """The step that runs has ended.   Returns: its number."""
        with self._lock:
            step, self.running = self.running, None
            if step is not None:
                self._durations.append(self._clock() - self._began)
        if step is not None:
            self._check(step)
        return step

    @property
    def seconds(self) -> tuple[float, float]:
        """How long the step that runs has taken, and the median of those before; 0 and infinity while nothing can be
        said."""
        with self._lock:
            if self.running is None or len(self._durations) < _FEWEST_DURATIONS:
                return 0.0, float("inf")
            return self._clock() - self._began, sorted(self._durations)[len(self._durations) // 2]

    def _check(self, step: int) -> None:
        with self._lock:
            begun, ended = self._begun.get(step), self._ended.get(step)
            is_closed = self.running is None or step < self.running
            if not begun or not is_closed or ended is None or not begun <= ended:
                return
            for book in (self._begun, self._ended):
                for number in [
                    step_number for step_number in book if step_number <= step - _DURATIONS or step_number == step
                ]:
                    del book[number]
        self._on_whole(step)

"""Tally: what a dump has done so far, counted where it happens and read by the report at the end."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from msdump.graph.graph import Graph


@dataclass
class Tally:
    """Counts of one session. Times in seconds; `lost` counts records that were asked for and not written."""

    operators_seen: int = 0
    operators_selected: int = 0
    tensors_written: int = 0
    iterations_run: int = 0
    iterations_dumped: int = 0
    seconds: float = 0.0
    lost: int = 0
    error: str = ""
    skipped: Counter[str] = field(default_factory=Counter)
    overflows: list[str] | None = None
    """Full names of operators that overflowed or raised, in order; None unless somebody looks for them."""
    names_seen: set[str] = field(default_factory=set)
    _last_run: int = -1
    _dumped: set[tuple[Hashable, int]] = field(default_factory=set)

    def count_run(self, iteration: int, model: Hashable = None) -> None:
        """A graph runs. Graphs of one iteration, such as forward and backward of a step, count once.

        model   for those that count their iterations apart from others: each of their runs is one. Threads may begin
                them in another order than they were numbered in.
        """
        self.iterations_run += model is not None or iteration > self._last_run
        self._last_run = max(self._last_run, iteration)

    def count_dumped(self, iteration: int, model: Hashable = None) -> None:
        """A graph's part of an iteration was dumped. Iterations may end in any order where threads write them."""
        self.iterations_dumped += (model, iteration) not in self._dumped
        self._dumped.add((model, iteration))

    @contextmanager
    def timed(self) -> Iterator[None]:
        """What is done inside counts as time of the dump."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds += time.perf_counter() - started

    def count_graph(self, graph: Graph, masks: Sequence[int]) -> None:
        """Account for a compiled graph; `masks` has one entry per operator, 0 for those nobody asked for."""
        self.operators_seen += len(masks)
        self.operators_selected += sum(mask != 0 for mask in masks)
        self.names_seen.update(node.full_name for node in graph.kernels)
        self.names_seen.update(value.name for value in graph.dumped_parameters())

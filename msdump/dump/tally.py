"""Tally: what a dump has done so far, counted where it happens and read by the report at the end."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from msdump.graph.graph import Graph


@dataclass
class Tally:
    """Counts of one dump. Times in seconds; `lost` counts records that were selected and not written.

    Any thread may count through the methods: models of one dump run in several.
    """

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
    _runs: tuple[int, int] | None = None
    """First and last number of the iterations that ran."""
    _dumped: set[tuple[Hashable, int]] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def count_run(self, iteration: int, model: Hashable = None) -> None:
        """A graph runs. Graphs of one iteration, such as forward and backward of a step, count once.

        model   for those that count their iterations apart from others: each of their runs is one

        Threads may begin runs in another order than they were numbered in. The numbers of a session come from one
        counter, so that those between the first and the last were given to other runs.
        """
        with self._lock:
            if model is not None:
                self.iterations_run += 1
                return
            first, last = self._runs or (iteration, iteration)
            self._runs = first, last = min(first, iteration), max(last, iteration)
            self.iterations_run = last - first + 1

    def count_dumped(self, iteration: int, model: Hashable = None) -> None:
        """A graph's part of an iteration was dumped. Iterations may end in any order where threads write them."""
        with self._lock:
            self.iterations_dumped += (model, iteration) not in self._dumped
            self._dumped.add((model, iteration))

    def count_written(self, records: int) -> None:
        """Records are on disk."""
        with self._lock:
            self.tensors_written += records

    def count_lost(self, records: int) -> None:
        """Records were selected and are not written."""
        with self._lock:
            self.lost += records

    def count_skipped(self, reason: str, tensors: int = 1) -> None:
        """Tensors have no file, for this reason."""
        with self._lock:
            self.skipped[reason] += tensors

    def add_overflow(self, full_name: str) -> None:
        """An operator overflowed or raised."""
        with self._lock:
            self.overflows = [*(self.overflows or ()), full_name]

    def fail(self, error: BaseException) -> bool:
        """Keep the first error; whether it is this one."""
        with self._lock:
            is_first = not self.error
            self.error = self.error or str(error) or type(error).__name__
        return is_first

    @contextmanager
    def timed(self) -> Iterator[None]:
        """What is done inside counts as time of the dump."""
        started = time.perf_counter()
        try:
            yield
        finally:
            elapsed = time.perf_counter() - started
            with self._lock:
                self.seconds += elapsed

    def take_back(self, records: int) -> None:
        """Records that counted as written are lost: a writer held them, and could not finish them."""
        with self._lock:
            self.tensors_written -= records
            self.lost += records

    def count_graph(self, graph: Graph, masks: Sequence[int]) -> None:
        """Account for a compiled graph; `masks` has one entry per operator, 0 for those nobody asked for."""
        with self._lock:
            self.operators_seen += len(masks)
            self.operators_selected += sum(mask != 0 for mask in masks)
            self.names_seen.update(node.full_name for node in graph.kernels)
            self.names_seen.update(value.name for value in graph.dumped_parameters())

"""Tally: counts of a dump, updated while it runs and read by the report at the end."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from msdump.config.plan import Plan
from msdump.errors import MsdumpError, unwritten
from msdump.formats.writer import WriteCounts
from msdump.graph.graph import Graph
from msdump.process.report import Kind, Report, Skipped, log_not_chosen

log = logging.getLogger("msdump")


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
    skipped: Skipped = field(default_factory=Skipped)
    unseen: Counter[str] = field(default_factory=Counter)
    """Of `Report.unseen`."""
    overflows: list[str] | None = None
    """Full names of operators that overflowed or raised, in order; None where they are not recorded."""
    names_seen: set[str] = field(default_factory=set)
    on_stop: str = "Dump stopped, training continues: %s"
    """What the log says of the error with which the dump stops."""
    _runs: tuple[int, int] | None = None
    """First and last number of the iterations that ran."""
    _dumped: set[tuple[Hashable, int]] = field(default_factory=set)
    _has_ended: bool = False
    """Whether an iteration that was to be dumped has come to its end."""
    _chosen: WeakKeyDictionary[Graph, list[bool]] = field(default_factory=WeakKeyDictionary)
    """Of each graph that is complete: which operators were selected."""
    _chosen_names: dict[str, bool] = field(default_factory=dict)
    """The same of open graphs."""
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

    def count_dumped(self, iteration: int, model: Hashable = None, is_empty: bool = False) -> None:
        """A graph's part of an iteration was dumped. Iterations may end in any order where threads write them.

        is_empty   it has no tensor, as none of its operators was selected: no reader finds it
        """
        with self._lock:
            self._has_ended = True
            if is_empty:
                return
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

    def count_skipped(self, reason: str, tensors: int = 1, name: str = "") -> None:
        """Tensors have no file, for this reason.   name: of one of them, for the log"""
        with self._lock:
            if name:
                self.skipped.add(reason, name)
            else:
                self.skipped[reason] += tensors

    def count_unseen(self, count_by_type: Mapping[str, int]) -> None:
        """Operators that another one runs, which no dump is shown.   count_by_type: by the type of that one"""
        with self._lock:
            self.unseen.update(count_by_type)

    def add_overflow(self, full_name: str) -> None:
        """An operator overflowed or raised."""
        with self._lock:
            self.overflows = [*(self.overflows or ()), full_name]

    def fail(self, error: BaseException, text: str = "") -> bool:
        """The dump is over: keep and log the first error; whether it is this one.

        text  what the log says of it, in place of `on_stop`
        """
        with self._lock:
            is_first = not self.error
            self.error = self.error or str(error) or type(error).__name__
        if is_first:
            log.error(text or self.on_stop, self.error)
        return is_first

    def stop_on_failure(self, records: int = 0, text: str = "", is_timed: bool = False) -> Attempt:
        """Turns a failure to dump inside of a `with` into the end of the dump.

        records   to be written inside; those that the attempt does not count as written are lost with the failure
        text      as `fail`
        is_timed  what is done inside counts as time of the dump
        """
        return Attempt(self, records, text, is_timed)

    def add_seconds(self, seconds: float) -> None:
        """Time that the dump took."""
        with self._lock:
            self.seconds += seconds

    @contextmanager
    def timed(self) -> Iterator[None]:
        """What is done inside counts as time of the dump."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.add_seconds(time.perf_counter() - started)

    def take_back(self, records: int) -> None:
        """Records that counted as written are lost: a writer held them, and could not finish them."""
        with self._lock:
            self.tensors_written -= records
            self.lost += records

    def count_graph(self, graph: Graph, masks: Sequence[int]) -> None:
        """Account for a compiled graph, once; `masks` has one entry per operator, 0 for those that are not dumped."""
        with self._lock:
            before = self._chosen.get(graph)
            if before is None:
                self.operators_seen += len(masks)
                log_not_chosen(node.full_name for node, mask in zip(graph.kernels, masks, strict=False) if not mask)
                before = [False] * len(masks)
            # Where a plan took another's place, an operator counts if one of them chose it.
            self.operators_selected += sum(mask != 0 and not was for mask, was in zip(masks, before, strict=True))
            self._chosen[graph] = [mask != 0 or was for mask, was in zip(masks, before, strict=True)]
            self.names_seen.update(node.full_name for node in graph.kernels)
            self.names_seen.update(value.name for value in graph.dumped_parameters())

    def count_operator(self, full_name: str, mask: int) -> None:
        """Account for a further operator of an open graph, as `count_graph`. One that has come under this name before
        counts once."""
        with self._lock:
            if full_name not in self.names_seen:
                self.names_seen.add(full_name)
                self.operators_seen += 1
                self.operators_selected += mask != 0
                self._chosen_names[full_name] = mask != 0
                log_not_chosen([] if mask else [full_name])
            elif mask and not self._chosen_names.get(full_name, True):
                self.operators_selected += 1
                self._chosen_names[full_name] = True

    def why_nothing(self, plan: Plan) -> tuple[str, ...]:
        """Sentences for the user of a dump of graphs in which no operator of any step was chosen."""
        if not self._has_ended:
            asked, count = plan.when.iterations, self.iterations_run
            if not count:
                return ("No iteration ran: the script called no cell, no gradient and no function under jit.",)
            if any(number in asked for number in range(count)):
                return (f"{count} iterations began, and none of those in '{asked}' came to its end.",)
            return (f"No iteration that ran is in '{asked}': {count} ran, and the first one is 0.",)
        if self.operators_selected:
            return ()
        if plan.which.takes_marked:
            return ("`dump_mode` is 2 and no operator is marked: call mindspore.set_dump(cell) before its first run.",)
        return ("No operator matched `kernels`. `msdump plan CONFIG` shows what each entry means.",)

    def report(self, path: str, kind: Kind, written: WriteCounts, iterations_asked: str = "") -> Report:
        """Counts up to now, with what the dump's writers have written."""
        with self._lock:
            return Report(
                path,
                kind,
                iterations_asked,
                iterations_run=self.iterations_run,
                iterations_dumped=self.iterations_dumped,
                operators_seen=self.operators_seen,
                operators_selected=self.operators_selected,
                tensors_written=self.tensors_written,
                files=written.files,
                links=written.links,
                bytes_named=written.bytes_named,
                bytes_written=written.bytes_written,
                skipped=dict(self.skipped),
                unseen=dict(self.unseen),
                overflows=None if self.overflows is None else tuple(self.overflows),
                lost=self.lost,
                error=self.error or None,
                dump_seconds=self.seconds,
            )

    def leave_to_parent(self) -> None:
        """In a process that was forked: count from here on; an error stays."""
        self._lock = threading.Lock()
        self.operators_seen = self.operators_selected = self.tensors_written = self.lost = 0
        self.iterations_run = self.iterations_dumped = 0
        self.seconds = 0.0
        self.skipped = Skipped()
        self.unseen = Counter()


class Attempt:
    """Work of a dump that may fail.   `missing`: records that are not written yet."""

    def __init__(self, tally: Tally, records: int, text: str, is_timed: bool) -> None:
        self.missing = records
        self._tally = tally
        self._text = text
        self._is_timed = is_timed
        self._started = 0.0
        self._lock = threading.Lock()

    def count_written(self, records: int) -> None:
        """Any thread may call it."""
        with self._lock:
            self.missing -= records
        self._tally.count_written(records)

    def __enter__(self) -> Attempt:
        if self._is_timed:
            self._started = time.perf_counter()
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        tally = self._tally
        if self._is_timed:
            tally.add_seconds(time.perf_counter() - self._started)
        if not isinstance(error, (MsdumpError, OSError, MemoryError)):
            return False
        tally.count_lost(max(0, self.missing))
        tally.take_back(unwritten(error))
        tally.fail(error, self._text)
        return True

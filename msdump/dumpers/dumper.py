"""Dumper: what all dumpers share: which iterations they watch, what their work costs, how a dump that fails ends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence

from msdump.dumpers.capture import Clock
from msdump.dumpers.tally import Attempt, Tally
from msdump.errors import GraphError
from msdump.graph.graph import Graph, Value
from msdump.graph.run import FinishedStep
from msdump.tensors.records import OpEvent, OpInfo


class Dumper(ABC):
    """Observer that turns what it sees into files. `tests/contracts/dumper_contract.py` says what holds for each.

    tally   counts, and keeps the error that has ended the dump; dumpers of one dump share it
    clock   gives the time stamps of records
    model   for dumpers that count their iterations apart from others, as `Tally.count_run`

    A failure to write ends the dump, not the run: it is logged once and kept in `tally.error`. After that, and after
    `close`, no iteration is watched. What is done inside `_dumping` counts as time of the dump.
    """

    needs_all_values = False

    def __init__(self, tally: Tally, clock: Clock | None = None, model: Hashable = None) -> None:
        self._tally = tally
        self._clock = clock or Clock()
        self._model = model
        self._is_closed = False

    @abstractmethod
    def on_graph(self, graph: Graph) -> Sequence[int]:
        """Decide what is watched of a graph, and count it."""

    def on_operator(self, graph: Graph, op: OpInfo) -> int:
        """Decide what is watched of a further operator of an open graph, and count it."""
        raise GraphError(f"{op.full_name}: expected a graph that is complete, got one that is open, for {type(self)}.")

    def on_parameter(self, graph: Graph, value: Value) -> None:  # noqa: B027 - few write parameters
        """An open graph got a further parameter."""

    def on_iteration_begin(self, graph: Graph, iteration: int) -> bool:
        self._tally.count_run(iteration, self._model)
        self._forget(graph)
        if self._is_over() or not self._is_dumped(graph, iteration):
            return False
        with self._dumping():
            return self._begin(graph, iteration)
        return False

    def before_op(self, event: OpEvent) -> None:  # noqa: B027 - not all copy what is overwritten
        """An operator that was selected is about to run."""

    def after_op(self, event: OpEvent) -> None:  # noqa: B027 - not all write while the step runs
        """An operator that was selected has run."""

    def on_iteration_end(self, step: FinishedStep) -> None:  # noqa: B027 - not all have something to end
        """All operators have run."""

    def on_error(self, event: OpEvent, error: BaseException) -> None:  # noqa: B027 - not all dump such a step
        """An operator raised: the iteration ends here."""

    def close(self) -> None:
        """Runs that come later are not dumped. Idempotent."""
        if not self._is_closed:
            self._is_closed = True
            self._close()

    # -- for dumpers ------------------------------------------------------------------------------

    def _is_over(self) -> bool:
        """Whether nothing more is dumped."""
        return self._is_closed or bool(self._tally.error)

    @abstractmethod
    def _is_dumped(self, graph: Graph, iteration: int) -> bool:
        """Whether the plan wants an iteration."""

    def _forget(self, graph: Graph) -> None:  # noqa: B027 - most keep nothing between the calls of a step
        """A run begins: drop the state of a run that Ctrl-C ended, as observers are not notified of that."""

    def _begin(self, graph: Graph, iteration: int) -> bool:
        """Prepare an iteration that the plan wants; False when it is not dumped after all."""
        return True

    def _close(self) -> None:  # noqa: B027 - what several dumpers share is closed by its owner
        """End what is open."""

    def _dumping(self, records: int = 0, text: str = "") -> Attempt:
        """Work of the dump, which takes its time and may fail, as `Tally.stop_on_failure`."""
        return self._tally.stop_on_failure(records, text, is_timed=True)


class NoDumper(Dumper):
    """Replaces a dumper where the new plan dumps nothing of a model."""

    def on_graph(self, graph: Graph) -> Sequence[int]:
        return [0] * len(graph.op_infos())

    def on_iteration_begin(self, graph: Graph, iteration: int) -> bool:
        return False

    def _is_dumped(self, graph: Graph, iteration: int) -> bool:
        return False

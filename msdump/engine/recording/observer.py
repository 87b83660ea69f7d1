"""What a recorder sees of a run: its steps, the first result that is not finite, and when files are whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from msdump.config.plan import OVERFLOW_ALL, Plan
from msdump.dumpers.overflow import OverflowFinder
from msdump.dumpers.tally import Tally
from msdump.engine.recording.recorder import Recorder
from msdump.formats.writer import WriteCounts
from msdump.graph.graph import Graph
from msdump.graph.run import FinishedStep
from msdump.tensors.records import OpEvent, OpInfo, TensorRecord


class RecorderObserver(OverflowFinder):
    """Observer that tells a recorder of steps, and of the first operator of a step whose result is not finite."""

    def __init__(self, plan: Plan, recorder: Recorder) -> None:
        looks = plan.recorder is not None and "nonfinite" in plan.recorder.on
        super().__init__(replace(plan, trigger=replace(plan.trigger, overflow=OVERFLOW_ALL)), Tally())
        self._recorder = recorder
        self._looks = looks
        self._told_of: int | None = None

    def on_graph(self, graph: Graph) -> Sequence[int]:
        masks = super().on_graph(graph)
        return masks if self._looks else [0] * len(masks)

    def on_operator(self, graph: Graph, op: OpInfo) -> int:
        mask = super().on_operator(graph, op)
        return mask if self._looks else 0

    def on_iteration_begin(self, graph: Graph, iteration: int) -> bool:
        self._recorder.begin_run(graph.graph_id if self._is_dumped(graph, iteration) else -1, iteration)
        return super().on_iteration_begin(graph, iteration) and self._looks

    def on_iteration_end(self, step: FinishedStep) -> None:
        """Nothing: the writers say when its files are whole."""

    def _found(self, event: OpEvent, slots: tuple[int, ...]) -> None:
        self._tell(event, slots, "no input does")

    def _passed_on(self, event: OpEvent, slots: tuple[int, ...]) -> None:
        self._tell(event, slots, "and so does an input")

    def _tell(self, event: OpEvent, slots: tuple[int, ...], inputs: str) -> None:
        if self._told_of != event.iteration:
            self._told_of = event.iteration
            outputs = ", ".join(map(str, slots))
            self._recorder.trigger("nonfinite", f"{event.op.full_name}: output {outputs} holds Inf or NaN, {inputs}")


class StepMarker:
    """Writer that writes nothing: behind the others, it tells a recorder when all files of a run are on the disk."""

    writes_once = True
    takes_empty = False

    def __init__(self, recorder: Recorder, tally: Tally) -> None:
        self._recorder = recorder
        self._tally = tally

    @property
    def counts(self) -> WriteCounts:
        return WriteCounts()

    def write(self, records: Sequence[TensorRecord]) -> None:
        """Nothing."""

    def end_iteration(self, graph_id: int, iteration: int) -> None:
        if not self._tally.error:
            self._recorder.end_run(graph_id, iteration)

    def close(self) -> None:
        """Nothing."""

"""From the settings of a recorder to its ring, and to the parts of a dump that fill the ring and watch the run."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from msdump.config.plan import OVERFLOW_ALL, Plan, RecorderPlan
from msdump.dumpers.overflow import OverflowFinder
from msdump.dumpers.rotation import Rotation
from msdump.dumpers.tally import Tally
from msdump.engine.recording.collecting import keep_left_over, remove_pointer, write_pointer
from msdump.engine.recording.incidents import IncidentLog
from msdump.engine.recording.recorder import Recorder
from msdump.engine.recording.ring import RankRing, choose_ring, ring_home, take_home
from msdump.formats.paths.sync import MAPPING_FILE, STATISTIC_FILE
from msdump.formats.spare_files import SpareFiles
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


log = logging.getLogger("msdump")

# The step that runs, and one by which another rank may be ahead.
_SLACK = 2


@dataclass(frozen=True, slots=True)
class OpenRing:
    """The ring of this process, which it holds."""

    rank_ring: RankRing
    budget_bytes: int
    recorder: Recorder


def open_ring(path: Path, rank: int, wish: RecorderPlan) -> OpenRing:
    """Take the ring of a rank; what a process before has left in it is kept first.

    Raises: ConfigError for a ring without room, or one that another process has; WriteError.
    """
    folder, budget, said = choose_ring(wish.ring, wish.budget, path)
    if said:
        log.warning("Flight recorder: %s", said)
    rank_ring = RankRing(take_home(folder, path, rank), rank)
    if rank_ring.home != ring_home(folder, path):
        log.warning(
            "Flight recorder: the ring is in %s, as another user has made %s.", rank_ring.home, ring_home(folder, path)
        )
    rank_ring.take()
    for kept_ring in keep_left_over([rank_ring], path):
        log.warning(
            "Flight recorder: an earlier process of rank %d ended without closing; %s now holds its steps %s.",
            *(rank, path / kept_ring.incident.name, ", ".join(map(str, kept_ring.kept.whole))),
        )
    incidents = IncidentLog(path)
    rank_ring.begin(write_pointer(path, rank_ring, incidents.base, wish.steps))
    recorder = Recorder(wish, path, rank_ring, incidents, on_end=lambda: remove_pointer(path, rank))
    return OpenRing(rank_ring, budget, recorder)


@dataclass(frozen=True, slots=True)
class RingParts:
    """What a dump that fills a ring has besides an ordinary one.

    tensors, statistics  what removes old files of each
    observer, marker     tell the recorder what runs, and what is on the disk
    spares               files of removed steps that those of the next step are written over
    """

    recorder: Recorder
    tensors: Rotation
    statistics: Rotation
    observer: RecorderObserver
    marker: StepMarker
    tally: Tally
    spares: SpareFiles

    @staticmethod
    def make(plan: Plan, recorder: Recorder, wish: RecorderPlan, spares: SpareFiles) -> RingParts:
        root, tally = plan.where.path, Tally()
        return RingParts(
            recorder,
            Rotation(root, wish.steps + _SLACK, (MAPPING_FILE,), is_shared=True, spares=spares),
            Rotation(root, max(wish.statistics, wish.steps) + _SLACK, (STATISTIC_FILE,), is_shared=True),
            RecorderObserver(plan, recorder),
            StepMarker(recorder, tally),
            tally,
            spares,
        )

    def make_room(self) -> int:
        """Remove the tensors of the ring's oldest step, or with a single step, the oldest statistics."""
        return self.tensors.drop_oldest() or self.statistics.drop_oldest()

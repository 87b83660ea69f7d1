"""From the settings of a recorder to its ring, and to the parts of a dump that fill the ring."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

from msdump.config.plan import Plan, RecorderPlan
from msdump.dumpers.rotation import Rotation
from msdump.dumpers.tally import Tally
from msdump.engine.recording.collecting import keep_left_over, remove_pointer, write_pointer
from msdump.engine.recording.incidents import IncidentLog
from msdump.engine.recording.observer import RecorderObserver, StepMarker
from msdump.engine.recording.recorder import Recorder
from msdump.engine.recording.ring import RankRing, choose_ring, ring_home, take_home
from msdump.formats.paths.sync import MAPPING_FILE, STATISTIC_FILE
from msdump.formats.spare_files import SpareFiles

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

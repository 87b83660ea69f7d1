"""Recorder: the flight recorder of one rank. It tracks steps, receives triggers, and keeps the agreed steps."""

from __future__ import annotations

import contextlib
import faulthandler
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from operator import ge, gt, le, lt
from pathlib import Path

from msdump.config.plan import RecorderPlan
from msdump.engine.recording.collecting import finish, pin
from msdump.engine.recording.incidents import TERMINAL, Incident, IncidentLog
from msdump.engine.recording.replicas import Replicas
from msdump.engine.recording.ring import RankRing
from msdump.engine.recording.triggers import Hooks, SpikeRule
from msdump.errors import MsdumpError
from msdump.formats.atomic import make_dirs

log = logging.getLogger("msdump")

STACKS, REPLICAS = "stacks.txt", "replicas"
_COMPARISONS: dict[str, Callable[[float, float], bool]] = {">": gt, ">=": ge, "<": lt, "<=": le}
_HANG_FACTOR = 5
_FLUSH_SECONDS = 10.0


class Recorder:
    """Keeps steps of the ring on a trigger. Calls of the script and of observers come from any thread.

    path   folder of the dump, shared by all ranks
    clock  seconds
    on_end  called when nothing of this process is in the ring any longer

    `replicas` compares what several ranks hold; None where no trigger needs it.
    `flush` waits, at most so many seconds, until what was shown is in the ring; the engine sets it.
    """

    def __init__(
        self,
        plan: RecorderPlan,
        path: Path,
        ring: RankRing,
        incidents: IncidentLog,
        clock: Callable[[], float] = time.monotonic,
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        self._on_end = on_end
        self.path = path
        self.kept: list[Incident] = []
        self.suppressed = 0
        self.error = ""
        self.flush: Callable[[float | None], object] = lambda _: None
        self._plan = plan
        self._ring = ring
        self._log = incidents
        self._book = StepBook(self._note_whole, clock)
        self._lock = threading.RLock()
        self._open: list[Incident] = []
        self._finishing: list[Incident] = []
        self._notes: list[tuple[str, str]] = []
        self._spikes: dict[str, SpikeRule] = {}
        self._copies: list[threading.Thread] = []
        self._is_armed = True
        self._is_finite = True
        self._is_hung = False
        self._is_foreign = False
        self._steps_seen = 0
        self.replicas = Replicas(path, ring.rank) if REPLICAS in plan.on else None
        self._hooks = Hooks(plan.on, self._tell, self._note, self.watch)

    def begin(self) -> None:
        """Listen to the process, until `close`."""
        self._hooks.begin()

    # -- steps ------------------------------------------------------------------------------------

    def begin_run(self, graph_id: int, step: int) -> None:
        """A graph begins to run in a step. With the first one the step before has ended."""
        running = self._book.running
        if running is not None and step > running:
            self.end_step()
        if running is None or step > running:
            self._steps_seen += 1
        self._book.begin(graph_id, step)

    def end_run(self, graph_id: int, step: int) -> None:
        """What a graph has shown in a step is on the disk."""
        self._book.end(graph_id, step)

    def end_step(self) -> None:
        """The step that runs has ended: look what other ranks have decided, and keep what is due."""
        with self._lock:
            if self._is_foreign:
                return
            self._hear()
            self._compare()
            self._is_hung = False
            self._is_armed = self._is_armed or self._is_finite
            self._is_finite = True
        step = self._book.close()
        self._open_news()
        if self._open and step is not None:
            self.flush(None)
            self._keep(step)

    def note_values(self, values: dict[str, float]) -> None:
        """Numbers of the step that runs: each belongs to a series of its own, in which it may be a spike."""
        for name, value in values.items():
            rule = self._spikes.setdefault(name, SpikeRule(name, self._plan.spike))
            why, text = rule.add(value)
            if why:
                self.trigger(why, text)
            for rule_name, comparison, limit in self._plan.rules:
                if rule_name == name and _COMPARISONS[comparison](value, limit):
                    self.trigger("rule", f"{name} is {value:.6g}, and the rule is {comparison} {limit:g}")

    # -- triggers ---------------------------------------------------------------------------------

    def trigger(self, why: str, text: str = "", offset: int = 0) -> Incident | None:
        """Something has happened in the step that runs.

        why      of TRIGGERS, or "command", which always holds
        offset   steps from the one that runs
        Returns: the incident that keeps it; None where none does: it is not listened for, or comes too soon after
                 another one.
        """
        with self._lock:
            if self._is_foreign or (why != "command" and why != "killed" and why not in self._plan.on):
                return None
            if why == "nonfinite":
                self._is_finite = False
                if not self._is_armed:
                    return None
                self._is_armed = False
            step = self._book.running
            if step is None:
                log.warning("Flight recorder: %s (%s), but no step has run: there is nothing to keep.", why, text)
                return None
            try:
                return self._declare(why, text, step + offset)
            except (MsdumpError, OSError) as error:
                self._fail(error)
                return None

    def watch(self) -> None:
        """Called now and then by another thread: does the step that runs take too long?"""
        seconds, median = self._book.seconds
        if self._is_hung or seconds <= max(self._plan.hang, _HANG_FACTOR * median):
            return
        self._is_hung = True
        text = f"the step has taken {seconds:.3g} s, and {median:.3g} s are usual"
        incident = self.trigger("hang", text)
        if incident is None:
            return
        try:
            folder = self._ring.state / incident.name
            make_dirs(folder)
            with open(folder / STACKS, "w", encoding="utf-8") as file:
                faulthandler.dump_traceback(file, all_threads=True)
            self.flush(_FLUSH_SECONDS)
            self._finish(incident)
        except (MsdumpError, OSError) as error:
            self._fail(error)

    def _declare(self, why: str, text: str, step: int) -> Incident | None:
        plan = self._plan
        is_terminal = why in TERMINAL
        self._open_news()
        for incident in reversed(self._log.seen):
            if incident.first <= step <= incident.last + is_terminal:
                return incident
        earlier = self._log.seen
        is_soon = why != "command" and not is_terminal and bool(earlier) and step - earlier[-1].step < plan.distance
        if is_soon or len(earlier) >= plan.count:
            self.suppressed += 1
            return None
        # The whole steps before this one; what raises, hangs or is ended does not come to a step behind it.
        first, last = step - plan.steps, step if is_terminal else step + plan.after
        wish = Incident(why, text, self._ring.rank, step, max(0, first), last)
        incident = self._log.declare(wish, lambda earlier: earlier.keeps(step))
        if incident.why == why and incident.rank == self._ring.rank:
            log.warning("Flight recorder: %s in step %d, %s.", why, step, _range_text(text, incident))
        self._open.append(incident) if incident not in self._open else None
        return incident

    def _tell(self, why: str, text: str) -> None:
        self.trigger(why, text)

    def _note(self, why: str, text: str) -> None:
        self._notes.append((why, text))

    def _hear(self) -> None:
        """Triggers that wait: signals, and a file that asks."""
        while self._notes:
            self.trigger(*self._notes.pop(0))
        request = self._log.take_request()
        if request is not None:
            self.trigger("command", request.why, request.offset)

    def _compare(self) -> None:
        """Replicas of other ranks. Where files of theirs cannot be read or written, nothing more is compared."""
        if self.replicas is None:
            return
        try:
            text = self.replicas.end_step()
        except (MsdumpError, OSError) as error:
            log.warning("Flight recorder, which compares no replicas any longer: %s", error)
            self.replicas = None
            return
        if text:
            self.trigger(REPLICAS, text)

    # -- keeping ----------------------------------------------------------------------------------

    def _open_news(self) -> None:
        with self._lock:
            for incident in self._log.poll():
                if incident.last >= 0 and incident not in self._open:
                    self._open.append(incident)

    def _note_whole(self, step: int) -> None:
        try:
            self._ring.note_whole(step)
        except MsdumpError as error:
            self._fail(error)

    def _keep(self, ended: int) -> None:
        """Pin complete steps; copy an incident whose last step has ended to its folder, while the script continues."""
        with self._lock:
            try:
                for incident in list(self._open):
                    pin(self._ring, incident, with_cut=ended >= incident.last)
                    if ended >= incident.last:
                        self._open.remove(incident)
                        self._ring.pin_rest(incident.name, incident.last)
                        copy = threading.Thread(target=self._finish_pinned, args=(incident,), name="msdump-keep")
                        self._copies.append(copy)
                        copy.start()
            except (MsdumpError, OSError) as error:
                self._fail(error)

    def _finish_pinned(self, incident: Incident) -> None:
        try:
            self._finish(incident)
        except (MsdumpError, OSError) as error:
            self._fail(error)

    def _finish(self, incident: Incident) -> None:
        with self._lock:
            if incident in self._finishing:
                return
            self._finishing.append(incident)
            if incident in self._open:
                self._open.remove(incident)
        kept = finish(self._ring, self.path, incident)
        self.kept.append(incident)
        log.info("Flight recorder: kept steps %s of %s.", kept.whole, incident.name)

    def _fail(self, error: BaseException) -> None:
        """Log once; the ring continues, and keeps its steps."""
        if not self.error:
            self.error = str(error)
            log.error("Flight recorder, which continues: %s", error)

    # -- end --------------------------------------------------------------------------------------

    def close(self) -> None:
        """Keep what is due, and empty the ring unless something of it could not be kept. Idempotent."""
        if self._is_foreign:
            return
        self._hooks.end()
        with self._lock:
            self._hear()
            self._compare()
        self._book.close()
        self._open_news()
        for incident in list(self._open):
            self._finish_pinned(incident)
        for copy in self._copies:
            copy.join()
        if self.replicas is not None:
            self.replicas.close()
        self._ring.leave(is_empty=not self.error)
        if not self.error:
            self._on_end()

    def leave_to_parent(self) -> None:
        """In a process that was forked: nothing is recorded, and nothing of the parent's is touched."""
        self._is_foreign = True
        self._lock = threading.RLock()
        self._hooks.leave_to_parent()
        self._ring.leave_to_parent()

    @property
    def lines(self) -> tuple[str, ...]:
        """What the report says."""
        lines = [
            f"flight recorder: {incident.why} in step {incident.step} ({incident.text}): steps {incident.first} to "
            f"{incident.last} are in {self.path / incident.name}"
            for incident in self.kept
        ]
        if self.error:
            lines.append(
                f"flight recorder: what could not be kept is still in the ring {self._ring.home}; fix the cause and "
                f"type `msdump recorder collect {self.path}`. {self.error}"
            )
        elif not self.kept:
            lines.append(f"flight recorder: {self._steps_seen} steps ran, and nothing happened that keeps any.")
        if self.suppressed:
            lines.append(
                f"flight recorder: {self.suppressed} triggers kept nothing, as they came less than "
                f"{self._plan.distance} steps after another one, or after {self._plan.count} of them."
            )
        return tuple(lines)


def _range_text(text: str, incident: Incident) -> str:
    with contextlib.suppress(ValueError):
        text = text.rstrip(".")
    return f"{text}. Steps {incident.first} to {incident.last} of all ranks are kept"


# -- steps -------------------------------------------------------------------------------------------------------------

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
        """A graph begins to run in a step; -1: nobody sees what runs in it."""
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
                for number in [each for each in book if each <= step - _DURATIONS or each == step]:
                    del book[number]
        self._on_whole(step)

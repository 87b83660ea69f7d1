"""Session: one process's dump, from its environment and configuration to its end."""

from __future__ import annotations

import atexit
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import TYPE_CHECKING

from msdump.child_reports import Outbox, is_child
from msdump.errors import DumpError
from msdump.termination import end_script

if TYPE_CHECKING:
    from msdump.config.plan import DumpPlan
    from msdump.dump.tally import Tally
    from msdump.dump.writer_pool import WriterPool
    from msdump.formats.folders import FolderHold
    from msdump.formats.writer import Writer
    from msdump.graph.run import Observer

log = logging.getLogger("msdump")

# Held while the session is opened, while a graph is compiled and made known to observers, and while a run is observed:
# observers take one run at a time, from whichever thread.
lock = threading.RLock()


@dataclass(frozen=True)
class RunReport:
    """What one process asked for and got. Sizes in bytes, times in seconds.

    overflows  names of the operators that overflowed; None when nobody looked, and then nothing but the ordinary
               dump writes tensors
    outside    what of the script ran where the dump could not see it, a line for each place
    """

    path: str
    iterations_asked: str
    iterations_run: int = 0
    iterations_dumped: int = 0
    operators_seen: int = 0
    operators_selected: int = 0
    tensors_written: int = 0
    files: int = 0
    links: int = 0
    bytes_named: int = 0
    bytes_written: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    unmatched: tuple[str, ...] = ()
    overflows: tuple[str, ...] | None = None
    lost: int = 0
    error: str | None = None
    dump_seconds: float = 0.0
    run_seconds: float = 0.0
    outside: tuple[str, ...] = ()


class Session:
    """One process's dump. Made at the first graph compile; `close` is idempotent and also runs at exit.

    pool   threads that write while the script goes on, for whoever shows their progress; None when there are none
    hold   keeps other processes out of the folder until `close`; None where each process has folders of its own
    """

    def __init__(
        self,
        plan: DumpPlan,
        observers: tuple[Observer, ...],
        writers: tuple[Writer, ...],
        tally: Tally,
        pool: WriterPool | None = None,
        hold: FolderHold | None = None,
    ) -> None:
        self.plan = plan
        self.observers = observers
        self.pool = pool
        self._writers = writers
        self._tally = tally
        self._hold = hold
        self._outbox = Outbox(str(plan.path))
        self._next_iteration = plan.initial_iteration
        self._started = time.perf_counter()
        self._run_seconds = 0.0
        self._is_closed = False
        self._is_foreign = False
        self._remarks: list[Callable[[], tuple[str, ...]]] = []

    def add_remarks(self, remarks: Callable[[], tuple[str, ...]]) -> None:
        """Lines of the report on what ran outside of what a frontend could see; asking twice changes nothing."""
        if remarks not in self._remarks:
            self._remarks.append(remarks)

    def count_skipped(self, reason: str, count: int = 1) -> None:
        """Tensors that a frontend cannot show to anybody, for the report."""
        self._tally.count_skipped(reason, count)

    @property
    def is_foreign(self) -> bool:
        """Whether the session belongs to the process that this one was forked from: its observers see no run here."""
        return self._is_foreign

    def next_iteration(self) -> int:
        """Number of the run that starts now; one counter for all root graphs.   Source: MindSpore, several graphs."""
        if self._is_foreign:
            _warn_of_fork()
        with lock:
            if on_step is not None:
                on_step(self)
            self._next_iteration += 1
            return self._next_iteration - 1

    def close(self) -> None:
        """Finish what is pending.

        Raises: DumpError when the dump is not complete; the message counts what was lost.
        """
        if self._is_closed:
            return
        self._is_closed = True
        try:
            for observer in self.observers:
                observer.close()
        finally:
            # Also when a signal ends the wait: what was lost is counted then.
            self.let_go()
            self._tell_parent()
        self._run_seconds = time.perf_counter() - self._started
        if self._tally.error:
            raise DumpError(
                f"{self.plan.path}: the dump is not complete, {self._tally.lost} tensors of the step "
                f"that failed are missing and later steps were not dumped. {self._tally.error}"
            )

    def _tell_parent(self) -> None:
        tally = self._tally
        is_empty = not tally.tensors_written and tally.overflows is None
        error = tally.error or (f"{tally.lost} tensors were not written." if tally.lost else None)
        self._outbox.finish(tally.tensors_written, is_empty, error)

    def let_go(self) -> None:
        """Let other processes dump into the folder."""
        if self._hold is not None:
            self._hold.release()

    def leave_to_parent(self) -> None:
        """In a process that was forked: dump nothing and finish nothing, as threads and files are the parent's."""
        self._is_foreign = self._is_closed = True
        if self._hold is not None:
            self._hold.leave_to_parent()
        self._tally.error = "The session belongs to the process that this one was forked from."

    def report(self) -> RunReport:
        """Counts up to now."""
        from msdump.config.plan import unmatched_selectors

        tally = self._tally
        counts = [writer.counts for writer in self._writers]
        unmatched = unmatched_selectors(self.plan, tally.names_seen)
        return RunReport(
            path=str(self.plan.path),
            iterations_asked=str(self.plan.iterations),
            iterations_run=tally.iterations_run,
            iterations_dumped=tally.iterations_dumped,
            operators_seen=tally.operators_seen,
            operators_selected=tally.operators_selected,
            tensors_written=tally.tensors_written,
            files=sum(count.files for count in counts),
            links=sum(count.links for count in counts),
            bytes_named=sum(count.bytes_named for count in counts),
            bytes_written=sum(count.bytes_written for count in counts),
            skipped=dict(tally.skipped),
            unmatched=tuple(f"{text}. {advice}".rstrip(". ") for text, advice in unmatched.items()),
            overflows=None if tally.overflows is None else tuple(tally.overflows),
            lost=tally.lost,
            error=tally.error or None,
            dump_seconds=tally.seconds,
            run_seconds=self._run_seconds or time.perf_counter() - self._started,
            outside=tuple(line for remarks in self._remarks for line in remarks()),
        )


# Called when a step begins, before it has its number; what it raises ends the script.
on_step: Callable[[Session], None] | None = None

# Called once, when a graph is compiled that no dump is configured for.
on_no_dump: Callable[[], None] | None = None

_session: Session | None = None
_is_decided = False
_is_forked = False  # from a process that had a session
_has_warned = False
_sigterm_process = 0  # that took the signal, as its children have not


def open_mindspore(
    device_target: str, device_id: int, is_pynative: bool = False, jit_level: str = ""
) -> Session | None:
    """The process's session for MindSpore Dump; None when Dump is off.

    The environment and the JSON are read once, at the first call; a call that raises decides nothing.
    Raises: ConfigError before anything is written; WriteError when the folder cannot be made.
    """
    from msdump.config.environment import Environment
    from msdump.config.plan import plan_mindspore

    return _open_once(lambda: plan_mindspore(Environment.from_os(), device_target, device_id, is_pynative, jit_level))


def open_torch(rank_id: int | None, device_id: int, categories: tuple[str, ...]) -> Session | None:
    """The process's session for graphs of PyTorch; None when Dump is off.

    rank_id     None: what the environment says
    categories  columns of statistic.csv when the configuration chooses none
    Raises: as `open_mindspore`.
    """

    def plan_torch() -> DumpPlan | None:
        from msdump.config.environment import Environment
        from msdump.config.plan import plan_mindspore

        environment = Environment.from_os()
        chosen = environment.device_id if environment.device_id is not None else device_id
        plan = plan_mindspore(environment, "CPU", chosen)
        if plan is None:
            return None
        return replace(
            plan,
            rank_id=plan.rank_id if rank_id is None else rank_id,
            statistic_categories=plan.statistic_categories or categories,
            has_graph_files=True,
        )

    return _open_once(plan_torch)


def _open_once(make_plan: Callable[[], DumpPlan | None]) -> Session | None:
    """Start what the plan selects, once per process, whichever thread compiles first."""
    global _session, _is_decided
    if not _is_decided:
        with lock:
            if not _is_decided:
                plan = make_plan()
                if plan is not None and plan.is_device_enabled:
                    _session = _start(plan)
                    call_when_process_ends(_close_at_exit)
                _is_decided = True
                if plan is None:
                    note_no_dump()
    return current()


def note_no_dump() -> None:
    """A graph is compiled that no dump is configured for."""
    global on_no_dump
    callback, on_no_dump = on_no_dump, None
    if callback is not None:
        callback()


def is_decided() -> bool:
    """Whether the environment was read already, so that `current` is the answer for this process."""
    return _is_decided


def current() -> Session | None:
    """The session of this process, if a graph was compiled with Dump on."""
    if _is_forked:
        _warn_of_fork()
    return _session


def own() -> Session | None:
    """As `current`, without the warning in a forked process."""
    return _session


def _start(plan: DumpPlan) -> Session:
    from msdump.engine import start_engine

    engine = start_engine(plan)
    if engine.pool is not None or is_child():
        end_by_exception_on_sigterm()
    return Session(plan, engine.observers, engine.writers, engine.tally, engine.pool, engine.hold)


def end_by_exception_on_sigterm() -> None:
    """Let SIGTERM end the script as an exception would, so that what waits is written.

    Only where nobody else handles the signal, and only in the thread that may.
    """
    global _sigterm_process
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        _sigterm_process = os.getpid()
        signal.signal(signal.SIGTERM, _end_script)


def _end_script(number: int, frame: FrameType | None) -> None:
    if os.getpid() != _sigterm_process:
        # A child that was forked has neither the writers' threads nor anything to write.
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    elif not getattr(sys.modules.get("multiprocessing.util"), "_exiting", False):
        end_script(number)
    # Else a worker of multiprocessing is at its end: an exception there would keep its dump from being finished.


def call_when_process_ends(function: Callable[[], None]) -> None:
    """Call it once when this process ends, be it by an exception or as a worker of multiprocessing."""
    atexit.register(function)
    processes = sys.modules.get("multiprocessing.process")
    if processes is not None and processes.parent_process() is not None:
        # Such a process ends without what atexit knows.
        from multiprocessing.util import Finalize

        Finalize(None, function, exitpriority=0)


def _disown_after_fork() -> None:
    """Threads do not survive a fork, and two processes that fill the same folders would spoil them."""
    global _session, _is_forked, _has_warned
    if _session is not None:
        _session.leave_to_parent()
        _session, _is_forked, _has_warned = None, True, False


if hasattr(os, "register_at_fork"):
    # No run is in progress at the moment of a fork: the child finds graphs and the lock as no thread left them.
    os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
    os.register_at_fork(after_in_child=_disown_after_fork)


def _warn_of_fork() -> None:
    global _has_warned
    if not _has_warned:
        _has_warned = True
        log.warning(
            "Process %d was forked from one that dumps, and dumps nothing itself: fork it before the first graph is "
            "compiled, with a RANK_ID of its own, to have its tensors.",
            os.getpid(),
        )


def _close_at_exit() -> None:
    """The script ended without closing: a dump that is not complete is said aloud, as nobody else can."""
    if _session is not None:
        try:
            _session.close()
        except DumpError as error:
            log.error("%s", error)


def reset_for_tests() -> None:
    """Forget the session, so that one process can be configured again."""
    global _session, _is_decided, _is_forked
    if _session is not None:
        atexit.unregister(_close_at_exit)
        _session.let_go()
    if signal.getsignal(signal.SIGTERM) is _end_script:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _session, _is_decided, _is_forked = None, False, False

"""Session: wires environment, configuration, writers and dumpers together, and owns their end."""

from __future__ import annotations

import atexit
import logging
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msdump.errors import DumpError

if TYPE_CHECKING:
    from msdump.config.plan import DumpPlan
    from msdump.dump.tally import Tally
    from msdump.events import Observer
    from msdump.formats.writer import Writer

log = logging.getLogger("msdump")

# What MindSpore version the metadata claims: the one whose output the seed describes and peers were compared with.
MS_VERSION = "2.0.0"


@dataclass(frozen=True)
class RunReport:
    """What one process asked for and got. Sizes in bytes, times in seconds."""

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
    lost: int = 0
    error: str | None = None
    dump_seconds: float = 0.0
    run_seconds: float = 0.0


class Session:
    """One process's dump. Made at the first graph compile; `close` is idempotent and also runs at exit."""

    def __init__(self, plan: DumpPlan, observers: tuple[Observer, ...], writers: tuple[Writer, ...], tally: Tally):
        self.plan = plan
        self.observers = observers
        self._writers = writers
        self._tally = tally
        self._next_iteration = plan.initial_iteration
        self._started = time.perf_counter()
        self._run_seconds = 0.0
        self._is_closed = False

    def next_iteration(self) -> int:
        """Number of the run that starts now; one counter for all root graphs.   Source: MindSpore, several graphs."""
        self._next_iteration += 1
        return self._next_iteration - 1

    def close(self) -> None:
        """Finish what is pending.

        Raises: DumpError when the dump is not complete; the message counts what was lost.
        """
        if self._is_closed:
            return
        self._is_closed = True
        for observer in self.observers:
            observer.close()
        self._run_seconds = time.perf_counter() - self._started
        if self._tally.error:
            raise DumpError(
                f"{self.plan.path}: the dump is not complete, {self._tally.lost} tensors of the step "
                f"that failed are missing and later steps were not dumped. {self._tally.error}"
            )

    def report(self) -> RunReport:
        """Counts up to now."""
        from msdump.config.iterations import format_iterations
        from msdump.config.plan import unmatched_selectors

        tally = self._tally
        counts = [writer.counts for writer in self._writers]
        unmatched = unmatched_selectors(self.plan, tally.names_seen)
        return RunReport(
            path=str(self.plan.path),
            iterations_asked=format_iterations(self.plan.iterations),
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
            lost=tally.lost,
            error=tally.error or None,
            dump_seconds=tally.seconds,
            run_seconds=self._run_seconds or time.perf_counter() - self._started,
        )


_session: Session | None = None
_is_decided = False


def open_mindspore(device_target: str, device_id: int, is_pynative: bool = False) -> Session | None:
    """The process's session for MindSpore Dump; None when Dump is off.

    The environment and the JSON are read once, at the first call; a call that raises decides nothing.
    Raises: ConfigError before anything is written; WriteError when the folder cannot be made.
    """
    global _session, _is_decided
    if _is_decided:
        return _session
    from msdump.config.environment import Environment
    from msdump.config.plan import plan_mindspore

    plan = plan_mindspore(Environment.from_os(), device_target, device_id, is_pynative)
    if plan is not None and plan.is_device_enabled:
        _session = _start(plan)
        atexit.register(_close_at_exit)
    _is_decided = True
    return _session


def current() -> Session | None:
    """The session of this process, if a graph was compiled with Dump on."""
    return _session


def _start(plan: DumpPlan) -> Session:
    from msdump.dump.sync import SyncDumper
    from msdump.dump.tally import Tally
    from msdump.formats.layout import SyncLayout
    from msdump.formats.metadata import write_metadata
    from msdump.formats.npy import NpyWriter
    from msdump.formats.statistic_csv import StatisticWriter

    layout = SyncLayout(plan.path, plan.rank_id, plan.net_name)
    if not write_metadata(layout.metadata_dir, plan.config_text, plan.device_target, MS_VERSION):
        log.warning("%s: holds an earlier dump; files of both runs will lie side by side.", layout.metadata_dir.parent)
    writers: list[Writer] = []
    if plan.saves_tensor:
        writers.append(NpyWriter(lambda record: layout.data_dir(record.graph_id, record.iteration)))
    if plan.saves_statistic:
        writers.append(
            StatisticWriter(
                lambda record: layout.data_dir(record.graph_id, record.iteration), plan.statistic_categories
            )
        )
    constants = NpyWriter(lambda record: layout.constants_dir(record.graph_id))
    tally = Tally()
    dumper = SyncDumper(plan, layout, writers, constants, tally)
    return Session(plan, (dumper,), (*writers, constants), tally)


def _close_at_exit() -> None:
    """The script ended without closing: a dump that is not complete is said aloud, as nobody else can."""
    if _session is not None:
        try:
            _session.close()
        except DumpError as error:
            log.error("%s", error)


def reset_for_tests() -> None:
    """Forget the session, so that one process can be configured again."""
    global _session, _is_decided
    if _session is not None:
        atexit.unregister(_close_at_exit)
    _session, _is_decided = None, False

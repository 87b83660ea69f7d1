"""Session: wires environment, configuration, writers and dumpers together, and owns their end."""

from __future__ import annotations

import atexit
import datetime
import functools
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from msdump.errors import DumpError

if TYPE_CHECKING:
    from msdump.config.plan import DumpPlan
    from msdump.dump.tally import Tally
    from msdump.dump.writer_pool import WriterPool
    from msdump.events import Observer
    from msdump.formats.writer import Writer
    from msdump.records import TensorRecord

log = logging.getLogger("msdump")

# What MindSpore version the metadata claims: the one whose output the seed describes and peers were compared with.
MS_VERSION = "2.0.0"
_ASYNC_MODE = 0o600


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
    """One process's dump. Made at the first graph compile; `close` is idempotent and also runs at exit.

    pool   threads that write while the script goes on, for whoever shows their progress; None when there are none
    """

    def __init__(
        self,
        plan: DumpPlan,
        observers: tuple[Observer, ...],
        writers: tuple[Writer, ...],
        tally: Tally,
        pool: WriterPool | None = None,
    ) -> None:
        self.plan = plan
        self.observers = observers
        self.pool = pool
        self._writers = writers
        self._tally = tally
        self._next_iteration = plan.initial_iteration
        self._started = time.perf_counter()
        self._run_seconds = 0.0
        self._is_closed = False

    def count_skipped(self, reason: str, count: int = 1) -> None:
        """Tensors that a frontend cannot show to anybody, for the report."""
        self._tally.skipped[reason] += count

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
_pid = 0  # of the process that opened the session


def open_mindspore(
    device_target: str, device_id: int, is_pynative: bool = False, jit_level: str = ""
) -> Session | None:
    """The process's session for MindSpore Dump; None when Dump is off.

    The environment and the JSON are read once, at the first call; a call that raises decides nothing.
    Raises: ConfigError before anything is written; WriteError when the folder cannot be made.
    """
    if _is_decided:
        return _session
    from msdump.config.environment import Environment
    from msdump.config.plan import plan_mindspore

    return _open(plan_mindspore(Environment.from_os(), device_target, device_id, is_pynative, jit_level))


def open_torch(rank_id: int | None, device_id: int, categories: tuple[str, ...]) -> Session | None:
    """The process's session for graphs of PyTorch; None when Dump is off.

    rank_id     None: what the environment says
    categories  columns of statistic.csv when the configuration chooses none
    Raises: as `open_mindspore`.
    """
    if _is_decided:
        return _session
    from msdump.config.environment import Environment
    from msdump.config.plan import plan_mindspore

    environment = Environment.from_os()
    chosen = environment.device_id if environment.device_id is not None else device_id
    plan = plan_mindspore(environment, "CPU", chosen)
    if plan is not None:
        plan = replace(
            plan,
            rank_id=plan.rank_id if rank_id is None else rank_id,
            statistic_categories=plan.statistic_categories or categories,
        )
    return _open(plan)


def _open(plan: DumpPlan | None) -> Session | None:
    """Start what the plan asks for, once per process."""
    global _session, _is_decided, _pid
    if plan is not None and plan.is_device_enabled:
        _session, _pid = _start(plan), os.getpid()
        atexit.register(_close_at_exit)
    _is_decided = True
    return _session


def is_decided() -> bool:
    """Whether the environment was read already, so that `current` is the answer for this process."""
    return _is_decided


def current() -> Session | None:
    """The session of this process, if a graph was compiled with Dump on."""
    return _session


def _start(plan: DumpPlan) -> Session:
    return _start_async(plan) if plan.engine == "async" else _start_sync(plan)


def _start_sync(plan: DumpPlan) -> Session:
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


def _start_async(plan: DumpPlan) -> Session:
    from msdump.dump.asynchronous import AsyncDumper
    from msdump.dump.budget import staging_budget
    from msdump.dump.tally import Tally
    from msdump.formats.async_layout import PlainLayout, format_time
    from msdump.formats.atomic import make_dirs

    budget = staging_budget()
    layout = PlainLayout(plan.path, format_time(datetime.datetime.now()), plan.device_id)
    make_dirs(layout.device_dir)

    def directory(record: TensorRecord) -> Path:
        # The names that graphs have in their own files.
        return layout.data_dir(f"kernel_graph_{record.graph_id}", record.graph_id, record.iteration)

    writers, data_offsets = _async_writers(plan, directory)
    tally = Tally()
    dumper = AsyncDumper(plan, writers, tally, budget, data_offsets=data_offsets)
    _flush_on_sigterm()
    return Session(plan, (dumper,), writers, tally, dumper.pool)


def _async_writers(
    plan: DumpPlan, directory: Callable[[TensorRecord], Path]
) -> tuple[tuple[Writer, ...], Callable[[Sequence[TensorRecord]], Sequence[int]]]:
    """Writers that the plan asks for, and where data begins in their files.

    Files get the modes of the engine that MindSpore hands such dumps to, and go past the page cache.
    """
    from msdump.formats import bin_writer, npy
    from msdump.formats.async_layout import npy_file_name
    from msdump.formats.statistic_csv import StatisticWriter

    if plan.file_format == "bin":
        binary = bin_writer.BinWriter(directory, _ASYNC_MODE, is_host_format=plan.trans_flag, is_direct=True)
        return (binary,), functools.partial(bin_writer.data_offsets, is_host_format=plan.trans_flag)
    writers: list[Writer] = []
    if plan.saves_tensor:
        writers.append(npy.NpyWriter(directory, _ASYNC_MODE, file_name=npy_file_name, is_direct=True))
    if plan.saves_statistic:
        # Digests are computed by the threads that write, which there are several of.
        writers.append(StatisticWriter(directory, plan.statistic_categories, _ASYNC_MODE, md5_threads=0))
    return tuple(writers), npy.data_offsets


def _flush_on_sigterm() -> None:
    """Let SIGTERM end the script as an exception would, so that what waits is written.

    Only where nobody else handles the signal, and only in the thread that may.
    """
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _end_script)


def _end_script(number: int, frame: FrameType | None) -> None:
    if os.getpid() != _pid:
        # A child that was forked has neither the writers' threads nor anything to write.
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    raise SystemExit(128 + number)


def _close_at_exit() -> None:
    """The script ended without closing: a dump that is not complete is said aloud, as nobody else can."""
    if _session is not None and os.getpid() == _pid:
        try:
            _session.close()
        except DumpError as error:
            log.error("%s", error)


def reset_for_tests() -> None:
    """Forget the session, so that one process can be configured again."""
    global _session, _is_decided
    if _session is not None:
        atexit.unregister(_close_at_exit)
    if signal.getsignal(signal.SIGTERM) is _end_script:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _session, _is_decided = None, False

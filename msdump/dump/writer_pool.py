"""WriterPool: threads that write while the step goes on. How much may wait is bounded by staging, not here."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from msdump.errors import DumpError


@dataclass(frozen=True, slots=True)
class Job:
    """Something to write. `run` writes; `done` is called after it in any case; `records` is what is lost with it."""

    size_bytes: int
    records: int
    run: Callable[[], None]
    done: Callable[[], None]


@dataclass(frozen=True, slots=True)
class PoolState:
    """What a progress line shows."""

    queued_jobs: int
    queued_bytes: int
    written_bytes: int
    written_records: int
    lost_records: int


class WriterPool:
    """First in, first out over a few threads; nothing is dropped while writing works.

    The first error stops all writing: waiting jobs are counted as lost, later ones too, and `error` keeps it.
    Threads are daemons, so that a process that forgot to close can still end.
    """

    def __init__(self, threads: int) -> None:
        self._jobs: deque[Job] = deque()
        self._held = 0
        self._running = 0
        self._written_bytes = 0
        self._written_records = 0
        self._lost = 0
        self._is_closed = False
        self._changed = threading.Condition()
        self.error: BaseException | None = None
        self._threads = [
            threading.Thread(target=self._work, name=f"msdump-writer-{number}", daemon=True)
            for number in range(max(1, threads))
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, job: Job) -> None:
        """Queue a job, or count it as lost when writing has stopped."""
        with self._changed:
            if self.error is None:
                self._held += job.size_bytes
                self._jobs.append(job)
                self._changed.notify_all()
                return
            self._lost += job.records
        job.done()

    def drain(self, timeout: float | None = None) -> bool:
        """Wait until everything submitted is written; False after `timeout` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._jobs and not self._running, timeout)

    def close(self) -> None:
        """Write what is queued, then end the threads. Idempotent."""
        self.drain()
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def state(self) -> PoolState:
        with self._changed:
            jobs = len(self._jobs) + self._running
            return PoolState(jobs, self._held, self._written_bytes, self._written_records, self._lost)

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._jobs and not self._is_closed:
                    self._changed.wait()
                if not self._jobs:
                    return
                job = self._jobs.popleft()
                self._running += 1
            error: BaseException | None = None
            try:
                job.run()
            except (DumpError, OSError, MemoryError, ValueError, TypeError) as failure:
                error = failure
            job.done()
            with self._changed:
                self._finish(job, error)

    def _finish(self, job: Job, error: BaseException | None) -> None:
        self._running -= 1
        self._held -= job.size_bytes
        if error is None:
            self._written_bytes += job.size_bytes
            self._written_records += job.records
        else:
            self._lost += job.records
            self.error = self.error or error
        waiting = list(self._jobs) if self.error is not None else []
        if waiting:
            self._jobs.clear()
            self._held -= sum(other.size_bytes for other in waiting)
            self._lost += sum(other.records for other in waiting)
            for other in waiting:
                other.done()
        self._changed.notify_all()

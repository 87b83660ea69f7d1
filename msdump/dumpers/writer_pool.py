"""WriterPool: threads that write while the step continues. The callers bound how much may wait: bytes by staging, and
records by `wait_for_room`."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

# The least share of a core that the system gives beside a thread that computes.
_LEAST_PRIORITY = 19


@dataclass(eq=False, slots=True)
class Job:
    """Something to write.

    run        writes; called once, by one of the pool's threads, and forgotten then with all that it refers to
    records    what is lost when it cannot
    held       objects that must stay alive until it has run; emptied then
    followers  jobs that may run only after this one; touched by the pool alone
    """

    size_bytes: int
    records: int
    run: Callable[[], None]
    held: list[object] = field(default_factory=list)
    followers: list[Job] = field(default_factory=list)
    is_done: bool = False


@dataclass(frozen=True, slots=True)
class PoolState:
    """State of the pool for a progress line."""

    queued_jobs: int
    queued_bytes: int
    written_bytes: int
    written_records: int
    lost_records: int


class WriterPool:
    """First in, first out over a few threads; nothing is dropped while writing works.

    The first error stops all writing: waiting jobs are counted as lost, later ones too, and `error` keeps it.
    Threads are daemons, so that a process that forgot to close can still end.

    Threads that write while a step computes take what its threads leave of the cores: on Linux their priority is the
    least. It can only be lowered, so while a caller waits, other threads of the usual priority take what is queued. No
    more than `threads` write at a time.
    """

    def __init__(self, threads: int) -> None:
        self._jobs: deque[Job] = deque()
        self._busy, self._most_busy = 0, max(1, threads)  # threads that write now
        self._waiting_jobs = 0
        self._waiting_bytes = 0
        self.waiting_records = 0
        self._written_bytes = 0
        self._written_records = 0
        self._lost = 0
        self._is_closed = False
        self.hurries = 0  # of those that wait now
        # Entered as it is: a Condition's own `with` runs Python, where Ctrl-C may come between the lock and the block.
        self._lock = threading.RLock()
        # Threads of either kind wait for work at the first, by whether they are patient; who waits for all jobs waits
        # at the second: none is woken for nothing.
        self._work_for = {is_patient: threading.Condition(self._lock) for is_patient in (True, False)}
        self._idle = threading.Condition(self._lock)
        self._room = threading.Condition(self._lock)
        self.error: BaseException | None = None
        self._threads = [
            threading.Thread(target=self._work, args=(is_patient,), name=f"msdump-{kind}-{number}", daemon=True)
            for kind, is_patient in (("writer", True), ("hurried-writer", False))
            for number in range(self._most_busy)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, job: Job, after: Job | None = None) -> None:
        """Queue a job, behind another one when `after` names it; count it as lost when writing has stopped."""
        with self._lock:
            if self.error is not None or self._is_closed:
                self._lost += job.records
                job.held.clear()
                return
            if after is not None and not after.is_done:
                after.followers.append(job)
            else:
                self._jobs.append(job)
            self._waiting_jobs += 1
            self._waiting_bytes += job.size_bytes
            self.waiting_records += job.records
            self._on_duty().notify()

    def wait_for_room(self, most_records: int) -> None:
        """Wait until fewer records than that wait, or writing has stopped. Not for the pool's own threads."""
        if self.waiting_records >= most_records:
            with self.hurry(), self._lock:
                self._room.wait_for(lambda: self.waiting_records < most_records)

    def drain(self, timeout: float | None = None) -> bool:
        """Wait until everything submitted is written or lost; False after `timeout` seconds."""
        # A submit that Ctrl-C interrupted may have queued its job without waking a thread, which `hurry` does.
        with self.hurry(), self._lock:
            return self._idle.wait_for(self.is_idle, timeout)

    @contextmanager
    def hurry(self) -> Iterator[None]:
        """Inside of the block the caller waits for what is queued, or will be."""
        try:
            with self._lock:
                self.hurries += 1
                self._on_duty().notify_all()
            yield
        finally:
            with self._lock:
                self.hurries -= 1
                if self._jobs:
                    self._on_duty().notify_all()

    def close(self) -> None:
        """Write what is queued, then end the threads. Idempotent.

        Interrupted while it waits (Ctrl-C, SIGTERM), it gives up: what is not written by then is counted as lost.
        """
        try:
            self.drain()
        finally:
            self.give_up()
            for thread in self._threads:
                thread.join()

    def give_up(self) -> None:
        """Write nothing more but what threads have begun: all that waits, and all that comes, is counted as lost."""
        with self._lock:
            self._is_closed = True
            self._lose(self._jobs)
            self._jobs.clear()
            for condition in self._work_for.values():
                condition.notify_all()
            self._tell_idle()

    def fail(self, error: BaseException) -> None:
        """Stop all writing after a failure that is no job's own: all that waits, and all that comes, is lost."""
        with self._lock:
            self.error = self.error or error
            self._lose(self._jobs)
            self._jobs.clear()
            self._tell_idle()

    def state(self) -> PoolState:
        with self._lock:
            return PoolState(
                self._waiting_jobs, self._waiting_bytes, self._written_bytes, self._written_records, self._lost
            )

    def _work(self, is_patient: bool) -> None:
        if is_patient:
            _take_the_least_priority()
        while True:
            with self._lock:
                while not self._is_closed and not (self._jobs and self._is_on_duty(is_patient)):
                    self._work_for[is_patient].wait()
                if not self._jobs:
                    return
                job = self._jobs.popleft()
                self._busy += 1
            error: BaseException | None = None
            try:
                job.run()
            except BaseException as failure:  # noqa: BLE001
                # Any error is kept and reported: if it ended the thread, the step would wait for ever.
                error = failure
            with self._lock:
                self._finish(job, error)
                if self._jobs and is_patient == bool(self.hurries):
                    self._on_duty().notify()  # it takes the place of this thread

    def _finish(self, job: Job, error: BaseException | None) -> None:
        """Account for a job that has run; its followers are next."""
        self._busy -= 1
        job.is_done = True
        job.run = _nothing
        job.held.clear()
        self._waiting_jobs -= 1
        self._waiting_bytes -= job.size_bytes
        self.waiting_records -= job.records
        if error is None:
            self._written_bytes += job.size_bytes
            self._written_records += job.records
        else:
            self._lost += job.records
            self.error = self.error or error
        if self.error is not None or self._is_closed:
            self._lose([*job.followers, *self._jobs])
            self._jobs.clear()
        else:
            self._jobs.extendleft(reversed(job.followers))
            if job.followers:
                self._on_duty().notify(len(job.followers))
        job.followers.clear()
        self._room.notify_all()
        self._tell_idle()

    def _is_on_duty(self, is_patient: bool) -> bool:
        return is_patient != bool(self.hurries) and self._busy < self._most_busy

    def _on_duty(self) -> threading.Condition:
        return self._work_for[not self.hurries]

    def is_idle(self) -> bool:
        """Does nothing wait or run?"""
        return not self._jobs and not self._busy

    def _tell_idle(self) -> None:
        if self.is_idle():
            self._idle.notify_all()

    def _lose(self, jobs: Iterable[Job]) -> None:
        for job in _with_followers(jobs):
            self._lost += job.records
            self._waiting_jobs -= 1
            self._waiting_bytes -= job.size_bytes
            self.waiting_records -= job.records
            job.run = _nothing
            job.held.clear()
        self._room.notify_all()


def _take_the_least_priority() -> None:
    """Of this thread alone, which only Linux does."""
    if sys.platform.startswith("linux"):
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _LEAST_PRIORITY)


def _nothing() -> None:
    """What is left of a job that has run."""


def _with_followers(jobs: Iterable[Job]) -> Iterator[Job]:
    for job in jobs:
        yield job
        yield from _with_followers(job.followers)

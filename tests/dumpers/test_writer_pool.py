"""Threads that write, when Ctrl-C comes at any moment."""

from __future__ import annotations

import gc
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

import numpy as np
import pytest

from msdump.dumpers.delivery import Delivery, Round
from msdump.dumpers.staging import Staging
from msdump.dumpers.tally import Tally
from msdump.dumpers.writer_pool import Job, WriterPool
from tests.contracts.writer_contract import record

ROUNDS = 60
RECORD = record(0, data=np.zeros(0, np.float32))


@pytest.fixture
def interrupts() -> Iterator[Callable[[], None]]:
    """What makes Ctrl-C come in a moment; threads change as often as they can."""
    if not hasattr(signal, "setitimer"):
        pytest.skip("no timer")
    rng = random.Random(1)
    old_handler = signal.signal(signal.SIGALRM, signal.default_int_handler)
    old_interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    gc.disable()

    def soon() -> None:
        signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.0005, 0.004))

    yield soon
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, old_handler)
    sys.setswitchinterval(old_interval)
    gc.enable()


def a_moment() -> Iterator[None]:
    """Long enough for the interrupt; Python loses one that comes while it collects garbage."""
    end = time.monotonic() + 1
    while time.monotonic() < end:
        yield


def is_done_in_time(work: Callable[[], object]) -> bool:
    """True when another thread can do it."""
    done: list[bool] = []

    def attempt() -> None:
        work()
        done.append(True)

    thread = threading.Thread(target=attempt, daemon=True)
    thread.start()
    thread.join(10)
    return bool(done)


def test_what_is_submitted_is_run() -> None:
    pool, done = WriterPool(2), []
    for number in range(5):
        pool.submit(Job(number, 1, partial(done.append, number)))
    assert pool.drain(60) and sorted(done) == [0, 1, 2, 3, 4]
    first = Job(1, 1, partial(done.append, 5))
    pool.submit(first)
    assert pool.drain(60)
    pool.submit(Job(1, 1, partial(done.append, 6)), after=first)
    assert pool.drain(60) and done[5:] == [5, 6]
    del done[5:]
    pool.close()
    pool.submit(Job(1, 1, partial(done.append, 5)))
    state = pool.state()
    assert (len(done), state.written_records, state.lost_records, pool.error) == (5, 7, 1, None)


def _wait(event: threading.Event, started: threading.Event | None = None) -> None:
    if started is not None:
        started.set()
    event.wait(60)


def test_who_waits_is_woken_once_however_many_jobs_end(monkeypatch: pytest.MonkeyPatch) -> None:
    pool, waiting, looks = WriterPool(1), threading.Event(), []
    is_idle = pool.is_idle

    def look() -> bool:
        if threading.current_thread() is threading.main_thread():
            looks.append(is_idle())
            waiting.set()
        return is_idle()

    monkeypatch.setattr(pool, "is_idle", look)
    # The first job holds the others up until this thread waits for them.
    pool.submit(Job(1, 1, partial(_wait, waiting)))
    for _ in range(50):
        pool.submit(Job(1, 1, lambda: None))
    assert pool.drain(60)
    assert looks == [False, True]
    pool.close()


@pytest.mark.parametrize("end", ["give_up", "fail"])
def test_who_waits_is_told_that_what_waited_is_lost(end: str) -> None:
    pool, started, go_on = WriterPool(1), threading.Event(), threading.Event()
    pool.submit(Job(1, 1, partial(_wait, go_on, started)))
    pool.submit(Job(1, 1, lambda: None))
    assert started.wait(60)
    results: list[bool] = []
    thread = threading.Thread(target=lambda: results.append(pool.drain(60)))
    thread.start()
    pool.give_up() if end == "give_up" else pool.fail(OSError("full"))
    go_on.set()
    thread.join(60)
    assert results == [True] and pool.state().lost_records == 1


def _priority() -> int:
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems know priorities of processes alone")
def test_threads_leave_the_cores_to_the_step_until_somebody_waits() -> None:
    pool, own = WriterPool(2), _priority()
    seen: list[int] = []
    done = threading.Event()

    def job() -> None:
        seen.append(_priority())
        done.set()

    pool.submit(Job(1, 1, job))
    assert done.wait(60) and seen == [19]
    with pool.hurry():
        for _ in range(5):
            pool.submit(Job(1, 1, job))
        assert pool.drain(60) and seen[1:] == [own] * 5
    done.clear()
    pool.submit(Job(1, 1, job))
    assert done.wait(60) and seen[6:] == [19] and _priority() == own
    pool.close()


def test_who_waits_for_room_has_the_writers_hurry() -> None:
    delivery, seen = Delivery(Tally(), 100), list[int]()

    def job() -> None:
        deadline = time.monotonic() + 60
        while not delivery.pool.hurries and time.monotonic() < deadline:
            time.sleep(0.001)
        seen.append(delivery.pool.hurries)

    held: list[object] = [delivery.staging.stage("value", np.zeros(100, np.uint8))]
    delivery.pool.submit(Job(100, 1, job, held))
    assert is_done_in_time(partial(delivery.reserve, 1)) and seen == [1]
    assert delivery.pool.hurries == 0
    delivery.pool.close()


@pytest.mark.parametrize("budget", [100, 1 << 20, 64 << 20])
def test_records_without_bytes_do_not_wait_without_end(budget: int) -> None:
    """Scalars, empty tensors and repeats cost nothing of the budget, and memory all the same."""
    delivery, go_on, counts = Delivery(Tally(), budget), threading.Event(), list[int]()
    pool = delivery.pool
    round_ = Round((), 0, 0, lambda iteration, is_empty: None, lambda error: None)
    for _ in range(2):  # one for each thread of the pool
        pool.submit(Job(0, 0, partial(_wait, go_on)))
    most = max(1024, budget // 4 // 2048)

    def submit_all() -> None:
        for _ in range(most + 500):
            pool.submit(delivery.job(round_, [RECORD, RECORD], []))

    thread = threading.Thread(target=submit_all)
    thread.start()
    while thread.is_alive() and not pool.hurries:
        time.sleep(0.001)
    counts.append(pool.waiting_records)
    go_on.set()
    thread.join(60)
    pool.close()
    assert counts[0] in (most, most + 1)
    assert pool.state().written_records == 2 * (most + 500) and pool.waiting_records == 0


@pytest.mark.parametrize("end", ["give_up", "fail"])
def test_who_waits_for_room_for_records_is_told_that_they_are_lost(end: str) -> None:
    pool, started, go_on = WriterPool(1), threading.Event(), threading.Event()
    pool.submit(Job(0, 1, partial(_wait, go_on, started)))
    assert started.wait(60)
    pool.submit(Job(0, 5, lambda: None))
    waiter = threading.Thread(target=pool.wait_for_room, args=(2,))
    waiter.start()
    pool.give_up() if end == "give_up" else pool.fail(OSError("full"))
    waiter.join(60)
    assert not waiter.is_alive()
    go_on.set()
    pool.close()


def test_an_interrupted_submit_leaves_the_threads_working(interrupts: Callable[[], None]) -> None:
    for _ in range(ROUNDS):
        pool = WriterPool(2)
        with suppress(KeyboardInterrupt):
            interrupts()
            for _ in a_moment():
                pool.submit(Job(1, 1, lambda: None))
        assert is_done_in_time(pool.close)
        assert pool.error is None


def test_an_interrupted_wait_leaves_the_budget_usable(interrupts: Callable[[], None]) -> None:
    for _ in range(ROUNDS):
        staging = Staging(1 << 20)
        with suppress(KeyboardInterrupt):
            interrupts()
            for _ in a_moment():
                staging.reserve(40)
        assert is_done_in_time(partial(staging.reserve, 1))


def test_interrupted_copies_leave_nothing_in_the_budget(interrupts: Callable[[], None]) -> None:
    """Copies that end at once, in the very thread that the interrupt comes to: it must not get lost in there either."""
    array = np.ones(100_000, np.uint8)
    staging = Staging(1 << 20)

    def work() -> None:
        interrupts()
        for number, _ in enumerate(a_moment()):
            staging.stage(number, array)
            staging.hold(number, array)

    for _ in range(ROUNDS):
        with pytest.raises(KeyboardInterrupt):
            work()
    assert staging.held_bytes == 0
    assert is_done_in_time(partial(staging.reserve, 1 << 20))

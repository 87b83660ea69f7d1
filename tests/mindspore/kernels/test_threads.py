"""The shared threads and the scratch memory."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.mindspore.kernels import threads, workspace
from msdump.mindspore.kernels.threads import SERIAL_SIZE, blocks, split
from msdump.mindspore.kernels.workspace import scratch


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 50), st.booleans())
def test_split_covers_everything_once(count: int, is_large: bool) -> None:
    seen = np.zeros(count, int)

    def work(start: int, stop: int) -> None:
        seen[start:stop] += 1

    split(count, SERIAL_SIZE if is_large else 1, work)
    assert (seen == 1).all()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 50), st.integers(-1, 60))
def test_blocks_cover_everything_once(count: int, size: int) -> None:
    covered = [index for cut in blocks(count, size) for index in range(count)[cut]]
    assert covered == list(range(count))


def test_large_work_runs_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both parts wait for each other: a serial split would never get through the barrier."""
    monkeypatch.setattr(threads, "WORKERS", 2)
    barrier = threading.Barrier(2, timeout=20)

    def meet(start: int, stop: int) -> None:
        barrier.wait()

    split(2, SERIAL_SIZE, meet)
    assert not barrier.broken


def test_small_work_stays_on_its_thread() -> None:
    seen: list[int] = []
    split(8, 8, lambda start, stop: seen.append(threading.get_ident()))
    assert seen == [threading.get_ident()]


@pytest.mark.parametrize("part", [0, 1])
def test_error_of_any_part_is_raised_after_all_have_ended(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "WORKERS", 2)
    ended: list[int] = []

    def work(start: int, stop: int) -> None:
        if start == part:
            raise ValueError(f"part {start}")
        ended.append(start)

    with pytest.raises(ValueError, match=f"part {part}"):
        split(2, SERIAL_SIZE, work)
    assert ended == [1 - part]


def test_numpy_is_silent_on_the_other_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "WORKERS", 2)
    out = np.empty(2)

    def work(start: int, stop: int) -> None:
        np.divide(1.0, np.zeros(stop - start), out=out[start:stop])

    with np.errstate(all="ignore"):
        split(2, SERIAL_SIZE, work)
    assert np.isinf(out).all()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_child_of_a_fork_gets_threads_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "WORKERS", 2)
    split(2, SERIAL_SIZE, lambda start, stop: None)
    child = os.fork()
    if child == 0:
        done: list[int] = []
        split(2, SERIAL_SIZE, lambda start, stop: done.append(start))
        os._exit(0 if sorted(done) == [0, 1] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_scratch_is_kept_by_name_and_thread() -> None:
    first = scratch("test.a", (3, 4), np.float32)
    assert first.shape == (3, 4)
    assert first.dtype == np.float32
    assert np.shares_memory(first, scratch("test.a", (2,), np.float64))
    assert not np.shares_memory(first, scratch("test.b", (3, 4), np.float32))
    other: list[np.ndarray[tuple[int, ...], np.dtype[np.float32]]] = []
    thread = threading.Thread(target=lambda: other.append(scratch("test.a", (3, 4), np.float32)))
    thread.start()
    thread.join()
    assert not np.shares_memory(first, other[0])
    workspace.release()
    assert not np.shares_memory(first, scratch("test.a", (3, 4), np.float32))


def test_huge_scratch_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspace, "KEPT_BYTES", 100)
    first = scratch("test.huge", (101,), np.uint8)
    assert not np.shares_memory(first, scratch("test.huge", (101,), np.uint8))
    assert scratch("test.empty", (0, 3), np.float32).shape == (0, 3)

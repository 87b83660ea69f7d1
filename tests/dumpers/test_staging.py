"""Copies within a budget: right bytes, one copy for each value, and no interrupt at any moment costs memory."""

from __future__ import annotations

import gc
import itertools
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.config.environment import ASYNC_BUFFER
from msdump.dumpers import staging as budget
from msdump.dumpers.staging import Staged, Staging, free_memory, staged_size, staging_budget
from msdump.errors import ConfigError

ROOT = Path(__file__).resolve().parents[2]
SMALL, LARGE = np.arange(50, dtype=np.uint8), np.arange(100_000, dtype=np.float32)
BUDGET = 2 * staged_size(LARGE)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.sampled_from([0, 50, 100_000, 150_000]), st.booleans()), max_size=30))
def test_copies_hold_their_values_and_the_budget_is_what_is_alive(steps: list[tuple[int, int, bool]]) -> None:
    """Each step stages or holds a value of one of five names, or drops the one of that name when it is alive."""
    staging = Staging(1 << 20)
    alive: dict[int, tuple[Staged, bytes]] = {}
    for number, (name, size, is_copied) in enumerate(steps):
        array = np.full(size, number, np.uint8)
        if name in alive:
            assert staging.stage(name, array) is staging.hold(name, array) is alive[name][0]
            del alive[name]
        elif is_copied:
            alive[name] = staging.stage(name, array, number), array.tobytes()
            array += 1
        else:
            alive[name] = staging.hold(name, array), array.tobytes()
            assert alive[name][0].array is array
        assert staging.held_bytes == sum(copy.size_bytes for copy, _ in alive.values())
        assert all(copy.array.tobytes() == expected for copy, expected in alive.values())


def test_a_buffer_is_used_again_when_its_copy_has_died() -> None:
    staging = Staging(BUDGET)
    first = staging.stage("first", LARGE)
    address = first.array.ctypes.data
    del first
    second = staging.stage("second", LARGE + 1)
    assert second.array.ctypes.data == address
    third = staging.stage("third", LARGE)
    assert third.array.ctypes.data != address
    assert staging.peak_bytes == staging.held_bytes == BUDGET


def test_several_threads_wait_until_there_is_room() -> None:
    staging = Staging(BUDGET)
    copies = [staging.stage(number, LARGE) for number in range(2)]
    waiting = [threading.Thread(target=staging.reserve, args=(BUDGET,), daemon=True) for _ in range(4)]
    for thread in waiting:
        thread.start()
    copies.clear()
    for thread in waiting:
        thread.join(60)
    assert not any(thread.is_alive() for thread in waiting)


class Interruption:
    """Raises at one of the moments at which Python answers signals: a function begins, or one of C has returned."""

    def __init__(self, moment: int) -> None:
        self._left = moment
        self.has_raised = False

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        if event not in ("call", "c_return"):
            return
        self._left -= 1
        if self._left < 0:
            sys.setprofile(None)
            self.has_raised = True
            raise KeyboardInterrupt


def stage_and_drop(staging: Staging) -> None:
    for array in (LARGE, SMALL):
        staging.reserve(staged_size(array))
        copy = staging.stage("copy", array)
        held = staging.hold("held", array)
        np.testing.assert_array_equal(copy.array, held.array)
        del copy, held
    staging.reserve(BUDGET)


def interrupted_at(moment: int, work: Callable[[], None]) -> bool:
    """Whether the work was long enough to be interrupted there."""
    interruption, previous = Interruption(moment), sys.getprofile()
    sys.setprofile(interruption)
    try:
        work()
    except KeyboardInterrupt:
        pass
    finally:
        sys.setprofile(previous)
    return interruption.has_raised


def test_an_interrupt_at_any_moment_leaves_the_budget_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    ignored: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", ignored.append)
    gc.collect()
    for moment in itertools.count():
        staging = Staging(BUDGET)
        has_raised = interrupted_at(moment, lambda staging=staging: stage_and_drop(staging))  # type: ignore[misc]
        # Before anybody counts: a waiting step must find out by itself.
        staging.reserve(BUDGET)
        assert staging.held_bytes == 0, moment
        stage_and_drop(staging)
        assert staging.peak_bytes <= BUDGET + staged_size(LARGE)
        assert not ignored, moment
        if not has_raised:
            break
    assert moment > 50


EXIT = """
import numpy as np
from msdump.dumpers.staging import Staging

staging = Staging(1 << 20)
copies = [staging.stage(size, np.ones(size, np.uint8)) for size in (10, 100_000)] + [staging.hold(0, np.ones(3))]
copies.append(copies)
"""


def test_copies_that_outlive_the_interpreter_say_nothing() -> None:
    done = subprocess.run([sys.executable, "-c", EXIT], cwd=ROOT, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")


def test_nothing_needs_no_room(alarm: None) -> None:
    """A copy larger than the budget may wait for the very thread that asks."""
    staging = Staging(4)
    held = staging.hold("a", np.zeros(8, np.uint8))
    staging.reserve(0)
    assert staging.held_bytes == held.size_bytes == 8


@pytest.mark.parametrize("offset", [None, 0, 24, 4096, 5000])
def test_a_large_copy_lies_as_it_will_in_its_file(offset: int | None) -> None:
    staging = Staging(1 << 20)
    array = np.arange(1 << 15, dtype=np.float32)
    staged = staging.stage("a", array) if offset is None else staging.stage("a", array, offset)
    assert staged.array.ctypes.data % 4096 == (offset or 0) % 4096
    assert np.array_equal(staged.array, array)


@pytest.mark.parametrize(("free", "share"), [(0, 1), (3, 1), (8, 2), (8 << 30, 2 << 30), (1 << 50, 2 << 30)])
def test_a_quarter_of_what_is_free_but_never_nothing(monkeypatch: pytest.MonkeyPatch, free: int, share: int) -> None:
    monkeypatch.setattr(budget, "free_memory", lambda: free)
    assert staging_budget({}) == staging_budget({ASYNC_BUFFER: " "}) == share
    assert staging_budget({ASYNC_BUFFER: " 3M "}) == 3 << 20
    with pytest.raises(ConfigError, match=ASYNC_BUFFER):
        staging_budget({ASYNC_BUFFER: "much"})


@pytest.mark.parametrize(
    ("limit", "used", "free"),
    [
        ("max", "7", 2 << 20),
        ("", "", 2 << 20),
        ("9", "", 2 << 20),
        ("1048576\n", "48576\n", 1000000),
        ("7", "9", 0),
        (str(1 << 40), "0", 2 << 20),
    ],
)
def test_what_the_control_group_leaves_counts(
    monkeypatch: pytest.MonkeyPatch, limit: str, used: str, free: int
) -> None:
    files = {
        "/proc/meminfo": "MemTotal:  9999 kB\nMemAvailable:    2048 kB\nSwapFree: 1 kB\n",
        "/sys/fs/cgroup/memory.max": limit,
        "/sys/fs/cgroup/memory.current": used,
    }
    monkeypatch.setattr(budget, "_text", files.__getitem__)
    assert free_memory() == free


def test_a_system_without_these_files_has_half_of_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "_text", lambda path: "")
    assert free_memory() == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def test_a_file_that_is_not_there_says_nothing() -> None:
    assert budget._text("/no/such/file") == ""
    assert free_memory() > 0

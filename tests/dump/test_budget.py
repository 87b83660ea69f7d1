"""How much memory copies may take: a variable, else a share of what the system and the control group leave."""

from __future__ import annotations

import os

import pytest

from msdump.dump import budget
from msdump.dump.budget import ASYNC_BUFFER, free_memory, staging_budget
from msdump.errors import ConfigError


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

"""SIGKILL between any two system calls of a dump, or in the middle of one: what is there is whole, and the next run
into the same folder leaves nothing temporary."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.faults.conftest import Servers
from tests.faults.runs import (
    KILL_BEFORE,
    KILL_BEHIND,
    KILL_HALF,
    Fault,
    Run,
    cut_tables,
    temporary_files,
    tensors_on_disk,
)
from tests.faults.scripts import ENTRIES

NAMING = ("link", "rename", "unlink", "writev", "write", "pwritev")
# Enough folders with what a kill leaves, and the next kill comes into one of them.
_KILLS_PER_FOLDER = 5


def moments(calls: Sequence[str], rng: random.Random) -> Fault:
    """Half of the kills at calls that give a file its name, or are in the middle of its bytes."""
    numbers = range(len(calls))
    if rng.random() < 0.5:
        numbers = [number for number in numbers if calls[number] in NAMING]
    number = rng.choice(numbers)
    halves = (KILL_HALF,) if "write" in calls[number] else ()
    return Fault(number, rng.choice((KILL_BEFORE, KILL_BEHIND, *halves)))


def assert_killed(run: Run, folder: Path) -> None:
    """Threads make their calls in any order: a run may have ended before the turn of a late one came."""
    assert run.status in (-9, 0), run.stderr
    tensors_on_disk(folder / "dump")


@pytest.mark.parametrize("family", ["mindspore", "acl", pytest.param("torch", marks=pytest.mark.slow)])
def test_a_killed_process_leaves_whole_files(
    family: str, servers: Servers, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    entries = [entry for entry in ENTRIES if entry.family == family]
    # Some models take long to compile.
    kills = max(1, pytestconfig.getoption("kills") * len(entries) // len(ENTRIES))
    rng = random.Random(f"{family} {pytestconfig.getoption('faults_seed')}")
    server = servers[family]
    calls: dict[str, tuple[str, ...]] = {}
    for first in range(0, kills, _KILLS_PER_FOLDER):
        entry = rng.choice(entries)
        folder = tmp_path / str(first)
        folder.mkdir()
        if entry.name not in calls:
            (tmp_path / entry.name).mkdir()
            calls[entry.name] = server.run(entry, tmp_path / entry.name).calls
        for _ in range(min(_KILLS_PER_FOLDER, kills - first)):
            fault = moments(calls[entry.name], rng)
            assert_killed(server.run(entry, folder, fault), folder)
        after = server.run(entry, folder)
        assert after.status == 0, after.stderr
        assert temporary_files(folder) == []
        assert cut_tables(folder) == []
        tensors_on_disk(folder / "dump")

"""SIGKILL between any two system calls of what stands beside a dump: a flight recorder and the tables of a job.

What has a name is whole, and the next run leaves nothing temporary.
"""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path

import pytest

import msdump
from msdump.engine.recording.collecting import kept_by_rank
from msdump.engine.recording.incidents import incidents_below
from tests.faults.conftest import Servers
from tests.faults.runs import temporary_files, tensors_on_disk
from tests.faults.scripts import RECORDER, RING, TABLES, Entry
from tests.faults.test_kills import moments

_KILLS_PER_FOLDER = 5


def recorder_left(folder: Path) -> None:
    """Each incident has all the steps that its note names, and none is cut."""
    tensors_on_disk(folder / "dump")
    for incident in incidents_below(folder / "dump"):
        place = folder / "dump" / incident.name
        for rank, kept in kept_by_rank(folder / "dump", incident).items():
            dump = msdump.open(place / f"rank_{rank}", strict=True)
            found = {tensor.iteration for tensor in dump.tensors() if tensor.load().size}
            assert set(kept.whole) <= found


def tables_left(folder: Path) -> None:
    import duckdb

    with duckdb.connect() as database:
        for part in (folder / "dump").glob("*.parquet"):
            assert database.execute("SELECT count(*) FROM read_parquet(?)", [str(part)]).fetchall() == [(4,)]


ENTRIES = {RECORDER: recorder_left, RING: recorder_left, TABLES: tables_left}


@pytest.mark.parametrize("entry", ENTRIES, ids=str)
def test_what_a_killed_helper_leaves_goes_with_the_next(
    entry: Entry, servers: Servers, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    if entry is TABLES and importlib.util.find_spec("duckdb") is None:
        pytest.skip("needs duckdb")
    check, server = ENTRIES[entry], servers[entry.family]
    kills = max(2, pytestconfig.getoption("kills") // len(ENTRIES))
    rng = random.Random(f"{entry} {pytestconfig.getoption('faults_seed')}")
    (tmp_path / "plain").mkdir()
    plain = server.run(entry, tmp_path / "plain")
    assert plain.status == 0, plain.stderr
    check(tmp_path / "plain")
    for first in range(0, kills, _KILLS_PER_FOLDER):
        folder = tmp_path / str(first)
        folder.mkdir()
        for _ in range(min(_KILLS_PER_FOLDER, kills - first)):
            run = server.run(entry, folder, moments(plain.calls, rng))
            assert run.status in (-9, 0), run.stderr
            check(folder)
        after = server.run(entry, folder)
        assert after.status == 0, after.stderr
        check(folder)
        assert temporary_files(folder) == []
        if entry is not TABLES:
            assert list((folder / "ring").iterdir()) == []
            assert incidents_below(folder / "dump")
        else:
            assert len(list((folder / "dump").iterdir())) == 4

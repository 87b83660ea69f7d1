"""Incidents: all ranks agree on them, and what strangers write into the folder harms nobody."""

from __future__ import annotations

import contextlib
import json
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.engine.recording.incidents import (
    CONTROL,
    Incident,
    IncidentLog,
    incident_of,
    incidents_below,
    last_number,
    request,
)
from msdump.errors import FormatError


def incident(rank: int = 0, step: int = 5) -> Incident:
    return Incident("nonfinite", "Log-op0", rank, step, step - 3, step + 1)


def test_ranks_that_see_the_same_at_once_keep_the_same(tmp_path: Path) -> None:
    logs = [IncidentLog(tmp_path) for _ in range(8)]
    barrier = threading.Barrier(8)
    declared: list[Incident] = []

    def declare(rank: int) -> None:
        barrier.wait()
        declared.append(logs[rank].declare(incident(rank), lambda other: other.keeps(5)))

    threads = [threading.Thread(target=declare, args=(rank,)) for rank in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({(each.number, each.rank) for each in declared}) == 1
    assert len(incidents_below(tmp_path)) == 1
    for log in logs:
        log.poll()
        assert [each.number for each in log.seen] == [1]


def test_another_step_is_another_incident_and_those_of_earlier_jobs_are_no_news(tmp_path: Path) -> None:
    first = IncidentLog(tmp_path)
    first.declare(incident(step=5), lambda other: other.keeps(5))
    first.declare(incident(step=50), lambda other: other.keeps(50))
    assert [each.number for each in first.seen] == [1, 2]
    second = IncidentLog(tmp_path)
    assert (second.base, second.poll()) == (2, [])
    assert second.declare(incident(step=5), lambda other: other.keeps(5)).number == 3
    assert [each.number for each in first.poll()] == [3]
    assert last_number(tmp_path / CONTROL) == 3


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    log = IncidentLog(tmp_path)
    declared = log.declare(incident(rank=7), lambda other: False)
    assert incidents_below(tmp_path) == [declared]
    assert (tmp_path / CONTROL / "incident_0001.json").stat().st_mode & 0o777 == 0o600


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5), lambda inner: st.lists(inner)
)


@settings(max_examples=20)
@given(
    st.binary(max_size=40)
    | st.dictionaries(
        st.sampled_from(["why", "text", "rank", "step", "first", "last", "time"]), VALUES, max_size=7
    ).map(lambda content: json.dumps(content).encode())
)
def test_a_damaged_incident_is_an_error_that_names_it_and_stops_nobody(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.mktemp("incidents")
    (path / CONTROL).mkdir()
    file = path / CONTROL / "incident_0001.json"
    file.write_bytes(content)
    with contextlib.suppress(FormatError):
        assert incident_of(file).number == 1
    log = IncidentLog(path, base=0)
    assert [each.number for each in log.poll()] == [1]
    assert log.declare(incident(), lambda other: False).number == 2


@pytest.mark.parametrize("content", [b"", b"[]", b'{"why": 5, "step": -1}', b"\xff", b'{"step": 1e9}', b"[" * 5000])
def test_any_file_asks(tmp_path: Path, content: bytes) -> None:
    log = IncidentLog(tmp_path)
    assert log.take_request() is None
    (tmp_path / CONTROL).mkdir()
    (tmp_path / CONTROL / "trigger.json").write_bytes(content)
    asked = log.take_request()
    assert asked is not None and (asked.why, asked.offset) == ("trigger.json", 0)
    assert log.take_request() is None
    assert list((tmp_path / CONTROL).iterdir()) == []


def test_one_rank_alone_takes_a_request(tmp_path: Path) -> None:
    request(tmp_path, "why not", 4)
    taken = [log.take_request() for log in [IncidentLog(tmp_path) for _ in range(5)]]
    (asked,) = [each for each in taken if each is not None]
    assert (asked.why, asked.offset) == ("why not", 4)

"""A system call that fails costs what the report says, and nothing else: no result, no whole file, no traceback."""

from __future__ import annotations

import errno
import random
import re
from collections import Counter
from pathlib import Path

import pytest

from tests.faults.conftest import Servers
from tests.faults.runs import SHORT, Fault, Run, Server, cut_tables, temporary_files, tensors_on_disk
from tests.faults.scripts import ENTRIES, Entry

OUTCOMES = {
    "write": (errno.ENOSPC, errno.EIO, errno.EINTR, SHORT),
    "writev": (errno.ENOSPC, errno.EIO, errno.EINTR, SHORT),
    "pwrite": (errno.ENOSPC, errno.EIO, errno.EINTR, SHORT),
    "open": (errno.EMFILE, errno.ENOSPC, errno.EACCES, errno.EIO, errno.EINTR),
    "link": (errno.ENOSPC, errno.EIO, errno.EACCES, errno.EMLINK),
    "rename": (errno.ENOSPC, errno.EIO, errno.EACCES),
    "close": (errno.EIO, errno.ENOSPC),
    "fsync": (errno.EIO,),
    "ftruncate": (errno.EIO,),
    "mkdir": (errno.ENOSPC, errno.EACCES, errno.EIO, errno.EMLINK),
    "fchmod": (errno.EPERM, errno.EIO),
    "pwritev": (errno.ENOSPC, errno.EIO, errno.EINTR, SHORT),
    "unlink": (),  # a dump removes only what it has not given a name yet
}
# Nothing is lost by these: the call is made again, or another way is taken.
COMPLETE, INCOMPLETE, STOPPED = 0, 4, 1
_OWN_FRAME = re.compile(r'^  File ".*/msdump/', re.MULTILINE)
_LOST = re.compile(r"([1-9][0-9,]*) (?:tensor|value)s? lost")
# A graph without its files, or the folder above them, is not dumped, nor is anything behind it: the line of iterations
# says so. A folder that cannot be closed costs no tensor.
_COSTS_NO_TENSOR = re.compile(
    r"graphs|execution_order|_dump_graph|to close it after writing|/rank_0: expected to make this folder"
)


@pytest.fixture(params=ENTRIES, ids=str)
def entry(request: pytest.FixtureRequest) -> Entry:
    chosen: Entry = request.param
    return chosen


@pytest.fixture
def server(entry: Entry, servers: Servers) -> Server:
    return servers[entry.family]


def sample(calls: tuple[str, ...], count: int, rng: random.Random) -> list[Fault]:
    """Every kind of call with every outcome in turn, each at a random place."""
    places: dict[str, list[int]] = {}
    for number, name in enumerate(calls):
        places.setdefault(name, []).append(number)
    kinds = [(name, outcome) for name in places for outcome in OUTCOMES[name]]
    rng.shuffle(kinds)
    chosen = [kinds[number % len(kinds)] for number in range(count)]
    return [
        Fault(rng.choice(places[name]), outcome, outcome == errno.ENOSPC and rng.random() < 0.5)
        for name, outcome in chosen
    ]


def problems(plain: Run, expected: Counter[str], run: Run, folder: Path) -> list[str]:
    """What is wrong with a run in which a call had another outcome."""
    stored = tensors_on_disk(folder / "dump")
    missing, strange = expected - stored, stored - expected
    is_counted = bool(_LOST.search(run.stderr)) or bool(_COSTS_NO_TENSOR.search(run.stderr))
    complaints = {
        "a frame of msdump in a traceback": bool(_OWN_FRAME.search(run.stderr)),
        "a line without its end": bool(cut_tables(folder / "dump")),
        f"status {run.status}": run.status not in (COMPLETE, INCOMPLETE, STOPPED),
        f"files that the plain run has not: {list(strange)[:3]}": bool(strange),
        f"temporary files: {temporary_files(folder / 'dump')}": bool(temporary_files(folder / "dump")),
        f"status 0 and {sum(missing.values())} missing": run.status == COMPLETE and bool(missing),
        "status 4 without a reason": run.status == INCOMPLETE and "expected" not in run.stderr,
        "tensors are missing and none is lost": run.status == INCOMPLETE and bool(missing) and not is_counted,
        f"other results: {run.results}": run.status != STOPPED and run.results != plain.results,
        "stopped after the first step": run.status == STOPPED and bool(run.results),
    }
    return [text for text, is_true in complaints.items() if is_true]


@pytest.mark.slow
def test_a_failing_call_costs_what_the_report_says(
    entry: Entry, server: Server, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    count = pytestconfig.getoption("faults")
    rng = random.Random(f"{entry} {pytestconfig.getoption('faults_seed')}")
    (tmp_path / "plain").mkdir()
    plain = server.run(entry, tmp_path / "plain")
    assert plain.status == COMPLETE and plain.results, plain.stderr
    expected = tensors_on_disk(tmp_path / "plain" / "dump")
    failures = []
    for number, fault in enumerate(sample(plain.calls, count, rng)):
        folder = tmp_path / str(number)
        folder.mkdir()
        run = server.run(entry, folder, fault)
        wrong = problems(plain, expected, run, folder)
        if wrong:
            name = plain.calls[fault.number]
            failures.append(f"{fault} in {name} of {folder}: {'; '.join(wrong)}\n{run.stderr}")
    assert not failures, "\n\n".join(failures)

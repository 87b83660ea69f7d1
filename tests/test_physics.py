"""What a dump does to the machine: bytes, files, passes and copies of fixed runs, counted and not timed.

A limit that fails here costs time everywhere. Raise one only together with the reason, in docs/performance.md.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DUMPED = "3"
STEPS = 5
# Calls of an iteration that do not depend on the number of tensors: its folder, its history, its table.
FIXED_CALLS = 8
# Weights of LeNet-5 and their moments: what the optimizer overwrites in place.
OVERWRITTEN_BYTES = 2 * 4 * 61_706


@dataclass(frozen=True)
class Run:
    """Counts of a dumped step, of the plain step before it, and what the dumped one left on disk."""

    dumped: dict[str, int]
    plain: dict[str, int]
    names: int
    sizes: list[int]

    def added(self, key: str) -> int:
        return self.dumped.get(key, 0) - self.plain.get(key, 0)


def counted(folder: Path, kind: str) -> Run:
    is_sync = kind in ("tensor", "statistic")
    common = {
        "dump_mode": 0,
        "path": str(folder / "dump"),
        "net_name": "Net",
        "iteration": f"1|{DUMPED}",
        "saved_data": kind if is_sync else "tensor",
        "input_output": 0,
        "kernels": [],
        "support_device": [0],
        **({} if is_sync else {"file_format": kind}),
    }
    settings = {"common_dump_settings": common, "e2e_dump_settings": {"enable": is_sync, "trans_flag": True}}
    (folder / "dump.json").write_text(json.dumps(settings))
    environment = {**os.environ, "MINDSPORE_DUMP_CONFIG": str(folder / "dump.json"), "MSDUMP_KERNELS": "numpy"}
    command = [sys.executable, "-m", "tests.physics", str(STEPS)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    steps: list[dict[str, int]] = json.loads(done.stdout)
    files = [path for path in (folder / "dump").rglob("*") if path.is_file() and path.parent.name == DUMPED]
    states = [path.stat() for path in files]
    sizes = {state.st_ino: state.st_size for state in states}
    # The first step is left out.
    return Run(steps[int(DUMPED) - 1], steps[int(DUMPED) - 2], len(files), list(sizes.values()))


@pytest.fixture(scope="module")
def runs(needs_mindspore: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    return {kind: counted(tmp_path_factory.mktemp(kind), kind) for kind in ("tensor", "statistic", "bin", "npy")}


@pytest.mark.parametrize("kind", ["tensor", "statistic", "bin", "npy"])
def test_a_plain_step_touches_no_file_and_measures_nothing(runs: dict[str, Run], kind: str) -> None:
    assert set(runs[kind].plain) <= {"copied"}


@pytest.mark.parametrize("kind", ["tensor", "npy"])
def test_every_distinct_tensor_is_written_once(runs: dict[str, Run], kind: str) -> None:
    run = runs[kind]
    # Four names and three tensors of them are of AssignAdd, by which optimizers count their steps since MindSpore 2.1.
    assert run.names == 174 and len(run.sizes) <= 78
    assert run.dumped["written"] <= 1.01 * sum(run.sizes)


@pytest.mark.parametrize("kind", ["tensor", "npy", "bin"])
def test_a_file_costs_one_open_one_write_and_one_name(runs: dict[str, Run], kind: str) -> None:
    run = runs[kind]
    assert run.dumped["opens"] <= len(run.sizes) + FIXED_CALLS
    assert run.dumped["writes"] <= len(run.sizes) + FIXED_CALLS
    assert run.dumped.get("links", 0) + run.dumped.get("renames", 0) <= run.names + FIXED_CALLS
    assert run.dumped.get("syncs", 0) == 0


def test_a_bin_dump_writes_what_its_files_hold(runs: dict[str, Run]) -> None:
    run = runs["bin"]
    # Two of them are AssignAdd and the parameter that it counts in.
    assert run.names == len(run.sizes) == 66
    assert run.dumped["written"] <= 1.01 * sum(run.sizes)


def test_statistics_walk_once_through_each_distinct_tensor(runs: dict[str, Run]) -> None:
    run, tensors = runs["statistic"], runs["tensor"]
    assert run.dumped["passes"] <= len(tensors.sizes)
    # The files hold the same bytes and their headers.
    assert run.dumped["measured"] <= sum(tensors.sizes)
    assert run.dumped.get("digested", 0) <= sum(tensors.sizes)


def test_statistics_leave_one_file_that_is_written_in_one_go(runs: dict[str, Run]) -> None:
    run = runs["statistic"]
    assert run.names == 1
    assert run.dumped["written"] <= 1.01 * run.sizes[0]
    assert run.dumped["writes"] <= 4 and run.dumped["opens"] <= FIXED_CALLS


@pytest.mark.parametrize("kind", ["tensor", "statistic"])
def test_a_synchronous_dump_copies_only_what_is_overwritten(runs: dict[str, Run], kind: str) -> None:
    assert runs[kind].added("copied") <= OVERWRITTEN_BYTES


@pytest.mark.parametrize("kind", ["bin", "npy"])
def test_an_asynchronous_dump_copies_a_tensor_at_most_once_for_each_name(runs: dict[str, Run], kind: str) -> None:
    """How often a copy serves several names depends on when the threads write it and give it back; bin files hold a
    tensor under each of its names."""
    assert runs[kind].added("copied") <= sum(runs["bin"].sizes)

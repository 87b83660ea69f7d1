"""A job of four ranks of which one is killed: the same steps of all of them are kept."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import msdump
from msdump.cli.main import main
from msdump.engine.recording.collecting import survey
from msdump.engine.recording.incidents import incidents_below

ROOT = Path(__file__).resolve().parents[3]
RANKS, LAST, VICTIM = 4, 6, 2
either_job = pytest.mark.parametrize(
    "is_gloo", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["files", "gloo"]
)


@either_job
def test_kill_of_one_rank_keeps_the_same_steps_of_all(is_gloo: bool, tmp_path: Path, alarm: None) -> None:
    """Rank 1 computes a NaN in the last step; rank 2 is killed in it; the others wait until they are ended."""
    pytest.importorskip("torch" if is_gloo else "msdump.mindspore")
    path, ring = tmp_path / "kept", tmp_path / "ring"
    path.mkdir()
    ring.mkdir()
    arguments = [str(each) for each in (path, ring)]
    numbers = [str(each) for each in (RANKS, LAST, VICTIM)]
    command = [sys.executable, "-m", "tests.engine.recording.rank"]
    jobs = [
        subprocess.Popen(
            [*command, *arguments, str(rank), *numbers, *(["gloo"] if is_gloo else [])],
            cwd=ROOT,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for rank in range(RANKS)
    ]
    try:
        assert jobs[VICTIM].wait() == -signal.SIGKILL
        while not all((path / f"reached_{rank}").exists() for rank in range(RANKS)):
            assert all(job.poll() is None for rank, job in enumerate(jobs) if rank != VICTIM)
            time.sleep(0.01)
        for rank, job in enumerate(jobs):
            if rank != VICTIM and job.poll() is None:
                job.send_signal(signal.SIGTERM)
        for rank, job in enumerate(jobs):
            if rank != VICTIM:
                job.wait()
    finally:
        for job in jobs:
            job.kill()
            job.wait()
    assert survey(path).dead == (VICTIM,)
    assert main(["recorder", "collect", str(path)]) == 0
    assert survey(path).dead == ()
    assert list(ring.iterdir()) == []

    kept = {}
    for incident in incidents_below(path):
        for folder in (path / incident.name).glob("rank_*"):
            steps = {tensor.iteration for tensor in msdump.open(folder).tensors() if tensor.iteration is not None}
            kept[folder.name] = kept.get(folder.name, set()) | steps
    assert sorted(kept) == [f"rank_{rank}" for rank in range(RANKS)]
    common = set.intersection(*kept.values())
    assert {LAST - 3, LAST - 2, LAST - 1} <= common
    firsts = [msdump.find_nan(path / incident.name).first for incident in incidents_below(path)]
    (first,) = [each for each in firsts if each is not None]
    assert (first.step.rank_id, first.step.iteration) == (1, LAST)
    assert "og" in first.operator.op_name
    assert first.how == "made"

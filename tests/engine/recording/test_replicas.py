"""Replicas of a job: fingerprints, what ranks tell each other, and one bit in one weight of one rank."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msdump
from msdump.engine.recording.incidents import incidents_below
from msdump.engine.recording.replicas import Replicas, fingerprint
from msdump.errors import FormatError
from msdump.tensors.arrays import Array

ROOT = Path(__file__).resolve().parents[3]
sizes = st.sampled_from([1, 3, 8, 1000, 8191, 8192, 8193, 20_000])


# -- fingerprints ------------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(sizes, st.integers(0, 2**31), st.integers(0, 7), st.integers(0, 2**31))
def test_one_bit_changes_a_fingerprint(size: int, place: int, bit: int, seed: int) -> None:
    array = np.random.default_rng(seed).integers(0, 256, size, np.uint8)
    other = array.copy()
    other[place % size] ^= 1 << bit
    assert fingerprint(array) == fingerprint(array.copy()) != fingerprint(other)


@given(st.integers(0, 4095), st.integers(0, 4095))
def test_numbers_that_change_their_places(one: int, other: int) -> None:
    array = np.arange(4096, dtype=np.int64)
    changed = array.copy()
    changed[[one, other]] = changed[[other, one]]
    assert (fingerprint(array) == fingerprint(changed)) == (one == other)


def test_fingerprints_are_of_the_bytes() -> None:
    array = np.arange(20_000, dtype=np.float32).reshape(100, 200)
    assert fingerprint(array.T.copy().T) == fingerprint(array) != fingerprint(array.T)
    assert fingerprint(np.zeros(9000)) != fingerprint(-np.zeros(9000))
    assert fingerprint(np.zeros(0)) != fingerprint(np.zeros(1)) != fingerprint(np.zeros(2))
    assert fingerprint(np.float32(3)) == fingerprint(np.full(1, 3, np.float32))


# -- what ranks tell each other ----------------------------------------------------------------------------------------


class Job:
    """Ranks of one group that run in step. Before each step a rank may hold something else than the others."""

    def __init__(self, folder: Path, ranks: int) -> None:
        self.group = tuple(range(ranks))
        self.ranks = [Replicas(folder, rank) for rank in self.group]

    def step(self, **own: float) -> list[str]:
        """own: of `rank_N`, the value of its second tensor.   Returns: what each rank says"""
        for rank, replicas in enumerate(self.ranks):
            value = own.get(f"rank_{rank}", 1.0)
            arrays: dict[str, Array] = {"first": np.zeros(3), "second": np.full(3, value), "third": np.ones(2)}
            for name, array in arrays.items():
                replicas.note(self.group, name, array, is_shared=name == "third")
        return [replicas.end_step() for replicas in self.ranks]


def test_a_rank_that_differs_is_told_once_by_those_beside_it(tmp_path: Path) -> None:
    job = Job(tmp_path, 4)
    said = [job.step() for _ in range(3)] + [job.step(rank_2=1.5) for _ in range(3)]
    texts = [text for step in said for text in step if text]
    assert len(texts) == 2 and not any(text for step in said[:3] for text in step)
    for one, other in ((1, 2), (2, 3)):
        (text,) = [text for text in texts if text.startswith(f"ranks {one} and {other} hold different bytes of second")]
        assert "ranks 2 differ from most" in text or one == 1
    job.step(), job.step()
    assert any(any(job.step(rank_0=2.0)) for _ in range(2))


def test_two_ranks_have_no_majority(tmp_path: Path) -> None:
    job = Job(tmp_path, 2)
    texts = [text for _ in range(3) for text in job.step(rank_1=2.0) if text]
    assert sorted(texts) == [f"ranks {rank} and {1 - rank} hold different bytes of second" for rank in (0, 1)]


def test_steps_that_one_rank_runs_alone_count_for_nothing(tmp_path: Path) -> None:
    job = Job(tmp_path, 2)
    for number in range(6):
        assert job.step() == ["", ""]
        for _ in range(number % 3):
            job.ranks[0].note(job.group, "second", np.full(3, float(number)), is_shared=False)
            assert job.ranks[0].end_step() == ""
    texts = []
    for _ in range(2):
        for rank, replicas in enumerate(job.ranks):
            replicas.note(job.group, "first", np.full(3, float(rank)), is_shared=True)
        job.ranks[0].note(job.group, "behind", np.zeros(3), is_shared=False)
        texts += [replicas.end_step() for replicas in job.ranks]
    assert sorted(filter(None, texts)) == [
        f"ranks {rank} and {1 - rank} hold different bytes of first" for rank in (0, 1)
    ]


def test_ranks_that_run_other_programs_are_not_compared(tmp_path: Path) -> None:
    ranks = [Replicas(tmp_path, rank) for rank in (0, 1)]
    for _ in range(3):
        for rank, replicas in enumerate(ranks):
            replicas.note((0, 1), f"name{rank}", np.full(3, float(rank)), is_shared=True)
        assert [replicas.end_step() for replicas in ranks] == ["", ""]


def test_what_an_earlier_job_has_left_is_no_evidence(tmp_path: Path) -> None:
    Job(tmp_path, 2).step(rank_0=7.0)
    job = Job(tmp_path, 2)
    assert not any(text for _ in range(3) for text in job.step())
    for replicas in job.ranks:
        replicas.close()
    assert not list((tmp_path / ".msdump").iterdir())


@pytest.mark.parametrize(
    "text", ["", "{}", "[3]", "[{}]", "[" * 100_000, '[{"ranks": ["a"], "sequence": 0}]', "\xff\x00", '[{"ranks": []}]']
)
def test_a_damaged_file_is_told(text: str, tmp_path: Path) -> None:
    job = Job(tmp_path, 2)
    (tmp_path / ".msdump").mkdir(exist_ok=True)
    (tmp_path / ".msdump" / "replicas_rank_1.json").write_text(text)
    job.ranks[0].note(job.group, "first", np.zeros(3), is_shared=True)
    with pytest.raises(FormatError, match=r"replicas_rank_1\.json: expected"):
        job.ranks[0].end_step()


# -- a job of two processes --------------------------------------------------------------------------------------------


def run(folder: Path, flip: int, ranks: int = 2, steps: int = 8) -> Path:
    path, ring = folder / "kept", folder / "ring"
    path.mkdir()
    ring.mkdir()
    command = [sys.executable, "-m", "tests.engine.recording.replica_rank", str(path), str(ring)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    jobs = [
        subprocess.Popen(
            [*command, str(rank), str(ranks), str(steps), str(flip)],
            cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for rank in range(ranks)
    ]  # fmt: skip
    try:
        for job in jobs:
            output, _ = job.communicate(timeout=240)
            assert job.returncode == 0, output
            assert "compares no replicas" not in output
    finally:
        for job in jobs:
            job.kill()
            job.wait()
    return path


def test_replicas_that_agree_keep_nothing(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    path = run(tmp_path, flip=-1)
    assert not incidents_below(path)
    assert not list((path / ".msdump").glob("replicas*"))


def test_one_bit_of_one_weight_keeps_the_same_steps_of_all_ranks(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    path = run(tmp_path, flip=3)
    (incident,) = incidents_below(path)
    assert incident.why == "replicas"
    assert "hold different bytes of module.3.weight" in incident.text
    assert incident.step in (3, 4, 5) and incident.first <= 3 <= incident.last
    folder = path / incident.name
    kept = [json.loads((folder / f"recorder_rank_{rank}.json").read_text())["whole"] for rank in (0, 1)]
    assert kept[0] == kept[1] == list(range(incident.first, incident.last + 1))
    weights = {
        (tensor.rank_id, tensor.iteration): tensor.load().view(np.uint32).copy()
        for tensor in msdump.open(folder).tensors(graph=0, io="input", slot=0)
        if tensor.op_name == "aten.t.default-op1"
    }
    changed = weights[0, 3] ^ weights[1, 3]
    assert changed.ravel()[0] == 1 and not changed.ravel()[1:].any()
    if incident.first < 3:
        assert np.array_equal(weights[0, incident.first], weights[1, incident.first])
    # The layouts of the ranks are kept with the steps.
    shardings = msdump.open(folder).layouts
    sharding = shardings[0].find(0, "module.3.weight", "output", 0, 3)
    assert sharding is not None and sharding.equal_ranks == (0, 1)

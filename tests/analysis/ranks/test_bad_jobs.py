"""Jobs in which something is wrong: it is said of the rank that it concerns, and the rest is judged."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("duckdb")

from msdump.analysis.ranks.job import write_tables
from msdump.cli.main import main
from msdump.formats.sharding_json import LAYOUT_FILE, read_sharding, write_sharding
from tests.analysis.ranks.conftest import RANKS, MakeJob
from tests.analysis.small_dump import Array

AGREED = "all of them are equal"


def judge(job: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    status = main(["ranks", str(job), "--jobs", "1"])
    out, err = capsys.readouterr()
    return status, out, err


def test_a_rank_is_missing(make_job: MakeJob, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = judge(make_job(ranks=range(3)), capsys)
    assert status == 4 and "incomplete: no dump of rank 3 of 4" in out and AGREED in out


def test_a_rank_has_fewer_steps(make_job: MakeJob, capsys: pytest.CaptureFixture[str]) -> None:
    job = make_job()
    for step in (1, 2):
        shutil.rmtree(job / f"rank_2/Net/0/{step}")
    status, out, _ = judge(job, capsys)
    assert status == 4 and "incomplete: rank 2 has no iteration 1, 2" in out and AGREED in out


def test_a_rank_was_dumped_by_another_version(make_job: MakeJob, capsys: pytest.CaptureFixture[str]) -> None:
    job = make_job(version=lambda rank: "2.3.0" if rank == 1 else "2.6.0")
    status, out, _ = judge(job, capsys)
    assert status == 4 and AGREED in out
    assert "incomplete: rank 1 was dumped by version 2.3.0, most others by 2.6.0" in out


def test_a_layout_of_a_later_version(make_job: MakeJob, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is known of the rank's tensors then; those of the others are judged."""
    job = make_job()
    path = job / "rank_1/.dump_metadata" / LAYOUT_FILE
    text = path.read_text().replace('"version": 1', '"version": 99')
    path.unlink()
    path.write_text(text)
    status, out, err = judge(job, capsys)
    assert status == 4 and AGREED in out
    assert "rank_1" in err and "version: expected 1, got 99. Read it with the msdump that wrote it." in err


def test_a_fault_is_found_whatever_else_is_wrong(make_job: MakeJob, capsys: pytest.CaptureFixture[str]) -> None:
    def spoil(rank: int, iteration: int, name: str, array: Array) -> Array:
        return array + 1 if (rank, iteration, name) == (2, 1, "Net/AllReduce-op1") else array

    job = make_job(spoil=spoil, version=lambda rank: str(rank == 3), clock=lambda rank: 7200 * (rank == 1))
    shutil.rmtree(job / "rank_0/Net/0/2")
    status, out, _ = judge(job, capsys)
    assert status == 1
    assert out.startswith("rank 2 is outvoted, first in iteration 1: Net/AllReduce-op1, output 0 (graph 0), which ")
    assert "rank 3 was dumped by" in out
    assert "rank 0 has no iteration 2" in out and "the clock of rank 1" in out


@pytest.mark.parametrize("seconds", [3600, -90])
def test_clocks_that_differ_change_nothing_and_are_said(
    seconds: int, make_job: MakeJob, capsys: pytest.CaptureFixture[str]
) -> None:
    """Order is by iteration and operator. So nothing is missing, and the status does not tell of it."""
    status, out, _ = judge(make_job(clock=lambda rank: seconds if rank == 3 else rank), capsys)
    side = "ahead of" if seconds > 0 else "behind"
    assert status == 0 and AGREED in out and "incomplete" not in out
    (note,) = [line for line in out.splitlines() if line.startswith("note: ")]
    assert note.startswith("note: the clock of rank 3 is ") and f"s {side} those of most others" in note
    assert abs(float(note.split()[7]) - abs(seconds)) <= 3


def test_ranks_of_another_job_in_the_folder(make_job: MakeJob, capsys: pytest.CaptureFixture[str]) -> None:
    job = make_job()
    for rank in (4, 5):
        shutil.copytree(job / f"rank_{rank - 4}", job / f"rank_{rank}")
        folder = job / f"rank_{rank}/.dump_metadata"
        sharding = read_sharding(folder / LAYOUT_FILE)
        (folder / LAYOUT_FILE).unlink()
        write_sharding(folder, replace(sharding, rank=rank, rank_count=6, meshes=(), operands=()))
    status, out, _ = judge(job, capsys)
    assert status == 4 and AGREED in out
    for rank in (4, 5):
        assert f"incomplete: rank {rank} is of another job, which has 6 ranks rather than 4" in out


def test_two_runs_of_a_job_in_one_folder(make_job: MakeJob, capsys: pytest.CaptureFixture[str]) -> None:
    """Their files differ by time stamps alone: the later ones are judged, and it is said of each iteration."""
    job, other = make_job(iterations=1), make_job("other", 1, clock=lambda rank: 5000)
    shutil.copytree(other / "rank_2/Net", job / "rank_2/Net", dirs_exist_ok=True)
    status, out, err = judge(job, capsys)
    assert status == 4 and AGREED in out
    assert "rank_2: expected one file of each tensor, got those of several runs for 4" in err and "rank_1" not in err


def test_two_runs_of_an_asynchronous_dump(
    make_job: MakeJob, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each has a folder of its own time; the latest one is judged."""
    for time, value in (("20260101000000", 1.0), ("20260102000000", 2.0)):
        folder = tmp_path / f"job/{time}/0/Net/0/0"
        folder.mkdir(parents=True)
        np.save(folder / "Mul.Mul-op0.0.0.1700000000000001.output.0.DefaultFormat.npy", np.full(2, value))
    parts = write_tables([tmp_path / "job"], tmp_path / "t", jobs=1)
    assert len(parts) == 1 and "expected one run, got 2 of them. The latest one is judged." in parts[0].damaged[0][1]
    assert main(["query", str(tmp_path / "t"), "select max from tensors"]) == 0
    assert capsys.readouterr().out.split() == ["max", "2"]
    # It is said again when the table is there already.
    assert main(["stat", str(tmp_path / "job"), "--tables", str(tmp_path / "t"), "--jobs", "1"]) == 4


def test_tables_alone_say_what_is_missing(
    make_job: MakeJob, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def spoil(rank: int, iteration: int, name: str, array: Array) -> Array:
        return array * 1.5 if rank == 0 and iteration > 0 and name == "Net/Own-op2" else array

    golden, job = make_job("golden"), make_job(spoil=spoil, ranks=range(3), clock=lambda rank: 999 * (rank == 2))
    write_tables([job], tmp_path / "t", jobs=1)
    write_tables([golden], tmp_path / "g", jobs=1)
    shutil.rmtree(job)
    assert main(["ranks", str(tmp_path / "t")]) == 4
    out = capsys.readouterr().out
    assert "no dump of rank 3 of 4" in out and "clock of rank 2" in out and AGREED in out
    assert main(["ranks", str(tmp_path / "t"), "--golden", str(tmp_path / "g"), "--json", "-"]) == 1
    (row,) = json.loads(capsys.readouterr().out)["first_divergence"]
    assert (row["rank"], row["iteration"], row["name"]) == (0, 1, "Net/Own-op2")
    assert main(["ranks", str(tmp_path / "g"), "--golden", str(tmp_path / "g"), "--iteration", "1"]) == 0
    out = capsys.readouterr().out
    assert (
        f"{RANKS} ranks" in out and "3 tensors that must be equal" in out and "all ranks agree with the golden" in out
    )
    assert main(["ranks", str(tmp_path / "g"), "--golden", str(tmp_path / "none")]) == 2
    assert (
        main(["ranks", str(tmp_path / "t"), str(golden)]) == 2
        and main(["ranks", str(tmp_path / "t"), "--part", "1/2"]) == 2
    )
    assert main(["ranks", str(tmp_path / "t"), "--iteration", "77"]) == 3

"""Jobs of which no layout.json says what ranks share: all ranks as replicas."""

from __future__ import annotations

import json
import shutil
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from msdump.analysis.ranks import replicated
from msdump.analysis.ranks.replicated import replicated_report
from msdump.cli.main import main
from tests.analysis.small_dump import floats, write_dump


def make_replicas(root: Path, count: int = 4) -> Path:
    """Two steps of ranks with data of their own, equal parameters, and running statistics of a batch norm."""
    for iteration in range(2):
        for rank in range(count):
            operators = [
                ("Net/Log-op0", {("output", 0): floats(rank, iteration)}),
                ("Parameter.fc.weight", {("output", 0): floats(1, 2 + iteration)}),
                ("Parameter.bn.running_mean", {("output", 0): floats(rank)}),
                ("Parameter.bn.num_batches_tracked", {("output", 0): np.array(iteration)}),
            ]
            write_dump(root, operators, iteration, rank=rank)
    return root


def change(root: Path, rank: int, value: float) -> None:
    (path,) = root.glob(f"rank_{rank}/Net/0/1/Parameter.fc.weight*")
    path.unlink()
    write_dump(root, [("Parameter.fc.weight", {("output", 0): floats(1, value)})], 1, rank=rank)


def test_nothing_is_measured_where_nothing_is_declared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    job = make_replicas(tmp_path / "job")
    monkeypatch.setattr("msdump.formats.dump_dir.DumpDir.read", lambda *_: pytest.fail("a file was read"))
    monkeypatch.setattr("msdump.analysis.ranks.job.write_part", lambda *_, **__: pytest.fail("a part was made"))
    assert main(["ranks", str(job)]) == 0
    text = capsys.readouterr().out
    assert "nothing to compare: no layout.json says" in text
    assert f"msdump ranks {job} --replicated" in text
    shutil.rmtree(job / "rank_2/Net/0/1")
    assert main(["ranks", str(job)]) == 4
    assert "incomplete: rank 2 has no iteration 1" in capsys.readouterr().out


def test_what_is_asked_for_by_name_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = make_replicas(tmp_path / "job")
    assert main(["ranks", str(job), "--sql", "select count(*) from tensors", "--jobs", "1", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == [[32]]


def test_equal_replicas_agree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ranks", str(make_replicas(tmp_path / "job")), "--replicated"]) == 0
    assert capsys.readouterr().out.startswith("4 ranks, 4 tensors that must be equal\nall of them are equal\n")


def test_a_rank_that_differs_is_outvoted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = make_replicas(tmp_path / "job")
    change(job, 2, 3.0000002)
    assert main(["ranks", str(job), "--replicated", "--brief"]) == 1
    assert capsys.readouterr().out.startswith("rank 2 is outvoted, first in iteration 1: fc.weight")
    assert main(["ranks", str(job), "--replicated", "--json", "-"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["suspects"] == [{"rank": 2, "tensors": 1}]
    assert [(row["name"], row["iteration"], row["equal_ranks"]) for row in answer["unequal"]] == [
        ("fc.weight", 1, [0, 1, 2, 3])
    ]


def test_a_parameter_of_another_shape_or_name_is_no_copy(tmp_path: Path) -> None:
    job = make_replicas(tmp_path / "job", 3)
    (path,) = job.glob("rank_1/Net/0/1/Parameter.fc.weight*")
    path.unlink()
    operators = [("Parameter.fc.weight", {("output", 0): floats(9)}), ("Parameter.own", {("output", 0): floats(9)})]
    write_dump(job, operators, 1, rank=1)
    report = replicated_report([job])
    assert not report.has_finding
    assert report.compared == 4


def test_statistics_alone_are_compared(tmp_path: Path) -> None:
    titles = (
        "Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,Max Value,Min Value,L2 Value"
    )
    for rank, (largest, norm) in enumerate([("2", "3"), ("2", "3.00001"), ("2", "3"), ("2.5", "3"), ("2", "3.1")]):
        folder = tmp_path / f"rank_{rank}/Net/0/0"
        folder.mkdir(parents=True)
        row = f'Parameter,fc.weight,0,0,{rank + 1},output,0,8,float32,"(2)",{largest},1,{norm}'
        (folder / "statistic.csv").write_text(f"{titles}\n{row}\n")
    report = replicated_report([tmp_path])
    assert report.compared == report.unhashed == 1
    assert report.suspects == {3: 1, 4: 1}


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    job = make_replicas(tmp_path / "job")
    (path,) = job.glob("rank_3/Net/0/0/Parameter.fc.weight*")
    path.write_bytes(path.read_bytes()[:-1])
    report = replicated_report([job])
    assert [where for where, _ in report.damaged] == [str(path)]
    assert not report.has_finding


def test_contents_that_all_differ_are_kept_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replicated, "_MOST_CONTENTS", 3)
    votes = replicated._Votes()
    name = (0, 0, "fc.weight", "0", (2,), True)
    for rank, text in enumerate("aabcdefa"):
        votes.add(name, rank, text, None)
    (row,) = votes.unequal().rows
    assert row[7:] == (list(range(8)), list(range(8)), [], False)  # three of the rest, which may be equal, tie with a


def test_memory_does_not_grow_with_ranks() -> None:
    votes = replicated._Votes()

    def add(ranks: range) -> int:
        for rank in ranks:
            for number in range(20):
                votes.add((0, 0, f"p{number}", "0", (2,), True), rank, "same", None)
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        few, many = add(range(10)), add(range(10, 1000))
    finally:
        tracemalloc.stop()
    assert many - few < 4096


def test_progress_is_told_rank_by_rank(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    replicated_report([make_replicas(tmp_path / "job", 3)], progress=lambda done, total: told.append((done, total)))
    assert told == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize("more", [("--ask", "outliers"), ("--mesh", "dp=2"), ("--tables", "t"), ("--golden", "t")])
def test_it_stands_alone(more: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ranks", str(make_replicas(tmp_path / "job")), "--replicated", *more]) == 2
    assert "--replicated: expected it alone" in capsys.readouterr().err


def test_dims_without_a_mesh_are_refused_all_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ranks", str(make_replicas(tmp_path / "job")), "--dims", "*=b s"]) == 2
    assert "--mesh, --dims: expected both" in capsys.readouterr().err

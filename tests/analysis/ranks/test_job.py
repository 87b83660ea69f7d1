"""A job as one: what must be equal and is not is named by tensor, rank and machine; what is missing is said."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("duckdb")

from msdump.analysis.ranks.job import job_report, write_tables
from msdump.analysis.ranks.questions import Tables
from msdump.analysis.ranks.tables import TABLE_COLUMNS
from msdump.cli.main import main
from msdump.errors import ConfigError, FormatError
from msdump.formats.selection import StepSelection
from tests.analysis.ranks.conftest import MakeJob
from tests.analysis.small_dump import Array, floats, write_dump


def flipped(array: Array) -> Array:
    """One bit of one element."""
    bits = array.copy().view(np.uint32)
    bits[0] ^= 1
    return bits.view(np.float32)


def tables(job: Path, folder: Path, golden: Path | None = None) -> Tables:
    write_tables([job], folder, jobs=1)
    if golden is not None:
        write_tables([golden], folder / "golden", jobs=1)
    return Tables(folder, None if golden is None else folder / "golden")


def test_ranks_that_agree(make_job: MakeJob, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = make_job()
    assert main(["ranks", str(job), "--jobs", "1"]) == 0
    out = capsys.readouterr().out
    assert "4 ranks on 2 machines, 9 tensors that must be equal" in out and "all of them are equal" in out
    assert job_report(tables(job, tmp_path / "t"), [job]).gaps == ()


@pytest.mark.parametrize("operator", ["Net/Mul-op0", "Net/AllReduce-op1"])
def test_a_flipped_bit_names_rank_machine_and_tensor(make_job: MakeJob, tmp_path: Path, operator: str) -> None:
    def spoil(rank: int, iteration: int, name: str, array: Array) -> Array:
        return flipped(array) if (rank, name) == (3, operator) and iteration >= 1 else array

    job = make_job(spoil=spoil)
    report = job_report(tables(job, tmp_path / "t"), [job])
    rows = [dict(zip(report.unequal.titles, row, strict=True)) for row in report.unequal.rows]
    assert [(row["iteration"], row["name"]) for row in rows] == [(1, operator), (2, operator)]
    if operator == "Net/AllReduce-op1":
        assert rows[0]["suspects"] == [3] and rows[0]["hosts"] == ["node1"] and report.suspects == {3: 2}
    else:  # two ranks alone
        assert rows[0]["suspects"] == [1, 3] and not rows[0]["has_majority"] and report.suspects == {}


def test_the_command_says_it(make_job: MakeJob, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    job = make_job(spoil=lambda rank, step, name, array: flipped(array) if rank == 2 and "All" in name else array)
    assert main(["ranks", str(job), "--jobs", "1", "--tables", str(tmp_path / "t")]) == 1
    out = capsys.readouterr().out
    assert out.splitlines()[0] == (
        "rank 2 is outvoted, first in iteration 0: Net/AllReduce-op1, output 0 (graph 0), "
        "which ranks 0, 1, 2, 3 must share"
    )
    assert "suspects, outvoted by the other ranks:" in out and "node1" in out
    assert main(["ranks", str(job), "--jobs", "1", "--tables", str(tmp_path / "t"), "--json", "-"]) == 1
    value = json.loads(capsys.readouterr().out)
    assert value["suspects"] == [{"rank": 2, "tensors": 3}] and value["gaps"] == []
    assert main(["query", str(tmp_path / "t")]) == 1
    assert main(["query", str(tmp_path / "t"), "select count(*) as n from tensors"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].strip() == "48"
    assert main(["query", str(tmp_path / "t"), "select nothing from nowhere"]) == 2


def test_what_is_missing_is_said_and_the_rest_goes_on(
    make_job: MakeJob, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = make_job(ranks=range(3))
    for path in (job / "rank_1/Net/0/2").iterdir():
        path.unlink()
    (job / "rank_1/Net/0/2").rmdir()
    damaged = next((job / "rank_0/Net/0/0").glob("Own*"))
    damaged.write_bytes(damaged.read_bytes()[:-1])
    assert main(["ranks", str(job), "--jobs", "1"]) == 4
    out, err = capsys.readouterr()
    assert "incomplete: no dump of rank 3 of 4" in out and "incomplete: rank 1 has no iteration 2" in out
    assert damaged.name in err and "all of them are equal" in out


def test_two_jobs_are_refused(make_job: MakeJob, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="expected rank 0, iteration 0 in one dump, got it in"):
        write_tables([make_job("one"), make_job("two")], tmp_path / "t", jobs=1)


def test_a_part_that_is_cut_is_named_and_left_out(make_job: MakeJob, tmp_path: Path) -> None:
    write_tables([make_job()], tmp_path / "t", jobs=1)
    cut = tmp_path / "t/rank_00001.iteration_00000000.parquet"
    cut.write_bytes(cut.read_bytes()[:-9])
    read = Tables(tmp_path / "t")
    assert [path for path, _ in read.damaged] == [str(cut)]
    assert read.ranks()[1][1] == (1, 2)


def test_the_rank_that_stands_out(make_job: MakeJob, tmp_path: Path) -> None:
    def spoil(rank: int, iteration: int, name: str, array: Array) -> Array:
        return array * 100 if (rank, iteration, name) == (2, 1, "Net/Own-op2") else array

    answer = tables(make_job(spoil=spoil), tmp_path / "t").outliers()
    rows = [dict(zip(answer.titles, row, strict=True)) for row in answer.rows]
    assert [(row["rank"], row["iteration"], row["name"]) for row in rows][:1] == [(2, 1, "Net/Own-op2")]


def test_first_divergence_of_each_rank_and_of_the_job(make_job: MakeJob, tmp_path: Path) -> None:
    def spoil(rank: int, iteration: int, name: str, array: Array) -> Array:
        begins: dict[int, int] = {1: 2, 3: 1}
        return array + 1 if rank in begins and iteration >= begins[rank] and name != "Net/Mul-op0" else array

    answer = tables(make_job(spoil=spoil), tmp_path / "t", make_job("golden")).first_divergence()
    rows: list[dict[str, Any]] = [dict(zip(answer.titles, row, strict=True)) for row in answer.rows]
    assert [(row["rank"], row["iteration"], row["name"]) for row in rows] == [
        (3, 1, "Net/AllReduce-op1"),
        (1, 2, "Net/AllReduce-op1"),
    ]
    tolerant = Tables(tmp_path / "t", tmp_path / "t/golden").first_divergence(tolerance=0.9)
    assert tolerant.rows == ()
    with pytest.raises(ConfigError, match="Give --golden"):
        Tables(tmp_path / "t").first_divergence()


NAMES = ("a*b", "a**b", "c[1]", "d?e", "iteration=7", "{x,y}", "i'j", "g\\h", "~", "[", "]a[!b")


def test_a_folder_of_any_name_is_itself_and_no_pattern(
    make_job: MakeJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside folders that the name would match as a pattern, with the same file names and other contents."""
    monkeypatch.chdir(tmp_path)
    write_tables([make_job()], "~", StepSelection(iteration=1), jobs=1)
    assert list(tmp_path.joinpath("~").iterdir())
    for name in NAMES:
        if name != "~":
            shutil.copytree("~", name)
    write_tables([make_job("other")], "axb", StepSelection(iteration=0), jobs=1)
    for other in ("c1", "dxe", "ax/b", "x"):
        shutil.copytree("axb", other)
    for name in NAMES:
        opened = Tables(name)
        assert opened.damaged == []
        assert opened.sql("select distinct iteration from tensors").fetchall() == [(1,)], name
        assert len(opened.sql("from tensors").columns) == len(TABLE_COLUMNS)
        opened.confine()
        assert opened.sql("select distinct iteration from tensors").fetchall() == [(1,)], name
    shutil.copytree("~", "g\\h*")
    with pytest.raises(FormatError, match="without a backslash beside"):
        Tables("g\\h*")


def test_brief_answers_say_what_was_not_compared(
    make_job: MakeJob, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ranks", str(make_job() / "rank_0"), "--brief", "--jobs", "1"]) == 4
    assert "incomplete: " in capsys.readouterr().out
    alone = write_dump(tmp_path / "alone", [("Net/Log-op0", {("output", 0): floats(1)})])
    assert main(["ranks", str(alone), "--brief", "--jobs", "1"]) == 0
    assert capsys.readouterr().out.startswith("nothing to compare: no layout.json says")


def test_a_dump_is_queried_without_tables(make_job: MakeJob, capsys: pytest.CaptureFixture[str]) -> None:
    job = make_job()
    query = "select rank, count(*) as tensors from tensors group by rank order by rank"
    assert main(["ranks", str(job), "--sql", query, "--jobs", "1", "--json", "-"]) == 0
    assert [row[0] for row in json.loads(capsys.readouterr().out)["rows"]] == [0, 1, 2, 3]
    assert main(["ranks", str(job), "--ask", "hashes", "--jobs", "1"]) == 0
    assert "nothing found" in capsys.readouterr().out


@pytest.mark.parametrize(
    "query",
    [
        "select * from read_text('{folder}/secret')",
        "select * from '{folder}/secret.csv'",
        "copy tensors to '{folder}/written.csv'",
        "copy tensors to '{part}' (format parquet)",
        "attach '{folder}/written.db'",
        "set enable_external_access = true",
        "install httpfs",
        "select * from secret",
    ],
)
def test_a_confined_query_reads_the_tables_alone(make_job: MakeJob, tmp_path: Path, query: str) -> None:
    for name in ("secret", "secret.csv"):
        (tmp_path / name).write_text("a\n1\n")
    secret = {"a": np.ones(3)}  # a variable that a query could name
    opened = tables(make_job(), tmp_path / "t")
    opened.confine()
    part = next((tmp_path / "t").glob("*.parquet"))
    before = part.read_bytes()
    with pytest.raises(ConfigError, match="SQL: expected a query about the table tensors"):
        opened.answer(query.format(folder=tmp_path, part=part))
    assert opened.answer("select count(*) > 0 from tensors").rows == ((True,),)
    assert part.read_bytes() == before and not list(tmp_path.glob("written*")) and secret

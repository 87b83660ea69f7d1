"""`msdump compare` as a command: what comes first, what the files hold, what the exit status says."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from msdump.cli.main import main
from tests.analysis.small_dump import floats, write_dump

IN, OUT = ("input", 0), ("output", 0)


def dump(root: Path, value: float) -> Path:
    return write_dump(root, [("D/Add-op1", {IN: floats(1, 2), OUT: floats(1, value)})])


def test_what_comes_first_and_what_the_status_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine, golden = str(dump(tmp_path / "a", 2)), str(dump(tmp_path / "b", 3))
    assert main(["compare", mine, mine]) == 0
    assert capsys.readouterr().out.startswith("agree: all 1 pairs")
    assert main(["compare", mine, golden]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "first wrong operator: D/Add-op1 (Add), rank 0, graph 0, iteration 0"
    assert lines[2] == "  it adds an error of 0.316"
    assert lines[4].split()[:2] == ["verdict", "operator"] and lines[5].split()[:2] == ["WRONG", "Add-op1"]
    after = lines[lines.index("next:") + 1 :]
    assert after[0].startswith(f"  msdump show {shlex.quote(mine)} Add-op1 --rank 0 --graph 0 --iteration 0  # ")
    assert main(["compare", mine, golden, "--brief"]) == 1
    brief = capsys.readouterr().out.splitlines()
    assert brief[:3] == lines[:3] and [line.split() for line in brief[3:]] == [
        ["verdict", "id", "error"],
        ["WRONG", "Add-op1@0.0.0", "0.316"],
    ]
    assert main(["compare", mine, golden, "--json", "-"]) == 1
    assert json.loads(capsys.readouterr().out)["answer"] == lines[:3]
    assert main(["compare", mine, golden, "--tolerance", "0.5"]) == 0
    assert capsys.readouterr().out.startswith("agree: all 1 pairs")
    assert main(["compare", mine, golden, "--quiet"]) == 1
    assert capsys.readouterr().out == ""


def test_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine, golden = str(dump(tmp_path / "a", 2)), str(dump(tmp_path / "b", 3))
    table, report = tmp_path / "x.csv", tmp_path / "x.json"
    assert main(["compare", mine, golden, "-q", "--csv", str(table), "--json", str(report), "--fast"]) == 1
    assert table.read_text().startswith("Index,OpType,NPUDump,") and len(table.read_text().splitlines()) == 3
    assert json.loads(report.read_text())["agree"] is False
    assert main(["compare", mine, golden, "--json", "-"]) == 1
    assert json.loads(capsys.readouterr().out)["first_wrong"]["operator"] == "D/Add-op1"


def test_wrong_usage_is_not_a_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = str(dump(tmp_path / "a", 2))
    assert main(["compare", mine, str(tmp_path / "missing")]) == 2
    assert main(["compare", mine, mine, "--mapping", str(tmp_path / "missing.json")]) == 2
    assert main(["compare", mine, mine, "--threads", "0"]) == 2
    assert main(["compare", mine, mine, "--csv", str(tmp_path / "no/folder.csv")]) == 2
    other = str(write_dump(tmp_path / "b", [("D/Exp-op1", {OUT: floats(1)})]))
    assert main(["compare", mine, other]) == 2
    assert "--mapping FILE" in capsys.readouterr().err
    with pytest.raises(SystemExit) as stopped:
        main(["compare", mine, mine, "--iteration", "x"])
    assert stopped.value.code == 2


def test_damaged_files_are_told_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine, golden = dump(tmp_path / "a", 2), dump(tmp_path / "b", 2)
    victim = next(mine.rglob("*output*.npy"))
    victim.write_bytes(victim.read_bytes()[:-1])
    assert main(["compare", str(mine), str(golden)]) == 4
    assert "damaged: " in capsys.readouterr().out

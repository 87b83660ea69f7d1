"""`msdump plot`: bars in the terminal, a picture, points as JSON; names of a dump are no formulas."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from msdump.cli.main import main
from tests.analysis.small_dump import floats, write_dump

OUT = ("output", 0)


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    operators = [
        ("Net/Add$x^2-op0", {OUT: floats(2)}),
        ("Net/Mul-op1", {OUT: floats(4)}),
        ("Net/Log-op2", {OUT: floats(float("nan"), 1)}),
    ]
    return write_dump(tmp_path / "dump", operators)


def test_bars(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plot", str(dump), "--by", "operator"]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()[1:4]}
    assert lines["Net/Mul-op1"].count("█") == 2 * lines["Net/Add$x^2-op0"].count("█") > 0
    assert lines["Net/Log-op2"].endswith("!")


def test_two_dumps_as_json(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plot", str(dump), str(dump), "--y", "max", "--by", "operator", "--json", "-"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert [one["points"] for one in value["curves"]] == [
        [["Net/Add$x^2-op0", 2.0], ["Net/Mul-op1", 4.0], ["Net/Log-op2", 1.0]]
    ] * 2


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_a_picture(dump: Path, tmp_path: Path, ending: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    assert main(["plot", str(dump), str(dump), "--by", "operator", "-o", str(tmp_path / f"x.{ending}")]) == 0
    beginning = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[ending]
    assert (tmp_path / f"x.{ending}").read_bytes().startswith(beginning)


def test_wrong_usage(
    dump: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plot", str(dump), "-o", "x.gif"]) == 2
    assert main(["plot", str(dump), "--y", "l2nrm"]) == 2
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert main(["plot", str(dump), "-o", str(tmp_path / "x.png")]) == 2
    err = capsys.readouterr().err
    assert "--output: expected a name that ends in" in err and "pip install matplotlib" in err and '"l2norm"' in err


def test_statistics_without_a_norm_are_drawn_and_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As the default of ACL's csv has none."""
    folder = tmp_path / "20240101000000/0/net/1/0"
    folder.mkdir(parents=True)
    head = "Input/Output,Index,Data Size,Data Type,Format,Shape,Max Value,Min Value,Avg Value,Count,Nan Count,"
    row = "Output,0,8,DT_INT64,ND,1,3,3,3,1,NA,NA,NA\n"
    (folder / "Size.op.1.2.1700000000000000.csv").write_text(f"{head}Negative Inf Count,Positive Inf Count\n{row}")
    assert main(["plot", str(tmp_path)]) == 0
    assert capsys.readouterr().out.split()[:2] == ["layer", "max"]
    assert main(["plot", str(tmp_path), "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["statistic"] == "max"
    assert main(["compare", str(tmp_path), str(tmp_path)]) == 0
    assert "by statistics alone" in capsys.readouterr().out
    assert main(["stat", str(tmp_path), "--golden", str(tmp_path)]) == 0

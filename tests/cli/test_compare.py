"""`msdump compare` as a command: what comes first, what the files hold, what the exit status says."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msdump.cli.main import main
from msdump.cli.options import parse_number_ranges
from msdump.config.ranges import NumberRanges
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
    assert (
        lines[4].split()[:2] == ["iteration", "operator"]
        and "WRONG output 0: relative error 0.316 > 0.0001" in lines[5]
    )
    assert main(["compare", mine, golden, "--tolerance", "0.5"]) == 0
    assert main(["compare", mine, golden, "--quiet"]) == 1
    assert capsys.readouterr().out.count("\n") == 2


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


NUMBERS = st.sets(st.integers(0, 30), min_size=1)


@given(numbers=NUMBERS, separator=st.sampled_from(["|", ",", ", "]))
def test_text_and_numbers_are_inverse(numbers: set[int], separator: str) -> None:
    ranges = parse_number_ranges(separator.join(map(str, sorted(numbers))))
    assert ranges is not None and set(ranges) == numbers and len(ranges) == len(numbers)
    assert all((number in ranges) == (number in numbers) for number in range(-1, 32))
    assert parse_number_ranges(str(ranges)) == ranges
    assert None not in ranges and "1" not in ranges


def test_ranges_of_the_configuration() -> None:
    assert parse_number_ranges("0|5-8") == NumberRanges(((0, 0), (5, 8)))
    assert parse_number_ranges("all") is None


@pytest.mark.parametrize("text", ["", "a", "5-", "8-5", "-1", "|", "0x1"])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="expected"):
        parse_number_ranges(text)


def test_commands_take_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for iteration in range(9):
        write_dump(tmp_path, [("D/Add-op1", {("output", 0): floats(iteration, 1)})], iteration=iteration)
    assert main(["stat", str(tmp_path), "--iteration", "0|5-7"]) == 0
    lines = capsys.readouterr().out.splitlines()[1:]
    assert [int(line.split()[0]) for line in lines] == [0, 5, 6, 7]
    assert main(["nan", str(tmp_path), "--iteration", "5-8"]) == 0
    assert capsys.readouterr().out.startswith("finite: 4 tensors of 4 steps")
    with pytest.raises(SystemExit, match="2"):
        main(["stat", str(tmp_path), "--iteration", "5-"])
    assert 'argument --iteration: expected "all" or numbers and ranges such as "0|5-8"' in capsys.readouterr().err

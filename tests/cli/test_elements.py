"""`msdump show --tensor`: elements of one tensor as numbers and as a picture."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from msdump.cli.main import main
from tests.analysis.small_dump import write_dump

ARRAY = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.fixture
def dump(tmp_path: Path) -> str:
    spoiled = ARRAY.copy()
    spoiled[1, 2, 3], spoiled[0, 1, 0], spoiled[0, 0, 0] = np.nan, np.inf, -np.inf
    tensors = {("input", 0): ARRAY, ("input", 1): np.arange(3, dtype=np.int64), ("output", 0): spoiled}
    return str(write_dump(tmp_path / "dump", [("Net/Log-op0", tensors)]))


def shown(capsys: pytest.CaptureFixture[str], dump: str, *options: str) -> str:
    assert main(["show", dump, "Log-op0", *options]) == 0
    return capsys.readouterr().out


def test_a_part_is_what_numpy_takes(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    value = json.loads(shown(capsys, dump, "--tensor", "input:0", "--index", "1, :, 1:3", "--json", "-"))
    assert np.array_equal(np.array(value["elements"], np.float32), ARRAY[1, :, 1:3])
    assert (value["rows"], value["columns"], value["index"]) == (3, 2, "1, :, 1:3")
    assert value["id"] == "Log-op0@0.0.0" and value["tensor"]["shape"] == [2, 3, 4] and value["not_finite"] == {}


def test_what_is_not_finite_is_counted_in_the_whole_tensor(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, dump, "--tensor", "output", "--index", "0, 2")
    assert "1 NaN at [1, 2, 3]" in text and "1 Inf at [0, 1, 0]" in text and "1 -Inf at [0, 0, 0]" in text
    assert "   8.0  9.0  10.0  11.0" in f"  {text.splitlines()[-1]}" and "[0, 2, :], 1 x 4 elements" in text


def test_the_first_matrix_and_integers(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "[0, :, :], 3 x 4 elements" in shown(capsys, dump, "--tensor", "input:0")
    assert shown(capsys, dump, "--tensor", "input:1").endswith("  0  1  2\n")


def test_a_picture(dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("PIL")
    file = tmp_path / "x.png"
    text = shown(capsys, dump, "--tensor", "output:0", "--index", "0", "--picture", str(file), "--cells", "8")
    assert file.read_bytes().startswith(b"\x89PNG") and "dark is 1, light is 11, red a NaN, orange an Inf" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--tensor", "output:3"], "expected one of input:0, input:1, output:0 of Net/Log-op0, got 'output:3'"),
        (["--tensor", "weights"], "got 'weights'"),
        (["--index", "0"], "--index, --picture: expected --tensor"),
        (["--tensor", "output", "--index", "7"], "index, axis 0: expected a number below 2, got 7"),
        (["--tensor", "output", "--cells", "9"], "--cells: expected a number from 1 to 4096 with --picture"),
        (["--tensor", "output", "--picture", "/nowhere/x.png"], "expected to write the picture, got: No such file"),
    ],
)
def test_wrong_options(dump: str, options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", dump, "Log-op0", *options]) == 2
    assert message in capsys.readouterr().err


def test_a_large_tensor_is_cut_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    large = np.zeros((300, 60), np.float32)
    dump = str(write_dump(tmp_path / "dump", [("Net/Log-op0", {("output", 0): large})]))
    text = shown(capsys, dump, "--tensor", "output:0")
    assert "200 of 300 rows and 50 of 60 columns are shown; --index takes another part" in text

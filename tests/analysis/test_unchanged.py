"""`msdump stat DIR --unchanged`: parameters that a training left as they were."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from msdump.analysis.overview.unchanged import unchanged_parameters
from msdump.cli.main import main
from msdump.errors import NothingFoundError
from tests.analysis.small_dump import floats, write_dump

OUT = ("output", 0)


def dump(folder: Path, values: list[float]) -> Path:
    """A parameter w with these values after the iterations, and one that changes in each."""
    for iteration, value in enumerate(values):
        write_dump(
            folder,
            [("Parameter.w", {OUT: floats(value, 1)}), ("Parameter.b", {OUT: floats(iteration, 1)})],
            iteration=iteration,
        )
    return folder


def test_what_stays_the_same_is_named(tmp_path: Path) -> None:
    report = unchanged_parameters(dump(tmp_path, [3, 3, 3]))
    assert report.parameter_count == 2
    (found,) = report.parameters
    assert (found.name, found.iterations, found.shape, found.largest_gradient) == ("w", (0, 2), (2,), None)


def test_what_comes_back_has_changed(tmp_path: Path) -> None:
    assert unchanged_parameters(dump(tmp_path, [3, 4, 3])).parameters == ()


def test_one_iteration_tells_nothing(tmp_path: Path) -> None:
    with pytest.raises(NothingFoundError, match="expected parameters of two iterations"):
        unchanged_parameters(dump(tmp_path, [3]))


def test_without_a_gradient_it_is_no_finding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A frozen parameter is meant to stay."""
    root = str(dump(tmp_path, [3, 3]))
    assert main(["stat", root, "--unchanged"]) == 0
    out = capsys.readouterr().out
    assert "note: without a gradient, and so the same in all iterations: w" in out
    assert "1 of 2 parameters have changed" in out
    assert main(["stat", root, "--unchanged", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["unchanged"][0]["name"] == "w"

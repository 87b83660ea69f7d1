"""What commands say when nothing is there: of the selected iterations, or at all; and where only statistics are."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msdump.analysis import (
    compare_dumps,
    compare_statistics,
    find_non_finite,
    replay_operator,
    show_operator,
    tensor_statistics,
    write_statistic_files,
)
from msdump.analysis.steps import ranges_text
from msdump.cli.main import main
from msdump.errors import ConfigError
from tests.analysis.small_dump import floats, write_dump

IN, OUT = ("input", 0), ("output", 0)
COMMANDS: list[Callable[..., Any]] = [
    find_non_finite,
    tensor_statistics,
    lambda dump, **options: show_operator(dump, "Log-op1", **options),
    lambda dump, **options: compare_dumps(dump, dump, **options),
    lambda dump, **options: write_statistic_files(dump, Path(dump) / "out", **options),
]


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    for iteration in (0, 1, 2, 7):
        write_dump(tmp_path / "dump", [("D/Log-op1", {IN: floats(1, 2), OUT: floats(math.nan, 1)})], iteration)
    return tmp_path / "dump"


@pytest.mark.parametrize("command", COMMANDS)
def test_an_empty_selection_names_what_the_dump_holds(command: Callable[..., Any], dump: Path) -> None:
    text = re.escape(f"iteration: expected a number that {dump} holds, got 9. The dump holds 0-2|7.")
    with pytest.raises(ConfigError, match=text):
        command(dump, iteration=9)
    with pytest.raises(ConfigError, match=r"^rank: expected a number .* got 3-4\. The dump holds 0\."):
        command(dump, rank=(3, 4))


@pytest.mark.parametrize("command", COMMANDS)
def test_numbers_that_no_step_has_together(command: Callable[..., Any], dump: Path) -> None:
    write_dump(dump, [("D/Log-op1", {OUT: floats(1)})], iteration=5, graph=1)
    with pytest.raises(ConfigError, match=r"of graph 1, iteration 7, got none\. No step has all of these"):
        command(dump, graph=1, iteration=7)


@pytest.mark.parametrize("command", COMMANDS)
def test_no_dump_at_all(command: Callable[..., Any], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Is it the folder that holds rank_0, or one below it"):
        command(tmp_path)


def test_statistics_are_selected_alike(dump: Path, tmp_path: Path) -> None:
    write_statistic_files(dump, tmp_path / "statistics")
    for command in (find_non_finite, tensor_statistics, lambda path, **o: compare_statistics(path, path, **o)):
        with pytest.raises(ConfigError, match=r"^iteration: .* The dump holds 0-2\|7\."):
            command(tmp_path / "statistics", iteration=4)  # type: ignore[operator]


def test_a_type_that_no_operator_has(dump: Path) -> None:
    with pytest.raises(ConfigError, match=r'op_type: .* got Loog\. Did you mean "Log"\? The dump holds Log\.'):
        tensor_statistics(dump, op_type="Loog")


def test_show_after_nan_on_statistics(dump: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_statistic_files(dump, tmp_path / "statistics")
    shown = show_operator(tmp_path / "statistics", "Log-op1")
    assert [tensor.numbers.nan for tensor in shown.tensors if tensor.numbers is not None] == [0, 1]
    assert main(["show", str(tmp_path / "statistics"), "Log-op1"]) == 0
    out = capsys.readouterr().out
    assert "output 0  float32  2" in out and "\nstatistics only\n" in out and "\n  msdump zoom " in out
    with pytest.raises(ConfigError, match=r"got statistics only\. Dump the tensors of this operator: msdump zoom"):
        replay_operator(tmp_path / "statistics", "Log-op1")


@given(numbers=st.sets(st.integers(0, 40)))
def test_ranges_read_back(numbers: set[int]) -> None:
    pieces = [piece.partition("-") for piece in ranges_text(numbers).split("|") if piece]
    assert {n for first, _, last in pieces for n in range(int(first), int(last or first) + 1)} == numbers

"""Options that several commands have: ranges of numbers."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msdump.cli.main import main
from msdump.cli.options import parse_number_ranges
from msdump.config.ranges import NumberRanges
from tests.analysis.small_dump import floats, write_dump

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
    titles, *lines = (line.split() for line in capsys.readouterr().out.split("\n\n")[0].splitlines()[1:])
    assert titles[:4] == ["verdict", "operator", "tensor", "iteration"]
    assert [(line[0], int(line[4])) for line in lines] == [("ok", 0), ("ok", 5), ("ok", 6), ("ok", 7)]
    assert main(["nan", str(tmp_path), "--iteration", "5-8"]) == 0
    assert capsys.readouterr().out.startswith("finite: 4 tensors of 4 iterations")
    with pytest.raises(SystemExit, match="2"):
        main(["stat", str(tmp_path), "--iteration", "5-"])
    assert 'argument --iteration: expected "all" or numbers and ranges such as "0|5-8"' in capsys.readouterr().err

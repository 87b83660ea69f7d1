"""The golden side of a step has a row for each row of the step, with the numbers of the golden dump."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msdump.analysis import compare_dumps, tensor_statistics
from msdump.analysis.measurements import Measurements
from msdump.analysis.overview.contents import Contents
from msdump.analysis.stat.statistics import write_statistic_files
from msdump.viewing.pages import Pages
from msdump.viewing.report_file import write_report
from tests.analysis.small_dump import floats, write_dump

IN, OUT = ("input", 0), ("output", 0)
Answers = tuple[dict[str, Any], dict[str, Any]]


def answers_of(mine: Path, golden: Path) -> Answers:
    pages = Pages(Contents(mine, golden, measurements=Measurements(has_exponents=True)))
    step, golden_side = (json.loads(json.dumps(pages.get(f"{kind}/0/0/0"))) for kind in ("step", "golden"))
    return step, golden_side


@pytest.fixture(scope="module")
def answers(moved_dump: Path, golden_dump_folder: Path) -> Answers:
    return answers_of(moved_dump, golden_dump_folder)


def test_there_is_a_row_for_each_row_of_the_step(answers: Answers) -> None:
    step, golden = answers
    for table in ("operators", "tensors"):
        (length,) = {len(column) for column in step[table].values()}
        assert {len(column) for column in golden[table].values()} == {length}


def test_numbers_are_those_of_the_golden_dump(answers: Answers, golden_dump_folder: Path) -> None:
    step, golden = answers
    rows = {
        (row.operator.label, row.tensor.io, row.tensor.slot_text): row
        for row in tensor_statistics(golden_dump_folder, iteration=0).rows
        if row.operator is not None
    }
    ends = [*step["operators"]["first"][1:], len(step["tensors"]["io"])]
    seen = 0
    for number, (begin, end) in enumerate(zip(step["operators"]["first"], ends, strict=True)):
        for at in range(begin, end):
            if golden["tensors"]["max"][at] is None:
                assert golden["tensors"]["status"][at] in (None, "identical")
                continue
            row = rows[golden["operators"]["name"][number], step["tensors"]["io"][at], step["tensors"]["slot"][at]]
            assert golden["tensors"]["max"][at] == row.numbers.max and golden["tensors"]["shape"][at] == list(row.shape)
            assert sum(golden["tensors"]["exponents"][at][1]) > 0 or row.numbers.max <= 0
            seen += 1
    assert seen > 3


def test_results_are_those_of_the_comparison(answers: Answers, moved_dump: Path, golden_dump_folder: Path) -> None:
    _, golden = answers
    differing = [
        tensor
        for operator in next(iter(compare_dumps(moved_dump, golden_dump_folder, iteration=0).steps)).operators
        for tensor in operator.tensors
        if tensor.status == "differs"
    ]
    places = [at for at, status in enumerate(golden["tensors"]["status"]) if status == "differs"]
    assert [golden["tensors"]["error"][at] for at in places] == [tensor.error for tensor in differing]
    assert [golden["tensors"]["reason"][at] for at in places] == [tensor.reason for tensor in differing]
    assert {golden["tensors"]["tolerance"][at] for at in places} == {1e-4}


def test_lines_and_attributes_are_those_of_the_golden_dump(answers: Answers) -> None:
    step, golden = answers
    types = list(zip(step["operators"]["type"], golden["operators"]["type"], strict=True))
    assert ("Sigmoid", "Sigmoid") in types or any(mine != other for mine, other in types if other is not None)
    lines = [golden["lines"][at] for at in golden["operators"]["line"] if at is not None]
    assert lines and all(path.endswith(".py") and number > 0 for path, number, _ in lines)
    assert any(attrs for attrs in golden["operators"]["attrs"])


def test_what_has_no_partner_has_no_row(tmp_path: Path) -> None:
    mine = write_dump(tmp_path / "mine", [("Net/Add-op0", {OUT: floats(1, 2)}), ("Net/Mul-op1", {OUT: floats(3)})])
    golden = write_dump(tmp_path / "golden", [("Net/Add-op0", {OUT: floats(1, np.nan)})])
    _, side = answers_of(mine, golden)
    assert side["operators"]["name"] == ["Net/Add-op0", None]
    assert side["tensors"]["status"] == ["differs", None]
    assert (side["tensors"]["nan"], side["tensors"]["error"]) == ([1, None], ["inf", None])


def test_identical_tensors_have_no_numbers_of_their_own(tmp_path: Path) -> None:
    mine, golden = (write_dump(tmp_path / side, [("Net/Add-op0", {OUT: floats(1, 2)})]) for side in ("mine", "golden"))
    _, side = answers_of(mine, golden)
    assert side["tensors"]["status"] == ["identical"] and side["tensors"]["max"] == [None]


def test_statistics_alone(tmp_path: Path) -> None:
    for side, value in (("mine", 1), ("golden", 2)):
        dump = write_dump(tmp_path / f"{side}-tensors", [("Net/Add-op0", {OUT: floats(1, value)})])
        write_statistic_files(dump, tmp_path / side)
    _, side = answers_of(tmp_path / "mine", tmp_path / "golden")
    assert (side["tensors"]["max"], side["tensors"]["exponents"]) == ([2.0], [None])


def test_a_report_that_is_too_large_leaves_them_out_first(
    moved_dump: Path, golden_dump_folder: Path, tmp_path: Path
) -> None:
    contents = Contents(moved_dump, golden_dump_folder)
    whole = write_report(contents, tmp_path / "whole.html")
    less = write_report(contents, tmp_path / "less.html", max_bytes=whole.size - 400)
    assert less.left_out[-1].startswith("No room for 1 pages: golden/")

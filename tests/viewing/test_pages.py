"""Answers of a viewer's pages are JSON, fit together, and say what the commands say."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from msdump.analysis import find_non_finite, tensor_statistics
from msdump.analysis.measurements import Measurements
from msdump.analysis.overview.contents import Contents
from msdump.errors import ConfigError
from msdump.formats.sidecars import Lost, write_lost
from msdump.viewing import pages as viewing_pages
from msdump.viewing.pages import Pages
from msdump.viewing.report_file import markdown
from tests.analysis.exporting.conftest import NAN_LINE
from tests.analysis.small_dump import floats, write_dump


@pytest.fixture(scope="module")
def nan_pages(nan_dump):
    return Pages(Contents(nan_dump, measurements=Measurements(has_exponents=True)))


def plain(pages, path):
    """An answer after its way through JSON, which knows no NaN."""
    return json.loads(json.dumps(pages.get(path), allow_nan=False))


def test_every_path_has_an_answer_in_json(nan_pages):
    statistics = [f"map/0/{name}" for name in ("l2", "max", "nan", "zero")]
    steps = ["step/0/0/0", "step/0/0/1"]
    assert nan_pages.paths() == ["overview", "map", "nan", "map/0", *steps, *statistics, "trend/0/0"]
    for path in nan_pages.paths():
        answer = plain(nan_pages, path)
        for table in (value for value in answer.values() if isinstance(value, dict) and path.startswith("step/")):
            assert len({len(column) for column in table.values()}) == 1


def test_the_verdict_is_that_of_nan(nan_pages, nan_dump):
    overview, first = plain(nan_pages, "overview"), find_non_finite(nan_dump).first_nan
    assert overview["verdict"] == {
        "kind": "first-nan",
        "text": f"first NaN: {first.operator.label}",
        "at": overview["findings"][0]["at"],
    }
    at = overview["verdict"]["at"]
    assert at["step"] == list(first.step)
    step = plain(nan_pages, "step/0/0/0")
    assert step["operators"]["name"][at["operator"]] == first.operator.label
    assert overview["findings"][0]["line"][1] == NAN_LINE
    assert step["lines"][step["operators"]["line"][at["operator"]]] == overview["findings"][0]["line"]
    assert overview["steps"]["health"] == ["not finite made here", "not finite came in"]


def test_numbers_are_those_of_stat(nan_pages, nan_dump):
    tensors = plain(nan_pages, "step/0/0/1")["tensors"]
    rows = tensor_statistics(nan_dump, iteration=1).rows
    assert len(tensors["io"]) == len(rows)
    for name in ("max", "min", "avg", "l2norm", "nan", "zero"):
        expected = [getattr(row.numbers, name) for row in rows]
        assert [str(value) for value in tensors[name]] == [str(value) for value in expected]


def test_exponents_count_what_is_finite_and_not_zero(nan_pages):
    tensors = plain(nan_pages, "step/0/0/0")["tensors"]
    columns = ("exponents", "count", "nan", "negative_inf", "positive_inf", "zero")
    for (_, positive, negative), *counts in zip(*(tensors[name] for name in columns), strict=True):
        assert sum(positive) + sum(negative) == counts[0] - sum(counts[1:])


def test_the_way_of_a_nan_leads_to_operators(nan_pages):
    (first, second) = plain(nan_pages, "nan")["found"]
    assert (first["step"], first["how"], first["line"][1]) == ([0, 0, 0], "made", NAN_LINE)
    assert all(at["operator"] is not None for at in first["infected"]) and first["infected"]
    assert second["step"] == [0, 0, 1]


def test_inputs_name_the_operator_that_made_them(nan_pages):
    step = plain(nan_pages, "step/0/0/0")
    names, first = step["operators"]["name"], step["operators"]["first"]
    log = next(index for index, name in enumerate(names) if "Log-op" in name)
    source = step["tensors"]["source"][first[log]]
    assert source is not None and "fc1" in names[source]


def test_an_operator_tells_the_calls_that_led_to_it(nan_pages):
    step = plain(nan_pages, "step/0/0/0")
    operators, called = step["operators"], 0
    for line, trace in zip(operators["line"], operators["trace"], strict=True):
        assert (line is None) == (trace is None)
        if trace is not None:
            calls = step["traces"][trace]
            assert line in calls and max(calls) < len(step["lines"])
            called += len(calls) > 1
    assert called > 0


def test_two_dumps(moved_dump, golden_dump_folder):
    pages = Pages(Contents(moved_dump, golden_dump_folder))
    overview = plain(pages, "overview")
    assert overview["golden_path"] == str(golden_dump_folder) and "golden/0/0/0" in overview["pages"]
    assert overview["golden"].endswith("/sigmoid") and overview["verdict"]["kind"].startswith("first-")
    compare = plain(pages, "compare/0/0/0")
    assert compare["headline"] and "differs" in compare["tensors"]["status"]
    step = plain(pages, "step/0/0/0")
    by_place = {
        (operator, io, slot): error
        for operator, io, slot, error in zip(
            *(compare["tensors"][name] for name in ("operator", "io", "slot", "error")), strict=True
        )
    }
    ends = [*step["operators"]["first"][1:], len(step["tensors"]["io"])]
    for number, (begin, end) in enumerate(zip(step["operators"]["first"], ends, strict=True)):
        for at in range(begin, end):
            key = number, step["tensors"]["io"][at], step["tensors"]["slot"][at]
            assert step["tensors"]["error"][at] == by_place.get(key)


def test_a_healthy_dump_says_what_was_looked_at(tmp_path):
    values = {("input", 0): floats(1, 2), ("output", 0): floats(3, 4)}
    pages = Pages(Contents(write_dump(tmp_path / "dump", [("Net/Add-op0", values)])))
    verdict = pages.get("overview")["verdict"]
    assert verdict["kind"] == "ok" and "2 tensors of 1 operator" in verdict["text"]


def test_a_dump_that_is_not_complete_is_not_called_healthy(tmp_path):
    dump = write_dump(tmp_path / "dump", [("Net/Add-op0", {("output", 0): floats(3, 4)})])
    write_lost(tmp_path / "dump/rank_0/.dump_metadata", Lost(1, "no room"))
    overview = Pages(Contents(dump)).get("overview")
    assert overview["verdict"]["kind"] == "unknown" and overview["verdict"]["text"].endswith(
        "; the dump is not complete."
    )
    assert overview["notes"] == ["rank 0: the dump is not complete, 1 tensor lost: no room."]
    assert overview["notes"][0] in markdown(overview)


def test_a_damaged_file_is_named_with_its_reason(tmp_path):
    values = {("input", 0): floats(1, 2), ("output", 0): floats(3, 4)}
    dump = write_dump(tmp_path / "dump", [("Net/Add-op0", values)])
    (broken,) = dump.rglob("*.output.0.*")
    broken.write_bytes(broken.read_bytes()[:-3])
    overview = Pages(Contents(dump)).get("overview")
    assert overview["verdict"]["kind"] == "unknown" and "1 file is damaged" in overview["verdict"]["text"]
    ((file, reason),) = overview["damaged"]
    assert file.endswith(broken.name) and "expected" in reason


def test_a_path_that_is_not_there(nan_pages):
    with pytest.raises(ConfigError, match=r"expected a page of this dump, got 'step/0/0/7'.*step/0/0/"):
        nan_pages.get("step/0/0/7")


def test_folders_without_numbers(tmp_path):
    folder = tmp_path / "loose"
    folder.mkdir()
    np.save(folder / "Add.Add-op0.0.0.1700000000000000.output.0.DefaultFormat.npy", floats(1, 2))
    pages = Pages(Contents(folder))
    (step,) = (path for path in pages.paths() if path.startswith("step/"))
    assert pages.get(step)["operators"]["type"] == ["Add"]
    assert pages.get("map")["iterations"] == [None] and pages.get("map/-")["cells"] == "4"


IN, OUT = ("input", 0), ("output", 0)


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    for rank in (0, 3):
        for iteration in (0, 2, 10):
            operators = [("Net/Add-op0", {IN: floats(rank, iteration)}), ("Net/Log-op1", {OUT: floats(iteration, 1)})]
            if (rank, iteration) == (3, 10):
                operators.append(("Net/Div-op2", {OUT: floats(np.nan, 2)}))
            write_dump(tmp_path / "dump", operators, iteration=iteration, rank=rank)
    write_dump(tmp_path / "dump", [("Net/Sub-op0", {OUT: floats(1)})], graph=7)
    return tmp_path / "dump"


def test_which_pages_there_are(dump: Path) -> None:
    pages = Pages(Contents(dump))
    paths = [path for path in pages.paths() if path.startswith(("trend/", "ranks/"))]
    assert paths == ["trend/0/0", "trend/3/0", "ranks/0/0", "ranks/0/2", "ranks/0/10"]
    assert pages.get("overview")["pages"] == paths


def test_numbers_over_iterations(dump: Path) -> None:
    trend = Pages(Contents(dump)).get("trend/3/0")
    assert trend["columns"] == [0, 2, 10] and trend["left_out"] == 0
    assert trend["tensors"]["name"] == ["Net/Add-op0", "Net/Log-op1", "Net/Div-op2"]
    assert trend["statistics"]["max"] == [[3, 3, 10], [1, 2, 10], [None, None, 2]]
    assert trend["statistics"]["nan"][2] == [None, None, 1]
    assert trend["statistics"]["l2norm"][2] == [None, None, "nan"]
    assert trend["tensors"]["health"][2] == "not finite made here" and trend["tensors"]["io"][0] == "input"


def test_numbers_over_ranks(dump: Path) -> None:
    ranks = Pages(Contents(dump)).get("ranks/0/10")
    assert ranks["columns"] == [0, 3]
    assert ranks["statistics"]["min"] == [[0, 3], [1, 1], [None, 2]]


def test_the_worst_tensors_have_room(dump: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(viewing_pages, "MAX_CELLS", 6)
    trend = Pages(Contents(dump)).get("trend/3/0")
    assert trend["left_out"] == 1 and trend["tensors"]["name"] == ["Net/Add-op0", "Net/Div-op2"]

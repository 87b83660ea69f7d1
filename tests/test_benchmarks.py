"""The benchmarks measure what they say, and docs/performance.md shows what they measured."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks import page, picture, results, sampling, which_tool, workers
from benchmarks.registry import Bench, Line, Row, Sample, load_rows

ROOT = Path(__file__).resolve().parent.parent


def row_of(rounds: list[Mapping[str, Sample]], aim: str = "<= 1.0", **limits: Any) -> Row:
    def measure(bench: Bench) -> Iterator[Mapping[str, Sample]]:
        bench.notes["time"] = "a note"
        yield from rounds

    return Row("row", "Section", {"time": Line("what", "of what", aim)}, measure, **limits)


def sampled(rounds: list[Mapping[str, Sample]], aim: str = "<= 1.0", **limits: Any) -> results.Result:
    (result,) = sampling.sample(row_of(rounds, aim, **limits), Bench(False, {}))
    return result


def test_rounds_end_when_they_agree() -> None:
    result = sampled([{"time": (2.0, 4.0)}] * 50)
    assert (result.rounds, result.median, result.is_settled, result.is_met) == (5, 0.5, True, True)
    assert result.note == "a note"


def test_rounds_that_do_not_agree_are_bounded_and_shown() -> None:
    result = sampled([{"time": (float(number % 7 + 1), 4.0)} for number in range(100)], most=20)
    assert result.rounds == 20 and not result.is_settled
    assert "spread" in page.text_line(vars(result))


def test_the_shortest_times_are_compared_beside_the_median() -> None:
    rounds: list[Mapping[str, Sample]] = [{"time": (9.0, 1.0)}, {"time": (9.0, 2.0)}, {"time": (1.0, 4.0)}] * 2
    result = sampled(rounds, most=6)
    assert result.median == 4.5 and result.best == 1.0
    assert result.is_met is False and result.is_met_at_best is True


@pytest.mark.parametrize(
    ("sample", "value"),
    [(3.0, 3.0), ((3.0, 2.0), 1.5), ((3.0, 1.0, 4.0), 0.5), ((3.0, 1.0, 9.0, 1.0), 0.25)],
)
def test_what_a_round_gives(sample: Sample, value: float) -> None:
    assert sampled([{"time": sample}] * 5).median == value


def test_aims_have_a_direction() -> None:
    assert Line("", aim=">= 5").is_met(6) is True and Line("", aim=">= 5").is_met(4) is False
    assert Line("", aim="<= 5").is_met(4) is True and Line("").is_met(4) is None
    assert sampled([{"time": 1.0}, {"time": 9.0}] * 3, aim=">= 5", most=6).best == 9.0


def test_every_row_stands_on_the_page() -> None:
    rows = load_rows()
    text = page.PAGE.read_text(encoding="utf-8")
    assert set(page.sections(text)) == {row.section for row in rows.values()}
    assert all(row.lines and row.name == name for name, row in rows.items())


def test_the_page_and_the_picture_are_made_from_the_results() -> None:
    document = results.read_results(results.RESULTS)
    for path in (page.PAGE, *page.OTHERS):
        text = path.read_text(encoding="utf-8")
        assert page.sections(text) and page.made(text, document) == text
    assert picture.picture(document["results"]) == page.PICTURE.read_text(encoding="utf-8")


def test_results_are_of_rows_that_exist() -> None:
    rows = load_rows()
    for result in results.read_results(results.RESULTS)["results"]:
        assert result["line"] in rows[result["row"]].lines


def test_results_replace_those_of_the_same_row(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    first = {"row": "a", "line": "x", "median": 1}
    results.merged(
        path, [first, {"row": "b", "line": "x", "median": 2}, {"row": "gone", "line": "x"}], ["a", "b", "gone"]
    )
    document = results.merged(path, [{**first, "median": 3}], ["b", "a"])
    assert [(one["row"], one["median"]) for one in document["results"]] == [("b", 2), ("a", 3)]
    assert json.loads(path.read_text()) == document


@pytest.mark.usefixtures("needs_mindspore")
def test_a_worker_measures_in_its_turn_and_stands_still_between() -> None:
    with workers.Worker("mindspore_chain", count=20, is_graph=True, is_peer=False) as worker:
        assert worker.turn() > 0
        state = Path(f"/proc/{worker.pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        assert state == "T"


def test_a_worker_that_fails_says_why() -> None:
    with pytest.raises(workers.WorkerError, match="KeyError: 'nothing'"):
        workers.Worker("nothing")


@pytest.mark.parametrize("tool", ["anomaly", "msdump"])
def test_tools_of_this_environment_print_what_their_page_says(tool: str) -> None:
    pytest.importorskip("torch")
    text = which_tool.PAGE.read_text(encoding="utf-8")
    for script in which_tool.SCRIPTS:
        printed = which_tool.printed(which_tool.TOOLS[tool], script, Path(sys.executable))
        assert printed and which_tool.made(text, {(tool, script): printed}) == text, printed


@pytest.mark.usefixtures("needs_mindspore")
def test_the_command_lists_and_measures(tmp_path: Path) -> None:
    def run(*arguments: str) -> str:
        command = [sys.executable, "-m", "benchmarks", *arguments]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert all(name in run("--list") for name in ("sync-tensors", "growth", "limits-memory"))
    assert "same kernels called in a loop" in run("no-dump", "--quick", "--json", str(tmp_path / "r.json"))
    (result,) = json.loads((tmp_path / "r.json").read_text())["results"]
    assert result["row"] == "no-dump" and result["rounds"] >= 2

"""Filling: names first, then numbers; what was measured is not measured again; a dump that grows is read again."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msdump.analysis.measurements import Measurements
from msdump.analysis.overview.contents import Contents
from msdump.formats.selection import StepSelection
from msdump.viewing import filling
from msdump.viewing.filling import ASKING_RANKS, FAILED, MEASURING, READY, Wanted, fill, stamp_of
from msdump.viewing.index import Index, Progress
from msdump.viewing.pages import Pages
from tests.analysis.ranks.test_words import make_job
from tests.analysis.small_dump import floats, write_dump

IN, OUT = ("input", 0), ("output", 0)


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    return write_dump(
        tmp_path / "dump",
        [("Net/Log-op0", {IN: floats(-1, 1), OUT: floats(np.nan, 0)}), ("Net/Add-op1", {IN: floats(np.nan, 0)})],
    )


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """Stage and overview of each set of answers."""
    sets: list[tuple[str, dict[str, Any]]] = []
    replace = Index.replace

    def noted(self: Index, answers: Any, places: Any, progress: Progress) -> None:
        answers = list(answers)
        sets.append((progress.stage, json.loads(gzip.decompress(dict(answers)["overview"]))))
        replace(self, answers, places, progress)

    monkeypatch.setattr(Index, "replace", noted)
    return sets


def test_names_come_before_numbers(dump: Path, tmp_path: Path, shown: list[tuple[str, dict[str, Any]]]) -> None:
    fill(Wanted(str(dump)), tmp_path / "x.sqlite")
    (first, rough), (last, whole) = shown
    assert (first, last) == (MEASURING, READY)
    assert rough["steps"]["operators"] == whole["steps"]["operators"] == [2]
    assert rough["verdict"] == {"kind": "unknown", "text": "3 tensors have no numbers to judge by.", "at": None}
    assert whole["verdict"]["kind"] == "first-nan"


def test_answers_are_those_of_pages(dump: Path, tmp_path: Path) -> None:
    golden = write_dump(tmp_path / "golden", [("Net/Log-op0", {IN: floats(-1, 1), OUT: floats(5, 0)})])
    fill(Wanted(str(dump), str(golden)), tmp_path / "x.sqlite")
    pages = Pages(Contents(dump, golden, measurements=Measurements(has_exponents=True)))
    with Index(tmp_path / "x.sqlite") as index:
        assert index.progress.stage == READY and sorted(index.paths()) == sorted(pages.paths())
        for path in pages.paths():
            body = index.answer(path)
            assert body is not None and json.loads(gzip.decompress(body)) == json.loads(json.dumps(pages.get(path)))
        mine, other = index.tensor("0/0/0", 1), index.tensor("golden/0/0/0", 1)
        assert mine is not None and other is not None
        assert Path(mine.file).is_relative_to(dump) and Path(other.file).is_relative_to(golden)


def test_a_second_look_reads_nothing(dump: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(Wanted(str(dump)), tmp_path / "x.sqlite")
    monkeypatch.setattr(filling, "_fill_once", lambda *_: pytest.fail("filled again"))
    fill(Wanted(str(dump)), tmp_path / "x.sqlite")


def test_what_was_measured_before_a_stop_is_kept(dump: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Index(tmp_path / "x.sqlite") as index:
        assert Contents(dump, measurements=Measurements(index, has_exponents=True)).statistics.rows
    monkeypatch.setattr("msdump.analysis.measurements._measured", lambda *_: pytest.fail("measured again"))
    fill(Wanted(str(dump)), tmp_path / "x.sqlite")
    with Index(tmp_path / "x.sqlite") as index:
        assert index.progress.stage == READY


def test_a_dump_that_grows_is_followed(dump: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def grow(_: float) -> None:
        with Index(tmp_path / "x.sqlite") as index:
            body = index.answer("overview")
        assert body is not None
        seen.append(len(json.loads(gzip.decompress(body))["steps"]["iteration"]))
        write_dump(dump, [("Net/Log-op0", {IN: floats(1)})], iteration=len(seen))

    monkeypatch.setattr(filling.time, "sleep", grow)
    monkeypatch.setattr(filling.os, "getppid", lambda: 1 if len(seen) < 3 else 2)
    fill(Wanted(str(dump), is_followed=True), tmp_path / "x.sqlite", parent=1)
    assert seen == [1, 2, 3]


def test_the_stamp_sees_each_change(dump: Path) -> None:
    stamps = {stamp_of(Wanted(str(dump))), stamp_of(Wanted(str(dump), selection=StepSelection(rank=(0,))))}
    assert stamp_of(Wanted(str(dump))) in stamps
    (file,) = dump.rglob("*Add*")
    os.utime(file, ns=(5, 5))
    stamps.add(stamp_of(Wanted(str(dump))))
    file.rename(file.with_name(file.name.replace("Add", "Sub")))
    stamps.add(stamp_of(Wanted(str(dump))))
    assert len(stamps) == 4
    assert stamp_of(Wanted("/nowhere")) == stamp_of(Wanted("/nowhere"))


def test_what_is_wrong_is_told(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    fill(Wanted(str(tmp_path / "empty")), tmp_path / "x.sqlite")
    with Index(tmp_path / "x.sqlite") as index:
        assert index.progress.stage == FAILED and "empty" in index.progress.message


def test_ranks_are_asked_last_and_the_rest_is_shown_before(
    tmp_path: Path, shown: list[tuple[str, dict[str, Any]]]
) -> None:
    pytest.importorskip("duckdb")
    job = make_job(tmp_path / "job", lambda *at: at == (2, 1, "head"))
    fill(Wanted(str(job)), tmp_path / "x.sqlite")
    assert [stage for stage, _ in shown] == [MEASURING, ASKING_RANKS, READY]
    assert [overview["outvoted"] for _, overview in shown] == [[], [], [[2, 1]]]
    assert shown[-1][1]["verdict"]["kind"] == "rank"

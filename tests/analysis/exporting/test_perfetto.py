"""Traces for Perfetto: slices of one track never overlap nor go back, and stand in execution order."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from msdump.analysis.exporting import export, perfetto
from tests.analysis.exporting.conftest import HOSTILE


def events(path: Path, kind: str) -> list[dict[str, Any]]:
    return [one for one in json.loads(path.read_text())["traceEvents"] if one["ph"] == kind]


def test_operators_follow_each_other(nan_dump: Path, tmp_path: Path) -> None:
    written, contents = export(nan_dump, "perfetto", tmp_path / "x.json")
    assert "not those that the operators took" in written.notes[0]
    slices = events(tmp_path / "x.json", "X")
    operators = [one for one in contents.operators if not one.operator.is_parameter]
    assert [(one["args"]["iteration"], one["args"]["name"]) for one in slices] == [
        (one.step.iteration, one.operator.label) for one in operators
    ]
    for track in {(one["pid"], one["tid"]) for one in slices}:
        mine = [one for one in slices if (one["pid"], one["tid"]) == track]
        assert all(one["ts"] + one["dur"] <= other["ts"] for one, other in itertools.pairwise(mine))
        assert all(one["dur"] > 0 for one in mine)
    assert [one["cat"] for one in slices if one["args"]["health"] == "not finite made here"] == ["Log"]
    counted = [one["args"]["NaN and Inf"] for one in events(tmp_path / "x.json", "C") if one["name"] == "NaN and Inf"]
    assert next(count for count in counted if count) == 36
    names = {one["args"]["name"] for one in events(tmp_path / "x.json", "M")}
    assert "rank 0" in names and any(name.startswith("graph 0") for name in names)


def test_what_is_too_much_is_left_out_and_said(nan_dump: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(perfetto, "MOST_OPERATORS", 3)
    written, _ = export(nan_dump, "perfetto", tmp_path / "x.json")
    assert len(events(tmp_path / "x.json", "X")) == 3 and "Left out: the last" in written.notes[1]


def test_hostile_names_stay_text(hostile_dump: Path, tmp_path: Path) -> None:
    export(hostile_dump, "perfetto", tmp_path / "x.json")
    slices = events(tmp_path / "x.json", "X")
    assert len(slices) >= len(HOSTILE)
    assert not any(ord(letter) < 32 or letter == "\u202e" for one in slices for letter in one["name"])

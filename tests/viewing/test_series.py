"""Tensors over iterations and over ranks: each number is that of its step."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from msdump.analysis.overview.contents import Contents
from msdump.viewing import series
from msdump.viewing.pages import Pages
from tests.analysis.small_dump import floats, write_dump

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
    monkeypatch.setattr(series, "MAX_CELLS", 6)
    trend = Pages(Contents(dump)).get("trend/3/0")
    assert trend["left_out"] == 1 and trend["tensors"]["name"] == ["Net/Add-op0", "Net/Div-op2"]

"""The files that describe a graph, for engines that write none of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from msdump.dumpers.recorders import GraphFilesDumper
from msdump.dumpers.tally import Tally
from msdump.formats.paths.sync import SyncPaths
from tests.dumpers.test_streaming import chain


def test_three_files_that_others_may_only_read(tmp_path: Path) -> None:
    graph, tally = chain(2, 3).graph, Tally()
    assert list(GraphFilesDumper(SyncPaths(tmp_path, 0, "Net"), tally).on_graph(graph)) == [0, 0]
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert sorted(path.suffix for path in files) == [".csv", ".ir", ".pb"]
    assert {path.stat().st_mode & 0o777 for path in files} == {0o400}
    assert tally.error == ""


def test_after_a_failure_no_graph_is_written(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    graph, tally = chain(1, 3).graph, Tally()
    (tmp_path / "rank_0").write_text("in the way")
    dumper = GraphFilesDumper(SyncPaths(tmp_path, 0, "Net"), tally)
    assert list(dumper.on_graph(graph)) == [0]
    assert "rank_0" in tally.error and len(caplog.records) == 1
    (tmp_path / "rank_0").unlink()
    assert list(dumper.on_graph(graph)) == [0]
    assert not list(tmp_path.iterdir()) and len(caplog.records) == 1

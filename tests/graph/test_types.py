"""How a line of a script is named in text."""

from __future__ import annotations

from pathlib import Path

import pytest

from msdump.graph.types import SourceLine


def test_a_line_below_the_working_folder_is_named_from_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    below, beside = tmp_path / "work" / "net.py", tmp_path / "workshop.py"
    below.parent.mkdir()
    monkeypatch.chdir(below.parent)
    assert str(SourceLine(str(below), 3, "x = 1")) == "net.py:3"
    assert str(SourceLine(str(beside), 3, "x = 1")) == f"{beside}:3"
    assert str(SourceLine("net.py", 3, "x = 1")) == "net.py:3"


def test_a_line_is_named_as_it_is_where_the_working_folder_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone() -> str:
        raise FileNotFoundError

    monkeypatch.setattr("os.getcwd", gone)
    assert str(SourceLine(str(tmp_path / "net.py"), 3, "x = 1")) == f"{tmp_path}/net.py:3"

"""The state of a process that has compiled nothing yet."""

from __future__ import annotations

import pytest

from msdump.mindspore import compiler


def as_first_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the next graph that is compiled have number 0, as in a process of its own."""
    monkeypatch.setattr(compiler, "_next_graph_id", 0)

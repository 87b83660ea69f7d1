"""Each test compiles anew."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def nothing_compiled() -> Iterator[None]:
    from msdump.torchair.ranks import rank_folders

    yield
    rank_folders.reset_for_tests()
    if sys.modules.get("torch") is not None:
        sys.modules["torch"]._dynamo.reset()


@pytest.fixture
def own_dump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A process of its own, as far as dumps go, that runs in the test's folder."""
    from msdump.process import sessions

    monkeypatch.chdir(tmp_path)
    sessions.reset_for_tests()
    yield
    sessions.close_all()
    sessions.reset_for_tests()

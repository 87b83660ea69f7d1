"""One session for each process: whichever thread opens it first."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from msdump import opening
from msdump.engine import GraphSession
from tests.threads import run_at_once


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A process with a dump; the folder that it goes to."""
    common = {
        "dump_mode": 0, "path": str(tmp_path / "dump"), "net_name": "Net", "iteration": "all", "saved_data": "tensor",
        "input_output": 0, "kernels": [], "support_device": [0], "op_debug_mode": 0, "file_format": "npy",
    }  # fmt: skip
    (tmp_path / "dump.json").write_text(json.dumps({"common_dump_settings": common}))
    monkeypatch.setenv("MINDSPORE_DUMP_CONFIG", str(tmp_path / "dump.json"))
    return tmp_path / "dump"


OPENERS: dict[str, Callable[[], GraphSession | None]] = {
    "mindspore": lambda: opening.open_mindspore("CPU", 0),
    "torch": lambda: opening.open_torch(None, 0, ()),
}


@pytest.mark.parametrize("frontend", OPENERS)
def test_threads_that_compile_first_open_one_session(frontend: str, configured: Path) -> None:
    opened: list[GraphSession | None] = []
    run_at_once([lambda: opened.append(OPENERS[frontend]())] * 8)
    assert len(opened) == 8 and len(set(map(id, opened))) == 1
    assert opened[0] is opening.current() is not None
    assert len(list(configured.iterdir())) == 1  # folders of one time


def test_numbers_of_runs_are_given_once(configured: Path) -> None:
    opened = opening.open_mindspore("CPU", 0)
    assert opened is not None
    numbers: list[int] = []
    run_at_once([lambda: numbers.extend(opened.next_iteration() for _ in range(500))] * 4)
    assert sorted(numbers) == list(range(2000))

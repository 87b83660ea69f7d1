"""How a process was started: as Python was given it, noted by msdump, and as a value that may come from a stranger."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msdump.process.command import (
    ACL_RUN,
    OUTSIDE,
    PYTHON,
    RUN,
    SCRIPT,
    UNKNOWN,
    Command,
    command_as_value,
    command_from_value,
    current,
    note,
    noted,
)

ROOT = Path(__file__).parents[2]
PRINTS = "import json; from msdump.process.command import *; print(json.dumps(command_as_value(current())))\n"


def seen(folder: Path, *words: str, **environment: str) -> Command | None:
    kept = {name: value for name, value in os.environ.items() if name != "WORLD_SIZE"}
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**kept, "PYTHONPATH": str(ROOT), **environment},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return command_from_value(json.loads(done.stdout))


def test_what_python_was_given(tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text(PRINTS)
    (tmp_path / "p").mkdir()
    (tmp_path / "p/__main__.py").write_text(PRINTS)
    folder = os.path.realpath(tmp_path)
    assert seen(tmp_path, "s.py", "--n", "a b") == Command(PYTHON, (), ("s.py", "--n", "a b"), folder)
    assert seen(tmp_path, "-m", "s", "3") == Command(PYTHON, (), ("-m", "s", "3"), folder)
    assert seen(tmp_path, "-m", "p", "3") == Command(PYTHON, (), ("-m", "p", "3"), folder)
    assert seen(tmp_path, "-c", PRINTS) == UNKNOWN
    assert seen(tmp_path, "s.py", WORLD_SIZE="2") == UNKNOWN


def test_what_was_noted_comes_first() -> None:
    command = Command(RUN, ("--torch-eager",), ("s.py",), "/f")
    other = Command(ACL_RUN, (), ("net.onnx",), "/f")
    with noted(command):
        assert current() == command
        note(other)
        assert current() == other
    assert current() not in (command, other)


WAYS = st.lists(st.sampled_from([("--torch-eager",), ("--torch-backend", "msdump"), ("--as", "msprobe")]))
COMMANDS = st.builds(
    Command,
    st.sampled_from([RUN, ACL_RUN, PYTHON]),
    WAYS.map(lambda ways: tuple(word for way in ways for word in way)),
    st.lists(st.text()).map(tuple),
    st.text(),
    st.sampled_from([OUTSIDE, SCRIPT]),
)


@given(COMMANDS)
def test_a_value_is_read_back(command: Command) -> None:
    assert command_from_value(json.loads(json.dumps(command_as_value(command)))) == command


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"entry": "rm"},
        {"options": ["--config", "/evil.json"]},
        {"options": ["--torch-eager=1"]},
        {"options": ["--torch-backend"]},
        {"options": ["--torch-backend", "--config"]},
        {"options": "--torch-eager"},
        {"target": "s.py"},
        {"target": [1]},
        {"folder": None},
        {"configuration": "theirs"},
    ],
)
def test_another_value_is_none(change: dict[str, object]) -> None:
    value = command_as_value(Command(RUN, ("--torch-eager",), ("s.py",), "/f"))
    assert command_from_value(value) is not None
    assert command_from_value({**value, **change}) is None
    assert command_from_value([value]) is None

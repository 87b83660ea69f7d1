"""steps.json: what is written is what is read, and the sentence about it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msdump.errors import FormatError
from msdump.formats.dump_dir import DumpDir
from msdump.formats.steps_json import OptimizerSteps, TrainingSteps, read_steps, write_steps
from tests.analysis.small_dump import floats, write_dump

OPTIMIZERS = st.builds(
    lambda name, steps, first, more: OptimizerSteps(name, steps, first, first + more),
    st.sampled_from(["SGD", "Adam<b>"]),
    st.integers(1, 9),
    st.integers(0, 9),
    st.integers(0, 9),
)


@given(st.builds(TrainingSteps, st.integers(0, 1 << 40), st.lists(OPTIMIZERS, max_size=5).map(tuple)))
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, steps: TrainingSteps) -> None:
    folder = tmp_path_factory.mktemp("steps")
    write_steps(folder, TrainingSteps(1, ()))
    write_steps(folder, steps)
    assert read_steps(folder / "steps.json") == steps
    assert (steps.text == "") == all(each.iterations_per_step == 1 for each in steps.optimizers)


@pytest.mark.parametrize(
    ("optimizers", "text"),
    [
        ([], ""),
        ([OptimizerSteps("SGD", 3, 0, 2), OptimizerSteps("Adam", 1, 0, 0)], ""),
        ([OptimizerSteps("SGD", 3, 3, 11)], "4 for each step of SGD"),
        ([OptimizerSteps("SGD", 1, 3, 3)], "4 for each step of SGD"),
        (
            [OptimizerSteps("Adam", 3, 0, 4), OptimizerSteps("Adam", 3, 1, 5)],
            "2 for each step of each of 2 optimizers Adam",
        ),
        (
            [OptimizerSteps("Adam", 5, 0, 5), OptimizerSteps("SGD", 1, 5, 5)],
            "1.25 for each step of Adam, 6 for each step of SGD",
        ),
        (
            [OptimizerSteps(f"Kind{n}", 2, 0, n + 2) for n in range(6)],
            ", ".join(f"{n + 2} for each step of Kind{n}" for n in range(4)) + " and 2 more",
        ),
    ],
)
def test_the_sentence(optimizers: list[OptimizerSteps], text: str) -> None:
    said = TrainingSteps(12, tuple(optimizers)).text
    assert said == (f"iterations per optimizer step: {text}" if text else "")


GOOD = {"version": 1, "iterations": 4, "optimizers": [{"name": "SGD", "steps": 2, "first": 1, "last": 3}]}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "expected JSON"),
        ([], "expected an object of version 1, got list"),
        ({**GOOD, "version": 2}, "got 2"),
        ({**GOOD, "optimizers": 3}, "optimizers: expected a list"),
        ({**GOOD, "iterations": True}, "iterations: expected an integer"),
        ({**GOOD, "optimizers": [3]}, r"optimizers\[0\]: expected an object with a name"),
        ({**GOOD, "optimizers": [{"name": "x" * 201}]}, "expected an object with a name"),
        ({**GOOD, "optimizers": [{"name": "SGD", "steps": 0, "first": 0, "last": 0}]}, "expected a step"),
        ({**GOOD, "optimizers": [{"name": "SGD", "steps": 1, "first": 1, "last": 0}]}, "expected a step"),
        ({**GOOD, "optimizers": [{"name": "SGD", "steps": 1, "first": -1, "last": 0}]}, "first: expected an integer"),
    ],
)
def test_a_damaged_file_says_where(content: Any, words: str, tmp_path: Path) -> None:
    path = tmp_path / "steps.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(FormatError, match=words):
        read_steps(path)
    path.unlink()
    with pytest.raises(FormatError):
        read_steps(path)


def test_a_dump_has_those_of_its_ranks(tmp_path: Path) -> None:
    for rank in range(3):
        write_dump(tmp_path, [("Default/ReLU-op0", {("output", 0): floats(1)})], rank=rank)
    steps = TrainingSteps(4, (OptimizerSteps("SGD", 2, 1, 3),))
    for rank in (0, 1):
        write_steps(tmp_path / f"rank_{rank}/.dump_metadata", steps)
    path = tmp_path / "rank_1/.dump_metadata/steps.json"
    path.chmod(0o600)
    path.write_text("{")
    dump = DumpDir.open(tmp_path)
    assert dump.training_steps == {0: steps}
    assert [file for file, _ in dump.damaged] == [str(path)]
    with pytest.raises(FormatError):
        _ = DumpDir.open(tmp_path, strict=True).training_steps

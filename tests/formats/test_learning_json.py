"""learning.json: what is written is what is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from msdump.errors import FormatError
from msdump.formats.dump_dir import DumpDir
from msdump.formats.learning_json import (
    Cut,
    GradientSpan,
    Learning,
    LearningOptimizer,
    LearningParameter,
    Stray,
    read_learning,
    write_learning,
)
from tests.analysis.small_dump import floats, write_dump

SPANS = (GradientSpan(0, True, False), GradientSpan(3, True, True, 1, "Gradients/Default/aten.mm.default-op0", 0))
LEARNING = Learning(
    ((0, 3), (5, 5)),
    (
        LearningParameter("fc.weight", "float32", (2, 3), 0, SPANS, 3),
        LearningParameter("fc.bias", "int8", (), None, ()),
    ),
    (
        LearningOptimizer(
            "SGD", ((0, 0.1), (2, 0.0)), ((0, 5),), (), ((4, 3), ()), ((1, 1),), 2, 3, "train.py", 9, "step()"
        ),
    ),
    (Cut(0, "Default/aten.detach.default-op0", "detach"),),
    (Stray(0, "Default/aten.t.default-op0", (3,), False),),
    ((0, 1),),
)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    write_learning(tmp_path, Learning((), (), ()))
    write_learning(tmp_path, LEARNING)
    assert read_learning(tmp_path / "learning.json") == LEARNING


def test_what_older_files_do_not_tell(tmp_path: Path) -> None:
    path = tmp_path / "learning.json"
    path.write_text(json.dumps({**GOOD, "parameters": [PARAMETER]}))
    learning = read_learning(path)
    assert learning.trainings is None and learning.parameters[0].since == 0


def test_what_is_true_of_an_iteration() -> None:
    row = LEARNING.parameters[0]
    assert [row.at(iteration) for iteration in (0, 2, 3, 9)] == [SPANS[0], SPANS[0], SPANS[1], SPANS[1]]
    assert LEARNING.parameters[1].at(5) is None


GOOD = json.loads(
    json.dumps({"version": 1, "backwards": [], "parameters": [], "optimizers": [], "cuts": [], "strays": []})
)
PARAMETER = {"name": "w", "dtype": "float32", "shape": [2], "optimizer": None, "spans": []}
SPAN = {"first": 0, "asks": True, "has": True, "graph": 1, "operator": "x", "slot": 0}
OPTIMIZER = {
    "name": "SGD",
    "rates": [],
    "steps": [],
    "skipped": [],
    "outside": [],
    "empty": [],
    "kept": 0,
    "cleared": 0,
    "path": "",
    "line": 0,
    "code": "",
}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "expected JSON"),
        ([], "expected an object of version 1, got list"),
        ({**GOOD, "version": 2}, "got 2"),
        ({**GOOD, "backwards": [[2, 1]]}, "backwards: expected pairs of a first and a last iteration"),
        ({**GOOD, "trainings": 3}, "trainings: expected a list"),
        ({**GOOD, "backwards": 3}, "backwards: expected a list"),
        ({**GOOD, "parameters": [3]}, "parameters: expected objects"),
        ({**GOOD, "parameters": [{**PARAMETER, "name": 3}]}, r"parameters\[0\], name: expected text"),
        ({**GOOD, "parameters": [{**PARAMETER, "shape": [-1]}]}, "shape: expected sizes"),
        ({**GOOD, "parameters": [{**PARAMETER, "optimizer": True}]}, "optimizer: expected an integer"),
        ({**GOOD, "parameters": [{**PARAMETER, "spans": [{**SPAN, "has": 1}]}]}, "has: expected true or false"),
        ({**GOOD, "optimizers": [{**OPTIMIZER, "rates": [[0, "x"]]}]}, "rates: expected pairs of an iteration and"),
        ({**GOOD, "optimizers": [{**OPTIMIZER, "outside": [3]}]}, "outside: expected sizes"),
    ],
)
def test_a_damaged_file_says_where(content: Any, words: str, tmp_path: Path) -> None:
    path = tmp_path / "learning.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(FormatError, match=words):
        read_learning(path)
    path.unlink()
    with pytest.raises(FormatError):
        read_learning(path)


def test_a_dump_has_those_of_its_ranks(tmp_path: Path) -> None:
    for rank in range(2):
        write_dump(tmp_path, [("Default/ReLU-op0", {("output", 0): floats(1)})], rank=rank)
        write_learning(tmp_path / f"rank_{rank}/.dump_metadata", LEARNING)
    path = tmp_path / "rank_1/.dump_metadata/learning.json"
    path.chmod(0o600)
    path.write_text("{")
    dump = DumpDir.open(tmp_path)
    assert dump.learning == {0: LEARNING} and [file for file, _ in dump.damaged] == [str(path)]

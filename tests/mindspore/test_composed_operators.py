"""Functions, layers and optimizers are made of the operators that MindSpore dumps for them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import msdump.mindspore as ms
from tests.mindspore.conftest import execution_order
from tests.mindspore.networks import graphs_of
from tests.reference.composed_operators import PROGRAMS, Runner, write_cells

pytest.importorskip("torch")

GOLDEN = Path(__file__).parents[1] / "golden"
MEASURED: dict[str, dict[str, str]] = json.loads(
    (GOLDEN / "mindspore_composed_operators.json").read_text(encoding="utf-8")
)
_LINES = (GOLDEN / "mindspore_composed_differences.txt").read_text(encoding="utf-8").splitlines()
DIFFERENT = {tuple(line.split(" ", 1)) for line in _LINES if line[0] not in "#["}
COMPATIBILITY = (Path(__file__).parents[2] / "docs" / "compatibility.md").read_text(encoding="utf-8")
# The default release is like 2.7.0 here.
RELEASES = {"2.7": "2.3", "2.0": "2.0"}
# MindSpore 2.0 fuses products, shows no views, and casts constants when the graph runs.
FUSED = {"MatMulBiasAddFusion": ("MatMul", "BiasAdd"), "MatMulBiasAddReluFusion": ("MatMul", "BiasAdd", "ReLU")}
UNSEEN = {"2.7": set(), "2.0": {"Reshape", "ExpandDims", "Squeeze", "Flatten", "Cast", "TensorMove"}}


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Runner:
    path = tmp_path_factory.mktemp("programs") / "programs.py"
    return Runner(write_cells(str(path), "msdump.mindspore"))


def _counts(op_types: list[str], measured: str) -> Counter[str]:
    if measured == "2.0":
        op_types = [part for op_type in op_types for part in FUSED.get(op_type, (op_type,))]
    return Counter(op_type for op_type in op_types if op_type not in UNSEEN[measured])


def _own(cell: Any, measured: str) -> Counter[str]:
    op_types = [node.op_type for graph in graphs_of(cell) for node in graph.kernels]
    return _counts(op_types, measured)


@pytest.mark.parametrize("measured", RELEASES)
@pytest.mark.parametrize("number", range(len(PROGRAMS)), ids=[program.text for program in PROGRAMS])
def test_operators_are_those_of_the_release(
    number: int, measured: str, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gradients as in 2.7: those of 2.0 are not followed."""
    monkeypatch.setenv("MSDUMP_MINDSPORE_VERSION", RELEASES[measured])
    ms.set_context(mode=ms.GRAPH_MODE)
    text, rows = PROGRAMS[number].text, MEASURED[measured]
    runs: list[tuple[str, Callable[[int], Any]]] = [(text, runner.forward)]
    runs += [(f"gradient of {text}", runner.backward)] if measured == "2.7" else []
    for name, run in runs:
        if name == text or name in rows:
            own = _own(run(number), measured)
        if name in rows:
            expected = _counts(rows[name].split(), measured)
            # A line of the list of differences goes when its program does as MindSpore.
            assert own != expected if (measured, name) in DIFFERENT else own == expected, name


def test_differences_are_few_and_name_programs() -> None:
    for measured, name in DIFFERENT:
        assert name in MEASURED[measured]
    row = next(line for line in COMPATIBILITY.splitlines() if line.startswith("| operators of composed functions"))
    for reason in (line.strip("[]") for line in _LINES if line.startswith("[")):
        assert reason in row
    assert len(DIFFERENT) < 0.2 * sum(map(len, MEASURED.values()))


def test_a_dump_lists_the_operators_of_cross_entropy(sync_dump: Callable[..., Path], runner: Runner) -> None:
    root = sync_dump()
    ms.set_context(mode=ms.GRAPH_MODE)
    number = next(number for number, each in enumerate(PROGRAMS) if each.text.startswith("nn.CrossEntropyLoss"))
    runner.forward(number)
    dumped = [name.rpartition("/")[2] for name in execution_order(root)]
    assert Counter(dumped) == Counter(MEASURED["2.7"][PROGRAMS[number].text].split())
    assert len(dumped) == 26 and "LogSoftmax" not in dumped

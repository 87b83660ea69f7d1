"""Both front ends run every scenario: a dump holds its operators and changes no bit of forward, loss or gradients."""

from __future__ import annotations

import functools
import operator
import re
from pathlib import Path
from typing import Any

import pytest

import msdump.torchair as torchair

torch = pytest.importorskip("torch")

from msdump.formats.paths.torchair import TorchairFileName, parse_torchair_name  # noqa: E402
from msdump.frontends.torch import backend  # noqa: E402
from msdump.process import sessions  # noqa: E402
from tests.frontends.torch.dumping import close, configure, tensors  # noqa: E402
from tests.frontends.torch.scenarios import (  # noqa: E402
    SCENARIOS,
    Scenario,
    assert_same_training,
    eagerly,
    quiet,
    results_of,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
    # torch's own, where the second part of a broken graph begins with what the first one made.
    pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf"),
]

each = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name.replace(" ", "_"))
fresh = pytest.fixture(autouse=True)(quiet)


@functools.cache
def without_dump(scenario: Scenario) -> tuple[list[Any], list[Any]]:
    """Results of the same graphs, which both front ends run operator by operator, without observers; and of eager."""

    def compiled(function: Any, **options: Any) -> Any:
        return torch.compile(function, backend=backend, **options)

    return results_of(scenario, compiled), results_of(scenario, eagerly)


@each
def test_mindspores_form(scenario: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def compiled(function: Any, **options: Any) -> Any:
        return torch.compile(function, backend=backend, **options)

    plain, eager = without_dump(scenario)
    sessions.reset_for_tests()
    root = configure(tmp_path, monkeypatch)
    dumped = results_of(scenario, compiled)
    report = close()
    assert report.error is None
    # The reserve of a normalisation in evaluation has no elements.
    assert set(report.skipped) <= {"empty tensor"}
    assert_same_training(scenario, plain, dumped, eager)
    found = {name for folder in root.glob("rank_0/Net/*/*") for name, _, _ in tensors(folder)}
    assert {re.sub(r"-op[0-9]+$", "", name) for name in found} >= scenario.operators


def expected_files(node: Any) -> set[tuple[str, int | str, int | None]]:
    """(io, slot, element) of every file that a node leaves, by its arguments and what it is known to make."""

    def is_tensor(value: Any) -> bool:
        return isinstance(value, torch.fx.Node) and isinstance(value.meta.get("val"), torch.Tensor)

    places: set[tuple[str, int | str, int | None]] = set()
    for slot, value in (*enumerate(node.args), *node.kwargs.items()):
        if isinstance(value, (list, tuple)) and any(map(is_tensor, value)):
            places |= {("INPUT", slot, element) for element in range(len(value))}
        else:
            places.add(("INPUT", slot, None))
    made = node.meta["val"]
    count = len(made) if isinstance(made, (list, tuple)) else 1
    return places | {("OUTPUT", slot, None) for slot in range(count)}


@each
def test_torchairs_form(scenario: Scenario, tmp_path: Path) -> None:
    graphs: list[dict[str, Any]] = []

    def collect(node: Any) -> Any:
        if not graphs or graphs[-1]["graph"] is not node.graph:
            graphs.append({"graph": node.graph, "nodes": {}})
        is_operator = node.op == "call_function" and node.target is not operator.getitem
        if is_operator:
            graphs[-1]["nodes"][node.name] = (str(node.target), expected_files(node))
        return node

    config = torchair.CompilerConfig()
    config.debug.data_dump.type = "npy"
    config.debug.data_dump.path = tmp_path
    config.debug.data_dump.filter = collect

    def compiled(function: Any, **options: Any) -> Any:
        return torch.compile(function, backend=torchair.get_npu_backend(compiler_config=config), **options)

    plain, eager = without_dump(scenario)
    dumped = results_of(scenario, compiled)
    assert_same_training(scenario, plain, dumped, eager)

    (rank,) = tmp_path.iterdir()
    assert rank.name == "worldsize1_global_rank0"
    folders = sorted(rank.iterdir(), key=lambda folder: int(folder.name.removeprefix("graph_")))
    with_operators = [graph["nodes"] for graph in graphs if graph["nodes"]]
    assert len(folders) == len(with_operators)
    for folder, nodes in zip(folders, with_operators, strict=True):
        steps = sorted(int(step.name) for step in folder.iterdir())
        assert steps == list(range(len(steps)))
        for step in folder.iterdir():
            names = [parse_torchair_name(file.name) for file in step.iterdir()]
            found: dict[str, set[Any]] = {}
            stamps: dict[str, set[int]] = {}
            for name in names:
                assert isinstance(name, TorchairFileName)
                found.setdefault(name.node, set()).add((name.io, name.slot, name.element))
                stamps.setdefault(name.node, set()).add(name.timestamp_us)
                target = nodes[name.node][0]
                assert name.target == target or target.startswith("<built-in function")
            assert found == {name: places for name, (_, places) in nodes.items()}
            assert all(len(times) == 1 for times in stamps.values())
    targets = {target for nodes in with_operators for target, _ in nodes.values()}
    assert targets >= scenario.operators

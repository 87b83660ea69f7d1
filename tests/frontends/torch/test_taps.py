"""Taps show what operators read and wrote in a graph that a compiler runs, and change nothing of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from msdump.frontends.torch import backend, inductor_backend  # noqa: E402
from msdump.frontends.torch.compiled_graph import compile_graph  # noqa: E402
from msdump.frontends.torch.program import FxProgram  # noqa: E402
from msdump.process import sessions  # noqa: E402
from tests.frontends.torch.dumping import close, configure, one, rows, tensors  # noqa: E402
from tests.frontends.torch.scenarios import SCENARIOS, Scenario, quiet, results_of  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf"),
]

# Reads what `new_empty_strided` gives, and writes it over.
UNFILLED = {("aten.copy.default-op1", "input")}

each = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name.replace(" ", "_"))
fresh = pytest.fixture(autouse=True)(quiet)
has_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="Inductor needs a C++ compiler")


def by_interpreter(module: Any) -> Callable[[list[Any]], Any]:
    """A compiler that fuses nothing."""
    return FxProgram(module).run


def tapped(module: Any, inputs: Any, **options: Any) -> Callable[..., Any]:
    return compile_graph(module, inputs, inner=by_interpreter, **options)


def dumped(
    scenario: Scenario, chosen: Any, folder: Path, patch: pytest.MonkeyPatch, **settings: Any
) -> tuple[list[Any], Path]:
    """Results of a scenario, and the folder of its dump."""
    folder.mkdir()
    sessions.reset_for_tests()
    root = configure(folder, patch, **settings)
    results = results_of(scenario, lambda function, **options: torch.compile(function, backend=chosen, **options))
    report = close()
    assert report.error is None
    assert set(report.skipped) <= {"empty tensor"}
    return results, root


def arrays(root: Path) -> dict[tuple[str, tuple[str, str, int]], tuple[str, Any, bytes]]:
    """(folder, name of the tensor) -> its dtype, shape and bytes; no bytes of memory that no operator has filled."""
    return {
        (str(folder.relative_to(root)), name): (
            str(array.dtype),
            array.shape,
            b"" if name[:2] in UNFILLED or name[0].startswith("aten.new_empty") else array.tobytes(),
        )
        for folder in sorted(root.glob("rank_0/Net/*/*"))
        for name, array in tensors(folder).items()
    }


@each
def test_the_dump_is_that_of_operators_one_by_one(
    scenario: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, one_by_one = dumped(scenario, backend, tmp_path / "one", monkeypatch)
    results, through_taps = dumped(scenario, tapped, tmp_path / "taps", monkeypatch)
    assert all(torch.equal(first, second) for first, second in zip(expected, results, strict=True))
    golden = arrays(one_by_one)
    assert golden
    assert arrays(through_taps) == golden


def test_the_asynchronous_dump_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = next(each for each in SCENARIOS if each.name == "views")
    settings: dict[str, Any] = {"is_sync": False, "saved_data": "full"}
    _, one_by_one = dumped(scenario, backend, tmp_path / "one", monkeypatch, **settings)
    _, through_taps = dumped(scenario, tapped, tmp_path / "taps", monkeypatch, **settings)
    golden, found = (
        [
            replace(row, timestamp_us=0)
            for path in sorted(root.rglob("statistic.csv"), key=lambda path: path.parts[-4:])
            for row in sorted(rows(path.parent), key=lambda row: (row.op_name, row.io, row.slot))
        ]
        for root in (one_by_one, through_taps)
    )
    assert golden
    assert found == golden


def test_only_what_is_selected_has_taps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = configure(tmp_path, monkeypatch, dump_mode=1, kernels=["relu"], input_output=0)
    counts = []

    def counted(module: Any) -> Callable[[list[Any]], Any]:
        taps = [node for node in module.graph.nodes if node.target is torch.ops.msdump.tap.default]
        counts.append(len(taps))
        return by_interpreter(module)

    def chosen(module: Any, inputs: Any) -> Callable[..., Any]:
        return compile_graph(module, inputs, inner=counted)

    x = torch.linspace(-1, 1, 6)
    compiled = torch.compile(lambda x: (x * 2).relu().sin().exp(), backend=chosen)
    assert torch.equal(compiled(x), (x * 2).relu().sin().exp())
    close()
    assert counts == [2]
    (folder,) = root.glob("rank_0/Net/0/0")
    assert np.array_equal(one(folder, "relu", "input"), (x * 2).numpy())
    assert np.array_equal(one(folder, "relu"), (x * 2).relu().numpy())
    assert {name.rpartition("-")[0] for name, _, _ in tensors(folder)} <= {"aten.relu.default", "Parameter", ""}


def test_a_compiler_that_drops_taps_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(tmp_path, monkeypatch)

    def dropping(module: Any) -> Callable[[list[Any]], Any]:
        for node in list(module.graph.nodes):
            if node.target is torch.ops.msdump.tap.default:
                node.replace_all_uses_with(node.args[0])
                module.graph.erase_node(node)
        return by_interpreter(module)

    compiled = torch.compile(torch.sin, backend=lambda *args: compile_graph(*args, inner=dropping))
    assert torch.equal(compiled(torch.ones(2)), torch.ones(2).sin())
    assert close().skipped["tensor that the compiled graph did not show"] == 1


def test_a_run_that_raises_is_reported_and_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(tmp_path, monkeypatch)
    is_broken = [True]

    def failing(module: Any) -> Callable[[list[Any]], Any]:
        run = by_interpreter(module)

        def raise_first(args: list[Any]) -> Any:
            if is_broken:
                raise ZeroDivisionError("a kernel")
            return run(args)

        return raise_first

    compiled = torch.compile(torch.sin, backend=lambda *args: compile_graph(*args, inner=failing))
    with pytest.raises(ZeroDivisionError, match="a kernel"):
        compiled(torch.ones(2))
    is_broken.clear()
    assert torch.equal(compiled(torch.ones(2)), torch.ones(2).sin())
    report = close()
    assert report.skipped["run of a compiled graph that raised, with all of its tensors"] == 1
    assert report.tensors_written > 0


@pytest.mark.slow
@has_compiler
@each
def test_inductors_training_stays_as_it_is(scenario: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels are cut where tensors are looked at, which may round otherwise."""
    plain = results_of(
        scenario, lambda function, **options: torch.compile(function, backend=inductor_backend, **options)
    )
    results, root = dumped(scenario, inductor_backend, tmp_path / "inductor", monkeypatch)
    for first, second in zip(plain, results, strict=True):
        torch.testing.assert_close(first.float(), second.float(), rtol=1e-2, atol=1e-2)
    assert arrays(root)

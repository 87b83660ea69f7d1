"""Runs of eager operators: which are shown, and what a dump says of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import msdump  # noqa: E402
from tests.frontends.torch.eager.test_watch import both_engines, config, names, pytestmark  # noqa: E402, F401


def test_operators_without_tensors_are_not_shown(tmp_path: Path) -> None:
    with msdump.watch(config=config(tmp_path)) as watch:
        x = torch.ones(3)
        with torch.profiler.record_function("mine"):
            x.sin()
        nodes = [node.full_name for graph in watch.graphs for node in graph.nodes]
    assert any("sin" in name for name in nodes) and not any("profiler" in name for name in nodes)
    report = watch.report()
    assert report is not None and report.operators_seen == len(nodes)


@both_engines
def test_the_script_may_catch_what_an_operator_raises(is_sync: bool, tmp_path: Path) -> None:
    with msdump.watch(config=config(tmp_path, is_sync)) as watch:
        x = torch.ones(3).exp()
        with pytest.raises(IndexError):
            x.index_select(0, torch.tensor([7]))
        x.sin()
    assert {"aten.exp.default-op0", "aten.sin.default-op0"} <= names(tmp_path, 0)
    report = watch.report()
    assert report is not None and not report.error and not report.lost


def test_operators_of_higher_order_run(tmp_path: Path) -> None:
    def chosen(x: Any) -> Any:
        return torch.cond(x.sum() > 0, lambda y: y.sin(), lambda y: y.cos(), (x,))

    with msdump.watch(config=config(tmp_path)):
        result = chosen(torch.ones(3))
    assert torch.equal(result, torch.ones(3).sin())


def test_the_dump_holds_the_line_and_its_text(tmp_path: Path) -> None:
    with msdump.watch(None, config(tmp_path / "dump")):
        torch.log(torch.ones(3))  # the line that is looked for
    (row,) = (
        row for row in msdump.stat(tmp_path / "dump").rows if "log" in row.tensor.op_type and row.tensor.io == "output"
    )
    assert row.node is not None and row.node.own_line is not None
    assert Path(row.node.own_line.path).name == Path(__file__).name
    assert row.node.own_line.code.strip() == "torch.log(torch.ones(3))  # the line that is looked for"

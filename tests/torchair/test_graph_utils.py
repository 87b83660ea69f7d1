"""debug_compare_fx_graphs and debug_time: what a pass of a script leaves in the log."""

from __future__ import annotations

import importlib
import logging
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from msdump.torchair._utils.graph_utils import NodeCount, report  # noqa: E402

utils = importlib.import_module("msdump.torchair._utils.graph_utils")


def traced(function: Any) -> Any:
    return torch.fx.symbolic_trace(function)


def without_negation(module: Any) -> str:
    """A pass that takes every negation out."""
    for node in list(module.graph.nodes):
        if node.target is torch.neg:
            node.replace_all_uses_with(node.args[0])
            module.graph.erase_node(node)
    return "done"


@pytest.fixture
def debug_log(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> pytest.LogCaptureFixture:
    monkeypatch.setattr(logging.getLogger("torchair"), "propagate", True)
    caplog.set_level(logging.DEBUG, "torchair")
    return caplog


def messages(log: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in log.records if record.name == "torchair"]


@pytest.mark.parametrize("kind", ["decorator", "named decorator", "helper"])
def test_a_pass_says_what_it_changed(kind: str, debug_log: pytest.LogCaptureFixture) -> None:
    wrap = {
        "decorator": utils.debug_compare_fx_graphs(),
        "named decorator": utils.debug_compare_fx_graphs(pass_name="negations"),
        "helper": utils.debug_compare_fx_graphs,
    }[kind]
    assert wrap(without_negation)(traced(lambda x: torch.neg(torch.sin(x)))) == "done"
    (message,) = messages(debug_log)
    name = "negations" if kind == "named decorator" else "without_negation"
    first, cost, *lines = message.split("\n")
    assert first == f"After fx graph pass({name}) optimization:"
    assert cost.startswith("    cost ") and cost.endswith("s,")
    assert lines[:3] == ["    before 4 nodes, after 3 nodes,", "    removed nodes: ['neg'],", "    added nodes: [],"]


def test_the_tables_are_aligned_and_add_up() -> None:
    before = NodeCount.of(traced(lambda x: torch.neg(torch.sin(x))).graph)
    after = NodeCount.of(traced(lambda x: torch.sin(x)).graph)
    text = report("p", 0.5, before, after)
    assert "    cost 0.5000000000s,\n" in text
    lines = text.split("\n")
    table = lines[lines.index("    operations statistics:") + 1 : lines.index("    targets statistics:")]
    assert len({len(line) for line in table}) == 1
    assert [line.split() for line in table] == [
        ["name", "cnt(before)", "cnt(after)", "diff"],
        ["-" * 13, "-" * 11, "-" * 10, "-" * 4],
        ["total", "4", "3", "-1"],
        ["call_function", "2", "1", "-1"],
        ["output", "1", "1", "0"],
        ["placeholder", "1", "1", "0"],
    ]


def test_the_method_of_a_graph_is_a_pass(debug_log: pytest.LogCaptureFixture) -> None:
    module = traced(lambda x: (torch.neg(x), torch.sin(x))[1])
    utils.debug_compare_fx_graphs(module.graph.eliminate_dead_code, pass_name="dead")()
    assert "before 4 nodes, after 3 nodes" in messages(debug_log)[0]


def test_without_a_graph_nothing_is_compared(debug_log: pytest.LogCaptureFixture) -> None:
    assert utils.debug_compare_fx_graphs(lambda x: x + 1, pass_name="none")(1) == 2
    assert [record.levelname for record in debug_log.records if record.name == "torchair"] == ["WARNING"]


def test_above_debug_it_is_the_pass_alone(debug_log: pytest.LogCaptureFixture) -> None:
    debug_log.set_level(logging.INFO, "torchair")
    assert utils.debug_compare_fx_graphs(without_negation)(traced(lambda x: torch.sin(x))) == "done"
    assert utils.debug_time(len)([1]) == 1
    assert not messages(debug_log)


def test_a_phase_says_how_long_it_took(debug_log: pytest.LogCaptureFixture) -> None:
    @utils.debug_time(phase_name="counting")
    def count(values: list[int]) -> int:
        return len(values)

    assert count([1, 2]) == 2 and utils.debug_time(count)([1]) == 1
    assert "The operation of counting phase (function name: count) cost " in messages(debug_log)[0]

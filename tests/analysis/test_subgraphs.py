"""Questions to dumps of ONNX models whose work lies inside of If, Loop and Scan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnx

from msdump.analysis import compare_dumps, find_non_finite
from msdump.analysis.compare.report import short_name
from msdump.analysis.steps import Operator, inner_operators
from msdump.cli.main import main
from msdump.frontends.onnx import load_model
from tests.engine.acl_plans import make_dump
from tests.frontends.onnx.models import graph_of, model_of, recurrent, value

node = onnx.helper.make_node
FEEDS: dict[str, Any] = {"x": np.eye(2, dtype=np.float32), "count": np.array(3), "start": np.ones((2, 1), np.float32)}


def dumped(root: Path, proto: onnx.ModelProto, feeds: dict[str, Any], **keys: Any) -> Path:
    dump = make_dump(root, **{"dump_mode": "all", **keys})
    model = load_model(proto)
    model.watch(dump.observe_model(1, ["net"], model.originals))
    model.run(feeds)
    dump.close()
    return root


def labels(operators: Any) -> list[str]:
    """As the names of files spell them: those of statistics hold no others."""
    return [operator.label.replace("/", "_") for operator in operators]


def logarithms() -> onnx.ModelProto:
    """A loop takes the logarithm of a number that falls by one in each trip; behind it stands another operator."""
    body = graph_of(
        "body",
        [
            node("Sub", ["v", "one"], ["n"], "fall"),
            node("Log", ["n"], ["l"], "log"),
            node("Identity", ["c"], ["o"], "on"),
        ],
        [value("i", np.int64, []), value("c", np.bool_, []), value("v")],
        [value("o", np.bool_, []), value("n"), value("l")],
    )
    nodes = [node("Loop", ["four", "", "x"], ["y", "all"], "loop", body=body), node("Neg", ["all"], ["z"], "neg")]
    constants = {"four": np.array(4), "one": np.float32(1)}
    return model_of(nodes, [value("x", shape=[2])], [value("y"), value("z")], constants)


@pytest.mark.parametrize("data", ["tensor", "stats"])
def test_the_trip_that_makes_the_first_nan(data: str, tmp_path: Path) -> None:
    report = find_non_finite(dumped(tmp_path / "dump", logarithms(), {"x": np.float32([9, 3.5])}, dump_data=data))
    first = report.first_nan
    assert first is not None and report.first_inf is None
    assert labels([first.operator]) == ["loop_body_3_log"] and first.how == "made"
    assert labels(first.infected) == ["loop", "neg"]
    assert not first.also_made


@pytest.mark.parametrize("data", ["tensor", "stats"])
def test_a_healthy_loop_is_no_finding(data: str, tmp_path: Path) -> None:
    report = find_non_finite(dumped(tmp_path / "dump", logarithms(), {"x": np.float32([9, 8])}, dump_data=data))
    assert report.first is None and not report.benign


@pytest.mark.parametrize("is_made_inside", [True, False])
def test_a_mask_that_a_branch_ends_is_meant(is_made_inside: bool, tmp_path: Path) -> None:
    """What the If reads of it, the operators inside read: it loses nothing."""
    hide = node("Where", ["keep", "x", "low"], ["m"], "hide")
    inner = [node("Softmax", ["m"], ["s"], "softmax"), node("Mul", ["s", "x"], ["r"], "mul")]
    then = graph_of("t", [hide, *inner] if is_made_inside else inner, outputs=[value("r")])
    other = graph_of("e", [node("Neg", ["x"], ["q"], "neg")], outputs=[value("q")])
    nodes = [node("If", ["c"], ["y"], "choose", then_branch=then, else_branch=other), node("Abs", ["y"], ["z"], "abs")]
    model = model_of(
        nodes if is_made_inside else [hide, *nodes],
        [value("x", shape=[3]), value("keep", np.bool_, [3]), value("c", np.bool_, [])],
        [value("z")],
        {"low": np.full(3, -np.inf, np.float32)},
    )
    feeds = {"x": np.float32([1, 2, 3]), "keep": np.array([True, True, False]), "c": np.array(True)}
    report = find_non_finite(dumped(tmp_path / "dump", model, feeds))
    assert report.first is None
    assert [labels(benign.stops) for benign in report.benign] == [["choose_then_branch_softmax"]]


def test_a_branch_that_gives_a_mask_hands_it_on(tmp_path: Path) -> None:
    then = graph_of("t", [node("Log", ["x"], ["m"], "log")], outputs=[value("m")])
    other = graph_of("e", [node("Neg", ["x"], ["q"], "neg")], outputs=[value("q")])
    nodes = [node("If", ["c"], ["y"], "choose", then_branch=then, else_branch=other), node("Sqrt", ["y"], ["z"], "end")]
    model = model_of(nodes, [value("x", shape=[2]), value("c", np.bool_, [])], [value("z")])
    report = find_non_finite(dumped(tmp_path / "dump", model, {"x": np.float32([0, 2]), "c": np.array(True)}))
    assert report.first_inf is not None and report.first_nan is not None
    assert report.first_inf.operator.label == "choose/then_branch/log"
    assert labels(report.first_inf.infected) == ["choose", "end"]
    assert labels(report.first_nan.sources) == ["choose_then_branch_log"]


def test_an_operator_without_those_that_it_runs_is_the_finding(tmp_path: Path) -> None:
    root = dumped(tmp_path / "dump", logarithms(), {"x": np.float32([9, 3.5])}, dump_list=[{"layer": ["loop", "neg"]}])
    first = find_non_finite(root).first_nan
    assert first is not None and first.operator.label == "loop" and first.how == "made"


def test_trips_are_compared_with_equal_trips(tmp_path: Path) -> None:
    """The difference is in the constant of the body; the loop and what comes later only carry it on."""
    mine, golden = recurrent(), recurrent()
    (bias,) = (one for one in mine.graph.node[1].attribute[0].g.initializer if one.name == "b")
    bias.raw_data = np.array([[1], [2.5]], np.float32).tobytes()
    found = compare_dumps(dumped(tmp_path / "mine", mine, FEEDS), dumped(tmp_path / "golden", golden, FEEDS))
    pairs = [(one.pair.mine.label, one.pair.golden.label) for one in found.operators]
    assert len(pairs) == 3 + 6 * 3 + 2 and all(left == right for left, right in pairs)
    assert found.first_wrong is None
    assert found.first_differing is not None and found.first_differing.pair.mine.label == "loop/body/0/add"
    differing = [one.pair.mine.label for one in found.operators if not one.is_agreeing]
    assert "loop/body/0/mix" not in differing and "loop/body/2/mix" in differing and "loop" in differing


def test_the_operator_inside_is_wrong_and_not_the_one_that_runs_it(tmp_path: Path) -> None:
    def model(alpha: float) -> onnx.ModelProto:
        then = graph_of("t", [node("LeakyRelu", ["x"], ["r"], "leak", alpha=alpha)], outputs=[value("r")])
        other = graph_of("e", [node("Neg", ["x"], ["q"], "neg")], outputs=[value("q")])
        nodes = [node("If", ["c"], ["y"], "choose", then_branch=then, else_branch=other)]
        return model_of(nodes, [value("x", shape=[2]), value("c", np.bool_, [])], [value("y")])

    feeds = {"x": np.float32([-1, 2]), "c": np.array(True)}
    found = compare_dumps(dumped(tmp_path / "mine", model(0.1), feeds), dumped(tmp_path / "golden", model(0.2), feeds))
    assert [one.pair.mine.label for one in found.operators if one.is_wrong] == ["choose/then_branch/leak"]
    assert [one.pair.mine.label for one in found.operators if not one.is_agreeing][1:] == ["choose"]


def test_trips_that_one_side_alone_has_run(tmp_path: Path) -> None:
    more = {**FEEDS, "count": np.array(5)}
    found = compare_dumps(dumped(tmp_path / "mine", recurrent(), more), dumped(tmp_path / "golden", recurrent(), FEEDS))
    (step,) = found.steps
    assert {operator.label.split("/")[2] for operator in step.only_mine} == {"3", "4"}
    assert not step.only_golden


def test_commands_take_the_names_that_they_print(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = dumped(tmp_path / "dump", logarithms(), {"x": np.float32([9, 3.5])})
    assert main(["nan", str(root)]) == 1
    assert "loop/body/3/log (Log)" in capsys.readouterr().out
    assert main(["show", str(root), "loop/body/3/log"]) == 0
    assert "loop/body/3/log" in capsys.readouterr().out
    assert main(["zoom", str(root), "loop/body/3/log", "--path", str(tmp_path / "z"), "--acl"]) == 0
    (config,) = tmp_path.rglob("loop_body_3_log.json")
    assert json.loads(config.read_text())["dump"]["dump_list"][0]["layer"] == ["loop/body/3/log"]


def test_names_tell_which_operators_another_runs() -> None:
    named = {
        "loop": "Loop", "loop/body/0/a": "Add", "loop/body/0/if": "If", "loop/body/0/if/then_branch/b": "Neg",
        "loop/bodyguard": "Add", "loop_body_1_a": "Add", "other": "Loop", "add": "Add", "add/body/0/a": "Add",
    }  # fmt: skip
    operators = [Operator(op_type, name.rpartition("/")[2], name) for name, op_type in named.items()]
    assert inner_operators(operators) == {0: [1, 2, 3, 5], 2: [3]}
    assert [short_name(operator) for operator in operators[:4]] == [
        "loop", "loop/body/0/a", "loop/body/0/if", "loop/body/0/if/then_branch/b",
    ]  # fmt: skip
    assert short_name(Operator("Add", "Add", "net/body/layer/Add")) == "Add"

"""Operators in the subgraphs of an ONNX model are selected, dumped and counted like those of the model itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnx

from msdump.errors import ExecutionError
from msdump.formats.acl_stats_csv import read_acl_stats
from msdump.formats.dump_dir import DumpDir
from msdump.frontends.onnx import load_model
from tests.engine.acl_plans import Witness, make_dump, tensors
from tests.frontends.onnx.models import branches, graph_of, model_of, nested, recurrent, same_bits, value

node = onnx.helper.make_node
FEEDS: dict[str, Any] = {"x": np.eye(2, dtype=np.float32), "count": np.array(3), "start": np.ones((2, 1), np.float32)}
INSIDE = ("mix", "add", "number", "count", "sum", "test")


def of_trips(*names: str) -> set[str]:
    return {f"loop_body_{number}_{name}" for number in range(3) for name in names}


def dumped(root: Path, proto: onnx.ModelProto, feeds: dict[str, Any], **keys: Any) -> set[str]:
    """Names of the operators in the files of one run."""
    dump = make_dump(root, **keys)
    model = load_model(proto)
    model.watch(dump.observe_model(1, ["net"], model.originals))
    model.run(feeds)
    dump.close()
    assert not dump.error
    return {file.op_name for file in DumpDir.open(root).files()}


@pytest.mark.parametrize("proto", [recurrent(), nested()], ids=["loop", "nested"])
@pytest.mark.parametrize("mode", ["all", "input", "output"])
def test_every_run_of_every_operator_is_on_disk(proto: onnx.ModelProto, mode: str, tmp_path: Path) -> None:
    feeds = {spec.name: FEEDS[spec.name] for spec in proto.graph.input}
    if "start" not in feeds:
        feeds["x"] = np.float32([0.5, -2])
    dump, seen = make_dump(tmp_path / "dump", dump_mode=mode), Witness()
    model = load_model(proto, [*dump.observe_model(1, ["net"]), seen])
    for number in range(2):
        model.run({**feeds, "x": feeds["x"] + np.float32(number)})
    dump.close()
    found = tensors(tmp_path / "dump")
    inputs = {(run, name, io, 0) for run in (0, 1) for name in feeds for io in ("input", "output")}
    expected = {place for place in seen.found if mode in ("all", place[2])}
    assert {place for place in found if place not in inputs} == expected
    assert all(same_bits(found[place], seen.found[place]) for place in expected)
    report = dump.report()
    assert report.operators_seen == report.operators_selected == len(model.graph({}, 0).graph.kernels)
    assert report.iterations_run == report.iterations_dumped == 2
    assert report.files == len({place[:2] for place in found})


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"layer": ["loop/body/mix"]}, of_trips("mix") | {"start"}),
        ({"layer": ["loop/body/1/mix"]}, of_trips("mix") | {"start"}),
        ({"layer": ["mix"]}, of_trips("mix") | {"start"}),
        ({"layer": ["loop"]}, {"loop", "count", "start"}),
        ({"layer": ["add"]}, {"add", "x"}),
        ({"model_name": "net", "opname_range": [{"begin": "loop/body/sum", "end": "loop"}]},
         of_trips("sum", "test") | {"loop", "count", "start"}),
        ({"optype_blacklist": [{"name": "MatMul", "pos": ["output0"]}]},
         of_trips(*INSIDE) - of_trips("mix") | {"add", "loop", "x", "count", "start"}),
        ({"opname_blacklist": [{"name": "loop/body/add", "pos": ["output0"]}]},
         of_trips(*INSIDE) - of_trips("add") | {"add", "loop", "x", "count", "start"}),
    ],
)  # fmt: skip
def test_operators_are_selected(entry: dict[str, Any], expected: set[str], tmp_path: Path) -> None:
    """A name of the model comes before the same one in a subgraph; one run stands for all of them."""
    found = dumped(tmp_path / "dump", recurrent(), FEEDS, dump_list=[entry], dump_level="op")
    # Data that only a loop reads is handed to the loop.
    assert found - {"start"} == expected - {"start"}


def test_a_name_that_no_run_has_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    dumped(tmp_path / "dump", recurrent(), FEEDS, dump_list=[{"layer": ["loop/body/7/mix", "loop/body/mox"]}])
    assert 'the model has no operator loop/body/mox. Did you mean "loop/body/mix"' in caplog.text
    assert "loop/body/7/mix" not in caplog.text


@pytest.mark.parametrize("sign", [1, -1])
def test_data_that_only_a_branch_reads_are_dumped_with_each_branch(sign: int, tmp_path: Path) -> None:
    proto = branches()
    del proto.graph.node[0]  # `twice` is an input now
    proto.graph.input.append(value("twice", np.float32, [2, 300]))
    feeds = {"x": np.full((2, 300), sign, np.float32), "twice": np.ones((2, 300), np.float32)}
    inside = "choose_then_branch_t" if sign > 0 else "choose_else_branch_e"
    found = dumped(tmp_path / "dump", proto, feeds)
    assert found == {"x", "twice", "sum", "compare", inside, "choose"}


def test_statistics_of_each_run(tmp_path: Path) -> None:
    root = tmp_path / "dump"
    dump, seen = make_dump(root, dump_mode="output", dump_data="stats"), Witness()
    load_model(recurrent(), [*dump.observe_model(1, ["net"]), seen]).run(FEEDS)
    dump.close()
    rows = [row for _, path, name in DumpDir.open(root).statistic_dump_files() for row in read_acl_stats(path, name)]
    found = {row.op_name: row for row in rows if row.op_name.startswith("loop_body_") and row.dtype == "float32"}
    assert found.keys() == of_trips("mix", "add", "number", "count", "sum")
    for name, row in found.items():
        array = seen.found[0, name, "output", 0].astype(np.float64)
        assert [row.max, row.min] == [float(f"{number:g}") for number in (array.max(), array.min())]


def exploding(op_type: str) -> onnx.ModelProto:
    """A loop whose body grows, or reads from where there is nothing."""
    inner = node("Gather", ["v", "i"], ["n"], "grow") if op_type == "Gather" else node("Exp", ["v"], ["n"], "grow")
    body = graph_of(
        "body",
        [inner, node("Identity", ["c"], ["o"], "on"), node("Reshape", ["n", "shape"], ["r"], "shape")],
        [value("i", np.int64, []), value("c", np.bool_, []), value("v")],
        [value("o", np.bool_, []), value("r")],
        {"shape": np.array([-1])},
    )
    nodes = [node("Loop", ["five", "", "x"], ["y"], "loop", body=body), node("Neg", ["y"], ["z"], "neg")]
    return model_of(nodes, [value("x", shape=[2])], [value("z")], {"five": np.array(5)})


def test_an_overflow_is_that_of_the_operator_inside(tmp_path: Path) -> None:
    """What hands on its results has no overflow of its own."""
    dump = make_dump(tmp_path / "dump", dump_list=None, dump_debug="on")
    load_model(exploding("Exp"), dump.observe_model(4, ["net"])).run({"x": np.float32([1, 0])})
    dump.close()
    assert dump.report().overflows == ("loop/body/3/grow",)
    assert {file.op_name for file in DumpDir.open(tmp_path / "dump").files()} == {"loop_body_3_grow"}


def test_an_operator_that_raises_inside_is_dumped_once(tmp_path: Path) -> None:
    dump = make_dump(tmp_path / "dump", dump_list=None, dump_scene="aic_err_norm_dump")
    model = load_model(exploding("Gather"), dump.observe_model(4, ["net"]))
    with pytest.raises(ExecutionError, match="loop/body/grow"):
        model.run({"x": np.float32([1, 0])})
    dump.close()
    assert dump.report().overflows == ("loop/body/1/grow",)
    (file,) = (path for path in tmp_path.rglob("extra-info/**/*") if path.is_file())
    assert file.name.startswith("Gather.loop_body_1_grow.")


def test_a_watcher_says_what_it_cannot_save_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The memory of values inside of subgraphs is not in the arena: any iteration may bring another shape."""
    root = tmp_path / "dump"
    dump = make_dump(
        root, dump_scene="watcher", dump_mode="output", dump_list=[{"watcher_nodes": ["add", "loop/body/mix"]}]
    )
    model = load_model(recurrent(), dump.observe_model(1, ["net"]), has_arena=True)
    expected = load_model(recurrent()).run(FEEDS)
    assert all(same_bits(array, expected[name]) for name, array in model.run(FEEDS).items())
    dump.close()
    assert "loop/body/mix: only the data decide its shape" in caplog.text
    assert {file.op_name for file in DumpDir.open(root).files()} >= of_trips("mix") | {"add"}

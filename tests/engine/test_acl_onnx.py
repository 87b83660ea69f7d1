"""What AclDump writes of an ONNX model is, bit for bit, what onnxruntime computes; and the tree of each scene."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnx

from msdump.dumpers import streaming
from msdump.formats.acl_stats_csv import read_acl_stats
from msdump.formats.dump_dir import DumpDir
from msdump.formats.paths.acl import safe_piece
from msdump.frontends.onnx import load_model
from msdump.statistics.stats import measured_now
from msdump.tensors.arrays import Array
from tests.engine.acl_plans import make_dump, tensors, tree
from tests.frontends.onnx import models
from tests.frontends.onnx.models import same_bits, true_values


def feeds_of(name: str) -> list[dict[str, Any]]:
    rng = np.random.default_rng(1)
    if name == "convolutions":
        return [{"data": rng.standard_normal((batch, 3, 8, 8), np.float32)} for batch in (2, 2, 5)]
    if name == "branches":
        x = rng.standard_normal((2, 300), np.float32)
        return [{"x": x}, {"x": -x}]
    rows = rng.standard_normal((3, 2, 4), np.float32)
    return [{"x": rng.standard_normal((2, 4), np.float32), "rows": rows}]


def model_of(name: str) -> Any:
    return models.convolutions(np.random.default_rng(0)) if name == "convolutions" else getattr(models, name)()


def truth(proto: Any, feeds: dict[str, Any]) -> dict[tuple[str, str, int], Array]:
    """(operator, io, slot) -> what onnxruntime itself reads and makes there."""
    known = {**feeds, **true_values(proto, feeds)}
    known |= {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in proto.graph.initializer}
    expected: dict[tuple[str, str, int], Array] = {}
    for name, array in feeds.items():
        expected[name, "input", 0] = expected[name, "output", 0] = array
    for node in proto.graph.node:
        for io, operands in (("input", node.input), ("output", node.output)):
            for slot, operand in enumerate(filter(None, operands)):
                expected[safe_piece(node.name), io, slot] = known[operand]
    return expected


@pytest.mark.parametrize("name", ["convolutions", "branches", "optional_outputs"])
def test_every_tensor_is_the_one_of_onnxruntime(tmp_path: Path, name: str) -> None:
    proto = model_of(name)
    dump = make_dump(tmp_path / "dump", dump_mode="all")
    model = load_model(proto, dump.observe_model(3, [name, proto.graph.name]))
    runs = feeds_of(name)
    for feeds in runs:
        model.run(feeds)
    dump.close()
    found = tensors(tmp_path / "dump")
    for index, feeds in enumerate(runs):
        expected = truth(proto, feeds)
        here = {place[1:]: array for place, array in found.items() if place[0] == index}
        # Operands that an operator reads only inside of a branch come behind its own.
        captured = {place for place in here if place[0] == "choose" and place[1] == "input" and place[2] > 0}
        inside = {place for place in here if place[0].startswith("choose_")}
        assert here.keys() - captured - inside == expected.keys()
        for place in inside & {("choose_then_branch_t", "output", 0), ("choose_else_branch_e", "output", 0)}:
            assert same_bits(here[place], expected["choose", "output", 0])
        for place, array in expected.items():
            assert same_bits(here[place], array), (index, place)


def test_the_tree_and_the_statistics_of_a_model(tmp_path: Path) -> None:
    proto = model_of("convolutions")
    feeds = feeds_of("convolutions")[0]
    dump = make_dump(
        tmp_path / "dump",
        dump_list=[{"model_name": "small_cnn", "layer": ["stem/conv", "head"]}, {"layer": ["softmax"]}],
        dump_data="stats",
        dump_step="1",
    )
    model = load_model(proto, dump.observe_model(1, ["", "small_cnn"]))
    for _ in range(3):
        model.run(feeds)
    dump.close()
    assert tree(tmp_path / "dump") == [
        f"TIME/0/small_cnn/1/1/{name}.STAMP.csv"
        for name in ("Conv.stem_conv.0.0", "Data.data.0.0", "Gemm.head.5.0", "Softmax.softmax.6.0")
    ]
    expected = truth(proto, feeds)
    for _, path, name in DumpDir.open(tmp_path / "dump").statistic_dump_files():
        for row in read_acl_stats(path, name):
            array = expected[row.op_name, row.io, row.slot].astype(np.float64)
            assert (row.dtype, row.shape, row.count) == ("float32", array.shape, array.size)
            assert [row.max, row.min, row.avg] == [float(f"{v:g}") for v in (array.max(), array.min(), array.mean())]
            assert (row.nan, row.negative_inf, row.positive_inf) == (0, 0, 0)


@pytest.mark.parametrize("first", [1.5, np.nan, np.inf])
def test_statistics_are_those_of_the_tensors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: float) -> None:
    """A tensor is measured once in a run, by the thread that runs the model."""
    measured: list[str] = []

    def measure(array: Array, dtype_name: str) -> Array:
        measured.append(threading.current_thread().name)
        return measured_now(array, dtype_name)

    monkeypatch.setattr(streaming, "measured_now", measure)
    proto = model_of("branches")
    feeds = feeds_of("branches")[0]
    feeds["x"][0, 0] = first
    dump = make_dump(tmp_path / "dump", dump_mode="all", dump_data="stats")
    model = load_model(proto, dump.observe_model(1, ["branches"]))
    model.run(feeds)
    dump.close()
    expected = truth(proto, feeds)
    files = sorted((tmp_path / "dump").rglob("*.csv"))
    assert len(files) == len({place[0] for place in expected}) + 1, "one of the branches has run, its one operator"
    # The input and what each operator makes; all of them are read by others as well.
    assert measured == [threading.main_thread().name] * len(files)
    for path in files:
        for row in read_acl_stats(path):
            array = expected.get((row.op_name, row.io, row.slot))
            if array is None or array.dtype != np.float32:
                continue
            counts = [np.isnan(array).sum(), np.isneginf(array).sum(), np.isposinf(array).sum()]
            assert [row.nan, row.negative_inf, row.positive_inf] == counts, path
            found = array.reshape(-1)
            if np.isnan(found[0]):
                assert row.max is not None and np.isnan(row.max), path
            else:
                # NaN wins only where it comes first.
                assert row.max == float(f"{np.nanmax(found):g}") and row.min == float(f"{np.nanmin(found):g}"), path


def test_original_names_choose_operators(tmp_path: Path) -> None:
    proto = model_of("convolutions")
    proto.graph.node[1].name = "stem/conv"  # a name that is taken
    plain = load_model(proto)
    [renamed] = plain.originals["stem/conv"]
    dump = make_dump(tmp_path / "dump", dump_list=[{"layer": ["stem/conv"]}])
    model = load_model(proto, dump.observe_model(1, ["cnn"], plain.originals))
    model.run(feeds_of("convolutions")[0])
    dump.close()
    assert {file.op_name for file in DumpDir.open(tmp_path / "dump").files()} == {
        "data", "stem_conv", safe_piece(renamed),
    }  # fmt: skip


def test_an_overflow_of_a_model(tmp_path: Path) -> None:
    node = onnx.helper.make_node
    proto = models.model_of(
        [node("Mul", ["x", "x"], ["square"], name="square"), node("Neg", ["square"], ["y"], name="neg")],
        [models.value("x", np.float32, [2])],
        [models.value("y")],
    )
    dump = make_dump(tmp_path / "dump", dump_list=None, dump_debug="on")
    model = load_model(proto, dump.observe_model(4, ["deep"]))
    for value in (1, 1e30):
        model.run({"x": np.full(2, value, np.float32)})
    dump.close()
    assert tree(tmp_path / "dump") == [
        "TIME/0/deep/4/1/Mul.square.0.0.STAMP",
        "TIME/0/deep/4/1/Opdebug.Node_OpDebug.2.1.STAMP",
    ]

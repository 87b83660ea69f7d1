"""dump and load in a few lines."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnx

import msdump
from msdump.config.acl_file import AclConfigError
from msdump.errors import DumpError, ExecutionError, FormatError
from msdump.frontends import acl
from tests.frontends.acl.scripts import config, everything, files, ok, small_model
from tests.frontends.onnx import models

ROOT = Path(__file__).resolve().parents[3]
X = np.full((2, 3), -5, np.float32)


def test_a_dump_from_beginning_to_end(tmp_path: Path) -> None:
    path = small_model(tmp_path)
    before = acl.load(path)
    with acl.dump(everything(tmp_path)) as dump:
        model = acl.load(path)
        outputs = model(X)
        assert list(outputs) == ["y"] and outputs["y"].tolist() == [[0, 0, 0]] * 2
        model({"x": X})
        model(x=X)
        before(X)
    assert dump.path == tmp_path / "out"
    report = dump.report()
    assert report is not None
    assert (report.files, report.iterations_dumped, report.lost, report.error) == (9, 3, 0, None)
    model(X)
    assert len(files(tmp_path)) == 9
    assert model.name == "net" and [str(spec) for spec in model.inputs] == ["float32[2, 3]"]


def test_a_mapping_in_place_of_a_file(tmp_path: Path) -> None:
    with acl.dump({"dump": {"dump_path": str(tmp_path), "dump_list": [{"layer": ["relu"]}]}}):
        acl.load(Path(small_model(tmp_path)).read_bytes())(X)
    (found,) = (path for path in tmp_path.rglob("Relu.*"))
    assert found.parent.parent.parent.name == "inside"


def test_a_configuration_that_asks_for_nothing(tmp_path: Path) -> None:
    with acl.dump({}) as dump:
        acl.load(small_model(tmp_path))(X)
    assert dump.path is None and dump.report() is None
    with acl.dump(everything(tmp_path)):
        with acl.dump({}):
            acl.load(small_model(tmp_path))(X)
        assert files(tmp_path) == []


def test_dumps_inside_each_other_and_beside_the_calls(tmp_path: Path) -> None:
    path = small_model(tmp_path)
    for name in ("outer", "inner", "calls"):
        (tmp_path / name).mkdir()
    ok(acl.init())
    ok(acl.mdl.init_dump())
    ok(acl.mdl.set_dump(everything(tmp_path / "calls")))
    with acl.dump(everything(tmp_path / "outer")):
        with acl.dump(config(tmp_path / "inner", dump_list=[{"layer": ["relu"]}])):
            acl.load(path)(X)
        ok(acl.mdl.finalize_dump())
        acl.load(path)(X)
    assert [len(files(tmp_path / name)) for name in ("inner", "outer", "calls")] == [1, 3, 0]


def test_values_that_no_file_can_hold_are_counted(tmp_path: Path) -> None:
    nodes = [
        onnx.helper.make_node("SplitToSequence", ["x"], ["parts"], "split", axis=0),
        onnx.helper.make_node("ConcatFromSequence", ["parts"], ["y"], "join", axis=0),
        onnx.helper.make_node("Identity", ["s"], ["t"], "text"),
    ]
    text, result = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.STRING, [1]) for name in "st")
    model = models.model_of(nodes, [models.value("x", shape=(2, 3)), text], [models.value("y"), result])
    with acl.dump(everything(tmp_path)) as dump:
        loaded = acl.load(model.SerializeToString())
        for _ in range(2):
            loaded(X, np.array(["a"], object))
    report = dump.report()
    assert report is not None and report.skipped == {"sequence": 1, "dtype string": 2}
    assert files(tmp_path) == sorted(["ConcatFromSequence.join", "Data.x"] * 2)
    with acl.dump(config(tmp_path, dump_list=[{"model_name": "other"}])) as dump:
        acl.load(model.SerializeToString())
    report = dump.report()
    assert report is not None and report.skipped == {}


def test_operators_of_subgraphs_that_nobody_looked_at_are_counted(tmp_path: Path) -> None:
    """Once for each model."""
    node, value = onnx.helper.make_node, models.value
    inner = [node("Log", ["e"], ["l"], "log"), node("Neg", ["l"], ["n"], "neg")]
    each = onnx.helper.make_graph(inner, "each", [value("e")], [value("n")])
    nodes = [
        node("SequenceConstruct", ["x", "x"], ["pair"], "pack"),
        node("SequenceMap", ["pair"], ["mapped"], "map", body=each),
        node("ConcatFromSequence", ["mapped"], ["y"], "join", axis=0),
    ]
    model = models.model_of(nodes, [value("x", shape=(2, 3))], [value("y")])
    with acl.dump(everything(tmp_path)) as dump:
        loaded = acl.load(model.SerializeToString())
        for _ in range(2):
            loaded(X)
    report = dump.report()
    assert report is not None
    assert report.unseen == {"SequenceMap": 2}


def test_errors(tmp_path: Path) -> None:
    model = acl.load(small_model(tmp_path))
    with pytest.raises(AclConfigError, match="EP0004"):
        acl.dump(tmp_path / "none.json")
    with pytest.raises(AclConfigError, match="EP0003: dump_path"):
        acl.dump({"dump": {"dump_path": "/no/such/folder", "dump_list": [{}]}})
    with pytest.raises(FormatError, match=r"got an \.om file"):
        acl.load("net.om")
    with pytest.raises(ExecutionError, match="expected input x as float32"):
        model()
    with pytest.raises(ExecutionError, match="at most 1 inputs"):
        model(X, X)
    with pytest.raises(ExecutionError, match="input x is given twice"):
        model(X, x=X)
    with pytest.raises(ExecutionError, match="float64"):
        model(X.astype(np.float64))


def test_an_incomplete_dump_is_reported_and_no_error_of_the_block(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = everything(tmp_path)

    def spoiled(then: Callable[[], object]) -> None:
        with acl.dump(source) as dump:
            (tmp_path / "out").rmdir()
            (tmp_path / "out").write_text("in the way")
            acl.load(small_model(tmp_path))(X)
            then()
        with pytest.raises(DumpError, match="not complete"):
            dump.close()

    spoiled(list)
    assert "not complete" in caplog.text
    caplog.clear()
    (tmp_path / "out").unlink()
    (tmp_path / "out").mkdir()
    with pytest.raises(ZeroDivisionError):
        spoiled(lambda: 1 / 0)
    assert "not complete" in caplog.text


def test_the_names_resolve_to_one_module_without_onnx() -> None:
    code = (
        "import sys, msdump, msdump.acl\n"
        "msdump.install_aliases(['acl'], prefer_real=False)\n"
        "import acl, acl.mdl\n"
        "assert acl is msdump.acl is sys.modules['msdump.frontends.acl'] and acl.mdl is msdump.acl.mdl\n"
        "assert not {'onnx', 'onnxruntime', 'torch', 'numba', 'rich', 'pydantic'} & set(sys.modules)\n"
        "assert acl.init() == 0 and acl.ACL_HOST == 1 and acl.get_soc_name() == 'CPU' and acl.get_version()[3] == 0\n"
        "sys.modules['onnx'] = None\n"
        "open('net.onnx', 'w').close()\n"
        "assert acl.mdl.load_from_file('net.onnx')[1] == 500001\n"
        "assert 'pip install onnx onnxruntime' in acl.get_recent_err_msg()\n"
    )
    environment = {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, cwd="/tmp")
    assert done.returncode == 0, done.stderr
    assert msdump.acl is acl

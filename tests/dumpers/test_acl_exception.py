"""An operator that raises leaves one file, in the form of the scene, before its exception goes on."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnx
from onnx import helper

from msdump.config.acl import plan_acl_exception
from msdump.config.environment import BRIEF, DETAIL, NORM
from msdump.engine.models import AclDump
from msdump.errors import DumpError, ExecutionError
from msdump.formats.bin import BinFile
from msdump.formats.dump_file import read_dump
from msdump.formats.exception import read_core
from msdump.frontends.onnx import load_model
from tests.frontends.onnx.models import model_of, same_bits, value

Feeds = dict[str, Any]
SCENES = (BRIEF, NORM, DETAIL)
X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


def gather() -> tuple[onnx.ModelProto, Feeds, list[Any]]:
    """An index out of range."""
    nodes = [
        helper.make_node("Neg", ["x"], ["n"], name="net/neg"),
        helper.make_node("Gather", ["n", "at"], ["y"], name="net/look.up", axis=0),
    ]
    model = model_of(nodes, [value("x", np.float32, [3, 4]), value("at", np.int64, [2])], [value("y")])
    at = np.array([0, 9])
    return model, {"x": X, "at": at}, [-X, at]


def reshape() -> tuple[onnx.ModelProto, Feeds, list[Any]]:
    """A number of elements that does not fit; the shape of the result is open."""
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["y"], name="reshape")]
    model = model_of(
        nodes, [value("x", np.float32, [3, 4]), value("shape", np.int64, [2])], [value("y", shape=[None] * 2)]
    )
    shape = np.array([5, 5])
    return model, {"x": X, "shape": shape}, [X, shape]


def empty() -> tuple[onnx.ModelProto, Feeds, list[Any]]:
    """One of the operands has no elements."""
    nodes = [helper.make_node("Gather", ["x", "at"], ["y"], name="none", axis=0)]
    model = model_of(nodes, [value("x", np.float16, [0, 4]), value("at", np.int32, [])], [value("y", np.float16)])
    at = np.array(2, np.int32)
    return model, {"x": np.empty((0, 4), np.float16), "at": at}, [np.empty((0, 4), np.float16), at]


def branch() -> tuple[onnx.ModelProto, Feeds, list[Any]]:
    """Inside of an If: it is the operator in there that raises."""
    then = helper.make_graph([helper.make_node("Gather", ["x", "at"], ["t"])], "then", [], [value("t")])
    other = helper.make_graph([helper.make_node("Identity", ["x"], ["e"])], "other", [], [value("e")])
    nodes = [helper.make_node("If", ["which"], ["y"], name="choose", then_branch=then, else_branch=other)]
    inputs = [value("which", np.bool_, []), value("x", np.float32, [3, 4]), value("at", np.int64, [1])]
    which, at = np.array(True), np.array([-9])
    return model_of(nodes, inputs, [value("y")]), {"which": which, "x": X, "at": at}, [X, at]


CASES: dict[str, tuple[Callable[[], tuple[onnx.ModelProto, Feeds, list[Any]]], str, str]] = {
    "gather": (gather, "Gather.net_look_up.1", "Gather_net_look_up.0.1"),
    "reshape": (reshape, "Reshape.reshape.0", "Reshape_reshape.0.0"),
    "empty": (empty, "Gather.none.0", "Gather_none.0.0"),
    "branch": (branch, "Gather.choose_then_branch_t.0", "Gather_choose_then_branch_t.0.0"),
}


def files_below(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def fail(folder: Path, scene: str, model: onnx.ModelProto, feeds: Feeds, device_id: int = 0) -> Path:
    """Run into the failure -> the one file."""
    dump = AclDump(plan_acl_exception(scene), folder, device_id)
    loaded = load_model(model, dump.observe_model(1, ["net"]))
    with pytest.raises(ExecutionError):
        loaded.run(feeds)
    # It is there before anybody closes anything.
    (path,) = files_below(folder)
    dump.close()
    report = dump.report()
    assert (report.files, report.bytes_written, report.error) == (1, path.stat().st_size, None)
    assert files_below(folder) == [path]
    return path


@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("case", CASES)
def test_golden_tree(case: str, scene: str, tmp_path: Path) -> None:
    make, norm, core = CASES[case]
    model, feeds, operands = make()
    path = fail(tmp_path, scene, model, feeds, device_id=3)
    task = norm.rpartition(".")[2]
    stem = {BRIEF: f"exception_info.0.{task}", NORM: norm, DETAIL: core}[scene]
    name = re.fullmatch(r"(?P<stem>.+)\.(?P<stamp>[0-9]{17})(?P<suffix>\.core)?", path.name)
    assert name is not None and name["stem"] == stem and datetime.strptime(name["stamp"][:14], "%Y%m%d%H%M%S")
    assert (name["suffix"] == ".core") == (scene == DETAIL)
    assert path.parent == tmp_path / "extra-info" / "data-dump" / "3"
    assert path.stat().st_mode & 0o777 == 0o400
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert_operands(read_dump(path), scene, operands)


def assert_operands(found: BinFile, scene: str, operands: list[Any]) -> None:
    """Inputs bit for bit; no output was made."""
    if scene == BRIEF:
        operands = [array for array in operands if array.size]
        assert all((tensor.dtype_number, tensor.shape) == (0, None) for tensor in found.tensors)
        assert [tensor.payload.tobytes() for tensor in found.tensors] == [array.tobytes() for array in operands]
    else:
        assert len(found.tensors) == len(operands)
        assert all(same_bits(t.array(), array) for t, array in zip(found.tensors, operands, strict=True))
    assert {tensor.io for tensor in found.tensors} == {"input"}
    assert all(tensor.address for tensor in found.tensors)


def test_what_the_files_tell(tmp_path: Path) -> None:
    model, feeds, _ = gather()
    norm = read_dump(fail(tmp_path / "norm", NORM, model, feeds))
    assert (norm.op_name, norm.attributes) == ("net/look.up", (("axis", "0"),))
    lines = norm.message.splitlines()
    assert "stream 0, task 1, iteration 0: Gather net/look.up raised ExecutionError" in lines[0]
    assert "idx=9" in lines[0]
    assert [line.partition(" at ")[0] for line in lines[1:]] == [
        "input 0: float32[3, 4] ND, 48 bytes",
        "input 1: int64[2] ND, 16 bytes",
        "output 0: float32[2, 4] ND, not made",
    ]
    core = read_core(fail(tmp_path / "detail", DETAIL, model, feeds))
    assert (core.error_type, core.attributes) == ("ExecutionError", {"axis": "0"})
    stack = "\n".join(core.stack)
    assert "loaded.run(feeds)" in stack and "dumpers/exception" not in stack
    assert "InvalidArgument" in core.traceback[-1] and "idx=9" in core.traceback[-1]
    # An editor shows it.
    assert '"op_name": "net/look.up"' in Path(core.path).read_bytes().decode(errors="replace")


@pytest.mark.parametrize("scene", SCENES)
def test_each_failure_has_a_file_and_other_runs_have_none(
    scene: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model, feeds, _ = gather()
    dump = AclDump(plan_acl_exception(scene), tmp_path)
    loaded = [load_model(model, dump.observe_model(at, ["net"])) for at in range(2)]
    for one in loaded:
        one.run({"x": X, "at": np.array([0, 1])})
    assert files_below(tmp_path) == []
    for _ in range(5):
        for one in loaded:
            with pytest.raises(ExecutionError):
                one.run(feeds)
    assert len(files_below(tmp_path)) == 10
    told = {record.message.partition("it was dumped to ")[2].removesuffix(".") for record in caplog.records}
    assert told == {str(path) for path in tmp_path.rglob("*") if path.is_file()}
    dump.close()
    assert dump.report().overflows == ("net/look.up",) * 10
    assert dump.report().tensors_written == 20
    with pytest.raises(ExecutionError):
        loaded[0].run(feeds)
    assert len(files_below(tmp_path)) == 10


def test_operators_that_are_called_alone(tmp_path: Path) -> None:
    model, feeds, _ = reshape()
    dump = AclDump(plan_acl_exception(NORM), tmp_path)
    with pytest.raises(ExecutionError):
        load_model(model, dump.observe_operators()).run(feeds)
    assert [path.name.split(".")[1] for path in files_below(tmp_path)] == ["reshape"]


def test_what_a_kernel_of_ones_own_had_written(tmp_path: Path) -> None:
    """In an arena the output is there, as far as the kernel came."""

    def kernel(inputs: Any, outputs: Any) -> None:
        outputs[0][:2] = inputs[0][:2]
        raise ZeroDivisionError("half way")

    model = model_of(
        [helper.make_node("Neg", ["x"], ["y"], name="neg")], [value("x", np.float32, [3, 4])], [value("y")]
    )
    dump = AclDump(plan_acl_exception(DETAIL), tmp_path)
    with pytest.raises(ZeroDivisionError, match="half way"):
        load_model(model, dump.observe_model(1, ["net"]), kernels={"neg": kernel}).run({"x": X})
    (path,) = files_below(tmp_path)
    core = read_core(path)
    made = {tensor.io: tensor.array() for tensor in core.tensors}
    assert same_bits(made["input"], X) and same_bits(made["output"][:2], X[:2])
    assert core.error_type == "ZeroDivisionError" and any(
        "outputs[0][:2]" in line or "half way" in line for line in core.traceback
    )


def test_a_name_that_is_too_long(tmp_path: Path) -> None:
    long = "n" * 300
    model = model_of(
        [helper.make_node("Gather", ["x", "at"], ["y"], name=long)],
        [value("x", np.float32, [3]), value("at", np.int64, [1])],
        [value("y")],
    )
    feeds = {"x": np.zeros(3, np.float32), "at": np.array([7])}
    dump = AclDump(plan_acl_exception(NORM), tmp_path)
    with pytest.raises(ExecutionError):
        load_model(model, dump.observe_model(1, ["net"])).run(feeds)
    names = {path.name for path in files_below(tmp_path)}
    (digits,) = names - {"mapping.csv"}
    assert digits.isdigit() and "mapping.csv" in names
    assert len(fail(tmp_path / "core", DETAIL, model, feeds).name) == 255


def test_a_folder_that_refuses_does_not_hide_the_exception(tmp_path: Path) -> None:
    (tmp_path / "extra-info").write_text("in the way")
    model, feeds, _ = gather()
    dump = AclDump(plan_acl_exception(NORM), tmp_path)
    with pytest.raises(ExecutionError, match="idx=9"):
        load_model(model, dump.observe_model(1, ["net"])).run(feeds)
    with pytest.raises(DumpError, match="extra-info"):
        dump.close()


_DYING = """
import os, sys, numpy as np
from msdump.config.acl import plan_acl_exception
from msdump.engine.models import AclDump
from msdump.frontends.onnx import load_model
from pathlib import Path
dump = AclDump(plan_acl_exception(sys.argv[1]), Path(sys.argv[3]))
model = load_model(sys.argv[2], dump.observe_model(1, ["net"]))
try:
    model.run({"x": np.zeros((3, 4), np.float32), "at": np.array([0, 9])})
except Exception:
    os._exit(7)
"""


def test_the_file_is_whole_when_the_process_dies_of_it(tmp_path: Path) -> None:
    model, _, _ = gather()
    onnx.save(model, tmp_path / "net.onnx")
    command = [sys.executable, "-c", _DYING, NORM, str(tmp_path / "net.onnx"), str(tmp_path / "dump")]
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(root)}, timeout=120, check=False)
    assert done.returncode == 7
    (path,) = files_below(tmp_path / "dump")
    assert_operands(read_dump(path), NORM, [np.full((3, 4), -0.0, np.float32), np.array([0, 9])])


_PLAIN = """
import msdump.acl, numpy as np, os, sys
if sys.argv[2] == "calls":
    msdump.acl.init()
try:
    msdump.acl.load(sys.argv[1])(np.zeros((3, 4), np.float32), np.array([0, 9]))
except Exception as error:
    assert "idx=9" in str(error)
    os._exit(7)
"""


@pytest.mark.parametrize(
    ("style", "variables", "base", "pattern"),
    [
        ("short", {"ASCEND_DUMP_SCENE": BRIEF}, ".", "exception_info.*"),
        ("calls", {"ASCEND_DUMP_SCENE": DETAIL, "ASCEND_WORK_PATH": "work"}, "work", "*.core"),
        ("calls", {"NPU_COLLECT_PATH": "collect", "ASCEND_WORK_PATH": "work"}, "collect", "Gather.*"),
        ("short", {"NPU_COLLECT_PATH": "collect", "ASCEND_DUMP_SCENE": BRIEF}, "collect", "exception_info.*"),
    ],
)
def test_the_environment_alone(variables: dict[str, str], base: str, pattern: str, style: str, tmp_path: Path) -> None:
    """No acl.json: ASCEND_DUMP_SCENE says what, NPU_COLLECT_PATH > ASCEND_WORK_PATH > this folder where."""
    onnx.save(gather()[0], tmp_path / "net.onnx")
    root = str(Path(__file__).resolve().parents[2])
    plain = {name: text for name, text in os.environ.items() if not name.startswith(("ASCEND_", "NPU_"))}
    command = [sys.executable, "-c", _PLAIN, "net.onnx", style]
    done = subprocess.run(
        command, env={**plain, "PYTHONPATH": root, **variables}, cwd=tmp_path, timeout=120, check=False
    )
    assert done.returncode == 7
    (path,) = [path for path in files_below(tmp_path) if path.suffix != ".onnx"]
    assert path.parent == tmp_path / base / "extra-info" / "data-dump" / "0" and path.match(pattern)


@pytest.mark.parametrize("scene", SCENES)
def test_show_and_convert(scene: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from msdump.cli.main import main

    model, feeds, operands = gather()
    path = fail(tmp_path / "dump", scene, model, feeds)
    assert main(["show", str(tmp_path / "dump"), "net/look.up"]) == 0
    text = capsys.readouterr().out
    assert "net/look.up" in text
    if scene != BRIEF:
        assert "attributes: axis='0'" in text and "idx=9" in text and "not made" in text
    assert main(["convert", str(path), "-o", str(tmp_path / "out")]) == 0
    names = [f"{path.name}.input.{slot}.npy" for slot in range(2)]
    assert sorted(os.listdir(tmp_path / "out")) == names
    for name, array in zip(names, operands, strict=True):
        found = np.load(tmp_path / "out" / name)
        assert found.tobytes() == array.tobytes()
        assert found.shape == ((array.nbytes,) if scene == BRIEF else array.shape)


def test_the_scene_of_a_file(tmp_path: Path) -> None:
    """`lite_exception` is the old name of the brief one, and a path may be left out."""
    from msdump.config.acl import load_acl_config, plan_acl

    (tmp_path / "acl.json").write_text(json.dumps({"dump": {"dump_scene": "lite_exception", "dump_path": "here"}}))
    plan = plan_acl(load_acl_config(tmp_path / "acl.json"), tmp_path)
    assert plan is not None
    model, feeds, _ = gather()
    dump = AclDump(plan, plan.where.path)
    with pytest.raises(ExecutionError):
        load_model(model, dump.observe_model(1, ["net"])).run(feeds)
    (path,) = files_below(tmp_path / "here")
    assert path.name.startswith("exception_info.0.1.")

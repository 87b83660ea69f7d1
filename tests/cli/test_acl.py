"""`msdump acl`, and `msdump run` with scripts that import acl."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnx

import msdump
from msdump.cli.main import main
from tests.frontends.acl.scripts import config, everything, files, small_model
from tests.frontends.onnx import models
from tests.frontends.onnx.models import same_bits, true_values
from tests.frontends.onnx.test_model import narrow_ends, needs

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tests" / "frontends" / "acl" / "classic_script.py"


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "msdump", "run", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)


def images() -> Any:
    return np.random.default_rng(0).standard_normal((2, 3, 8, 8), np.float32)


def model_with_sizes(folder: Path) -> Any:
    proto = models.convolutions(np.random.default_rng(0))
    for value in (*proto.graph.input, *proto.graph.output):
        value.type.tensor_type.shape.dim[0].dim_value = 2
    onnx.save(proto, folder / "net.onnx")
    return proto


def test_a_whole_script_of_pyacl_runs_unmodified(tmp_path: Path) -> None:
    proto = model_with_sizes(tmp_path)
    config(tmp_path, dump_list=[{"model_name": "net", "layer": ["stem/conv", "softmax"]}], dump_mode="all")
    done = run(tmp_path, str(SCRIPT), "net.onnx", "1")
    assert done.returncode == 0, done.stderr
    assert same_bits(np.load(tmp_path / "result.npy"), true_values(proto, {"data": images()})["probability"])
    assert "ACL dump" in done.stderr and "2 of 2 dumped" in done.stderr
    (time,) = (tmp_path / "out").iterdir()
    found = sorted(path.relative_to(time).as_posix() for path in time.rglob("*") if path.is_file())
    assert [path.split("/")[:4] for path in found] == [["1", "net", "1", "0"]] * 3 + [["1", "net", "1", "1"]] * 3
    assert {path.split("/")[4].split(".")[0] for path in found} == {"Conv", "Data", "Softmax"}


def test_a_script_that_finishes_nothing(tmp_path: Path) -> None:
    small_model(tmp_path)
    everything(tmp_path)
    (tmp_path / "script.py").write_text(
        "import acl, numpy as np\n"
        "acl.init('acl.json')\n"
        "x = np.zeros((2, 3), np.float32); y = np.zeros((2, 3), np.float32)\n"
        "sets = [acl.mdl.create_dataset() for _ in range(2)]\n"
        "for data, array in zip(sets, (x, y)):\n"
        "    acl.mdl.add_dataset_buffer(data, acl.create_data_buffer(acl.util.numpy_to_ptr(array), array.nbytes))\n"
        "print(acl.mdl.execute(acl.mdl.load_from_file('net.onnx')[0], *sets), y.sum())\n"
    )
    done = run(tmp_path, "script.py")
    assert (done.returncode, done.stdout) == (0, "0 6.0\n"), done.stderr
    assert files(tmp_path) == ["Add.add", "Data.x", "Relu.relu"]


def test_a_script_whose_dump_fails(tmp_path: Path) -> None:
    model_with_sizes(tmp_path)
    everything(tmp_path)
    code = SCRIPT.read_text().replace("images = ", "import os\nos.rmdir('out')\nopen('out', 'w').close()\nimages = ")
    (tmp_path / "script.py").write_text(code.replace("net.close()", ""))
    done = run(tmp_path, "script.py", "net.onnx", "0")
    assert done.returncode == 4 and "The ACL dump is not complete" in done.stderr
    assert (tmp_path / "result.npy").exists()


def test_acl_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    proto = model_with_sizes(tmp_path)
    np.save(tmp_path / "x.npy", images())
    options = ["--dump", everything(tmp_path), "--output", str(tmp_path / "o"), "--times", "2"]
    for text in (str(tmp_path / "x.npy"), f"data={tmp_path / 'x.npy'}"):
        assert main(["acl", "run", str(tmp_path / "net.onnx"), "--input", text, *options]) == 0
    printed = capsys.readouterr()
    assert "probability  float32  [2, 10]" in printed.out and "2 of 2 dumped" in printed.err
    truth = true_values(proto, {"data": images()})["probability"]
    assert same_bits(np.load(tmp_path / "o" / "0_probability.npy"), truth)
    tensors = [name for name in files(tmp_path) if not name.startswith("command")]
    assert len(tensors) == 2 * 2 * (len(proto.graph.node) + 1) == len(files(tmp_path)) - 2


def test_acl_run_without_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Statistics, and what is wrong in them."""
    monkeypatch.chdir(tmp_path)
    path = small_model(tmp_path)
    assert main(["acl", "run", path, "--random", "1", "--times", "3"]) == 0
    printed = capsys.readouterr()
    assert "statistics of every run go to msdump_dump." in printed.err and "3 of 3 dumped" in printed.err
    assert "$ msdump nan msdump_dump" in printed.err and "finite: " in printed.err
    assert {row.step.iteration for row in msdump.stat("msdump_dump").rows} == {0, 1, 2}
    assert main(["acl", "run", path]) == 1
    assert not (tmp_path / "msdump_dump_2").exists()


@pytest.mark.parametrize(
    "content",
    [
        {"dump": {"dump_path": "out", "dump_lst": [{}]}},
        {"dumpp": {"dump_path": "out", "dump_list": [{}]}},
        {"dump": {}},
    ],
)
def test_a_file_that_selects_nothing_is_a_loud_3(
    content: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As `msdump acl check` of the same file; the model runs all the same."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "acl.json").write_text(json.dumps(content))
    assert main(["acl", "check", "acl.json"]) == 3
    assert main(["acl", "run", small_model(tmp_path), "--random", "0", "--dump", "acl.json"]) == 3
    printed = capsys.readouterr()
    assert "float32" in printed.out and "Nothing was dumped: acl.json selects nothing." in printed.err


def test_random_inputs_are_the_same_for_one_seed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = small_model(tmp_path)
    found = []
    for seed in ("1", "1", "2"):
        assert main(["acl", "run", path, "--random", seed, "--output", str(tmp_path), "--no-dump"]) == 0
        found.append(np.load(tmp_path / "0_y.npy"))
    assert same_bits(found[0], found[1]) and not same_bits(found[0], found[2])
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (["net.onnx"], 1, "--input: expected x as float32[2, 3], got nothing. Give x=FILE.npy, or --random"),
        (["strings.onnx", "--random", "0"], 1, "--random: expected inputs of numbers"),
        (["net.onnx", "--input", "x.npz"], 2, "x.npz: expected one array in a .npy file"),
        (["net.onnx", "--input", "empty.npy"], 2, "empty.npy: expected an array in a .npy file"),
        (["net.onnx", "--input", "y=x.npy"], 1, "expected one of x, got y"),
        (["net.onnx", "--input", "x.npy", "--input", "x.npy"], 1, "at most 1 inputs (x), got 2"),
        (["net.onnx", "--input", "none.npy"], 2, "none.npy: expected an array, got No such file"),
        (["net.onnx", "--input", "net.onnx"], 2, "expected an array in a .npy file"),
        (["net.onnx", "--input", "x.npy", "--times", "0"], 2, "--times: expected a number from 1"),
        (["net.om", "--input", "x.npy"], 2, "which only a device can run"),
        (["net.onnx", "--input", "x.npy", "--dump", "wrong.json"], 2, "EP0002: dump_mode"),
        (["net.onnx", "--input", "x.npy", "--dump", "other.json"], 3, "the configuration selects no operator"),
    ],
)
def test_acl_run_refuses(
    arguments: list[str],
    status: int,
    text: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    small_model(tmp_path)
    np.save("x.npy", np.zeros((2, 3), np.float32))
    np.savez("x.npz", np.zeros((2, 3), np.float32))
    Path("empty.npy").touch()
    text_value = onnx.helper.make_tensor_value_info("s", onnx.TensorProto.STRING, [2])
    node = onnx.helper.make_node("Identity", ["s"], ["t"])
    text_result = onnx.helper.make_tensor_value_info("t", onnx.TensorProto.STRING, [2])
    onnx.save(models.model_of([node], [text_value], [text_result]), "strings.onnx")
    config(tmp_path, "wrong.json", dump_list=[{}], dump_mode="both")
    config(tmp_path, "other.json", dump_list=[{"model_name": "other"}])
    assert main(["acl", "run", *arguments]) == status
    assert text in capsys.readouterr().err


@pytest.mark.parametrize("command", [["acl", "check"], ["plan"]])
def test_acl_check(command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command, everything(tmp_path, dump_data="stats", dump_mode="all")]) == 0
    printed = capsys.readouterr().out
    assert "every model" in printed and "statistics: Max, Min" in printed and "inputs and outputs" in printed
    assert main([*command, config(tmp_path, dump_debug="on")]) == 0
    assert "overflow" in capsys.readouterr().out
    assert main([*command, config(tmp_path)]) == 3
    assert main([*command, config(tmp_path, dump_list=[{}], dump_debug="on")]) == 2
    assert "EP0005" in capsys.readouterr().err


def test_acl_run_with_dtypes_that_npy_files_do_not_have(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a run writes, a run reads: int4 stands in the files as int8, float8 as float32."""
    for dtype, wide in (("float8_e4m3fnuz", "float32"), ("int4", "int8")):
        needs(dtype)
        onnx.save(narrow_ends(dtype, 5), tmp_path / "net.onnx")
        np.save(tmp_path / "x.npy", np.array([0, 1, -2, 3, -4], wide))
        arguments = ["--no-dump", "--input", str(tmp_path / "x.npy"), "--output", str(tmp_path / dtype)]
        assert main(["acl", "run", str(tmp_path / "net.onnx"), *arguments]) == 0
        found = np.load(tmp_path / dtype / "0_y.npy")
        assert found.dtype == wide and found.tolist() == [0, 1, -2, 3, -4]
        assert dtype in capsys.readouterr().out
        np.save(tmp_path / "x.npy", np.array([0, 1, 100, 3, 1000]).astype(np.int8 if wide == "int8" else wide))
        assert main(["acl", "run", str(tmp_path / "net.onnx"), *arguments]) == 2
        assert f"values that {dtype} holds exactly" in capsys.readouterr().err


def test_acl_dump_of_dtypes_that_no_file_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    needs("uint4")
    onnx.save(narrow_ends("uint4", 5), tmp_path / "net.onnx")
    arguments = ["--random", "1", "--dump", everything(tmp_path, dump_mode="all")]
    assert main(["acl", "run", str(tmp_path / "net.onnx"), *arguments]) == 0
    assert "dtype uint4" in capsys.readouterr().err


def test_acl_dump_of_int4(tmp_path: Path) -> None:
    needs("int4")
    onnx.save(narrow_ends("int4", 5), tmp_path / "net.onnx")
    arguments = ["--random", "1", "--dump", everything(tmp_path, dump_mode="all")]
    assert main(["acl", "run", str(tmp_path / "net.onnx"), *arguments]) == 0
    tensors = {(t.op_name, t.io): t for t in msdump.open(tmp_path / "out")}
    narrow = tensors["narrow", "output"]
    assert narrow.dtype == "int4"
    assert np.array_equal(narrow.load().astype(np.float32), tensors["narrow", "input"].load())


def test_a_model_with_whole_numbers_is_finite(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """NaN and Inf of whole numbers and of float64 are not counted in ACL's csv."""
    helper = onnx.helper
    nodes = [
        helper.make_node("Shape", ["x"], ["sizes"], name="shape"),
        helper.make_node("Cast", ["x"], ["wide"], name="cast", to=onnx.TensorProto.DOUBLE),
        helper.make_node("Log", ["wide"], ["y"], name="log"),
    ]
    inputs = [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2, 3])]
    outputs = [
        helper.make_tensor_value_info("sizes", onnx.TensorProto.INT64, None),
        helper.make_tensor_value_info("y", onnx.TensorProto.DOUBLE, None),
    ]
    graph = helper.make_graph(nodes, "net", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.save(model, tmp_path / "net.onnx")
    for name, value, status, kind in (("good", 1.0, 0, "ok"), ("bad", -1.0, 1, "first-nan")):
        np.save(tmp_path / "x.npy", np.full((2, 3), value, np.float32))
        dump = tmp_path / name
        words = [
            "--input",
            f"x={tmp_path / 'x.npy'}",
            "--dump",
            everything(tmp_path, dump_path=str(dump), dump_mode="all", dump_data="stats"),
        ]
        dump.mkdir()
        assert main(["acl", "run", str(tmp_path / "net.onnx"), *words]) == 0
        assert main(["nan", str(dump)]) == status, capsys.readouterr()
        report = tmp_path / f"{name}.md"
        assert main(["report", str(dump), "-o", str(tmp_path / "r.html"), "--md", str(report)]) == 0
        assert "damaged" not in capsys.readouterr().err
        assert report.read_text().startswith({"ok": "### \u2705", "first-nan": "### \u274c"}[kind])

"""`msdump zoom`: from statistics to the tensors of one suspect, for every entry point."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import msdump
from msdump.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
MINDSPORE = """
import numpy as np
import mindspore as ms
from mindspore import nn, ops

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.log = ops.Log()
        self.add = ops.Add()

    def construct(self, x):
        return self.add(self.log(x), x)

ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
net = Net()
for step in range(5):
    net(ms.Tensor(np.full((2, 3), 3.0 - step, np.float32)))
"""
TORCH = """
import torch

@torch.compile(backend="msdump")
def net(x):
    return torch.log(x) + x

for step in range(5):
    net(torch.full((2, 3), 3.0 - step))
"""


def next_line(text: str, command: str) -> str:
    """The command of that name under "next:"."""
    lines = [line.partition("  # ")[0].strip() for line in text.partition("\nnext:\n")[2].splitlines()]
    return next(line for line in lines if f"msdump {command} " in line)


def msdump_command(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "msdump", *arguments], cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=240,
    )  # fmt: skip


def configuration(folder: Path, is_sync: bool) -> None:
    common = {
        "dump_mode": 0, "path": str(folder / "dump"), "net_name": "Net", "iteration": "all", "saved_data": "statistic",
        "input_output": 0, "kernels": [], "support_device": [0], **({} if is_sync else {"file_format": "npy"}),
    }  # fmt: skip
    sections = {"common_dump_settings": common, "e2e_dump_settings": {"enable": is_sync, "trans_flag": True}}
    (folder / "dump.json").write_text(json.dumps(sections))


@pytest.mark.parametrize("is_sync", [True, False], ids=["sync", "async"])
@pytest.mark.parametrize("script", [MINDSPORE, TORCH], ids=["mindspore", "torch"])
def test_statistics_then_the_tensors_of_the_suspect(script: str, is_sync: bool, tmp_path: Path) -> None:
    pytest.importorskip("torch" if script is TORCH else "msdump.mindspore")
    (tmp_path / "train.py").write_text(script)
    configuration(tmp_path, is_sync)
    assert msdump_command(tmp_path, "run", "--config", "dump.json", "train.py").returncode == 0
    (suspect,) = {tensor.op_name for tensor in _named(tmp_path / "dump", "log")}
    hint = next_line(msdump_command(tmp_path, "show", "dump", suspect).stdout, "zoom")
    assert hint.endswith("--run train.py") == (is_sync or script is TORCH) and "msdump zoom dump" in hint
    done = msdump_command(tmp_path, "zoom", "dump", suspect, "--path", "zoom", "--run", "train.py")
    assert done.returncode == 0, done.stdout + done.stderr
    # log(0) of iteration 3 is the first value that is not finite.
    assert "iterations 2-4 around 3" in done.stdout and next_line(done.stdout, "show")
    tensors = list(msdump.open(tmp_path / "zoom").tensors())
    operators = {tensor.op_name for tensor in tensors if not tensor.is_parameter}
    assert len(operators) == 1 and "log" in operators.pop().lower()
    assert {tensor.iteration for tensor in tensors} == {2, 3, 4}
    (read,) = {float(np.max(t.load())) for t in tensors if t.iteration == 3 and t.io == "input"}
    assert read == 0


def _named(dump: Path, word: str) -> list[object]:
    from msdump.analysis import tensor_statistics

    return [row.tensor for row in tensor_statistics(dump).rows if word in row.tensor.op_type.lower()]


def test_a_model_of_acl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    nodes = [helper.make_node("Neg", ["x"], ["y"], "head/neg"), helper.make_node("Sqrt", ["y"], ["z"], "head/sqrt")]
    ends = [[helper.make_tensor_value_info(name, kind, [2, 3])] for name in "xz"]
    model = helper.make_model(
        helper.make_graph(nodes, "net", *ends), opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )
    onnx.save(model, tmp_path / "net.onnx")
    np.save(tmp_path / "x.npy", np.ones((2, 3), np.float32))
    (tmp_path / "stats").mkdir()
    everything = {"dump_path": str(tmp_path / "stats"), "dump_list": [{"model_name": "net"}], "dump_data": "stats"}
    (tmp_path / "acl.json").write_text(json.dumps({"dump": everything | {"dump_mode": "all"}}))
    monkeypatch.chdir(tmp_path)
    assert main(["acl", "run", "net.onnx", "--input", "x.npy", "--dump", "acl.json"]) == 0
    assert main(["nan", "stats"]) == 1
    assert "head_sqrt (Sqrt)" in capsys.readouterr().out
    assert main(["zoom", "stats", "head_sqrt", "--path", "zoom", "--run", "net.onnx", "--input", "x.npy"]) == 0
    tensors = list(msdump.open(tmp_path / "zoom").tensors())
    assert {tensor.op_type for tensor in tensors} == {"Sqrt"} and {tensor.io for tensor in tensors} == {
        "input",
        "output",
    }
    assert main(["zoom", "stats", "head_sqrt", "--acl", "--path", "more", "--run", "infer.py"]) == 2
    assert "A script names its acl.json itself" in capsys.readouterr().err


def test_without_a_script_the_command_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from tests.analysis.small_dump import floats, write_dump

    dump = write_dump(tmp_path / "a dump", [("D/Log-op1", {("output", 0): floats(1)})])
    assert main(["zoom", str(dump), "Log-op1", "--around", "0"]) == 0
    out = capsys.readouterr().out
    config = tmp_path / "a dump_zoom" / "D_Log-op1.json"
    assert shlex.join(["msdump", "run", "--config", str(config)]) in out
    settings = json.loads(config.read_text())["common_dump_settings"]
    assert (settings["kernels"], settings["iteration"], settings["dump_mode"]) == (["D/Log-op1"], "0", 1)
    assert main(["zoom", str(dump), "Log-op1", "--config", str(config)]) == 2
    assert main(["zoom", str(dump), "Log-op1", "--around", "-1"]) == 2
    assert main(["zoom", str(tmp_path / "missing"), "Log-op1"]) == 2


def test_torchair_is_configured_by_the_script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from msdump.formats.paths.torchair import TorchairFileName, format_torchair_name

    folder = tmp_path / "worldsize1_global_rank0/graph_1/0"
    folder.mkdir(parents=True)
    name = TorchairFileName("sqrt_1", "aten.sqrt.default", "OUTPUT", 0, None, 10**15)
    np.save(folder / format_torchair_name(name), np.ones(2, np.float32))
    assert main(["zoom", str(tmp_path), "sqrt_1"]) == 0
    assert (
        "config.debug.data_dump.filter = lambda node: node if node.name == 'sqrt_1' else None"
        in capsys.readouterr().out
    )
    assert main(["zoom", str(tmp_path), "sqrt_1", "--run", "train.py"]) == 2


EAGER = """
import sys
import torch

x = torch.arange(3.0)
for step in range(int(sys.argv[1])):
    torch.log(x - step) + x
"""


def printed(folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    """What a shell makes of a line that was printed."""
    line = line.replace("msdump", f"{shlex.quote(sys.executable)} -m msdump", 1)
    return subprocess.run(
        line, shell=True, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
        timeout=240,
    )  # fmt: skip


@pytest.mark.parametrize("saved", ["statistic", "tensor"])
def test_printed_commands_run_as_they_are(saved: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "my train.py").write_text(EAGER)
    configuration(tmp_path, is_sync=True)
    settings = json.loads((tmp_path / "dump.json").read_text())
    settings["common_dump_settings"]["saved_data"] = saved
    (tmp_path / "dump.json").write_text(json.dumps(settings))
    assert msdump_command(tmp_path, "run", "--torch-eager", "--config", "dump.json", "my train.py", "3").returncode == 0
    if saved == "statistic":
        out = msdump_command(tmp_path, "nan", "dump").stdout
        line = next_line(out, "zoom")
        assert line.endswith("--run --torch-eager 'my train.py' 3")
    else:
        done = msdump_command(tmp_path, "zoom", "dump", "aten.log.default-op0")
        line = next_line(done.stdout, "run")
        assert "zoom" not in line.split(" --config ")[0] and "--torch-eager 'my train.py' 3" in line
    done = printed(tmp_path, line)
    assert done.returncode == 0, done.stderr
    if saved == "statistic":
        line = next_line(done.stdout, "show")
        assert "log" in printed(tmp_path, line).stdout


def test_a_script_that_names_its_configuration_is_told_what_to_do(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    script = "import msdump, torch\nwith msdump.watch(config='dump.json'):\n    torch.log(torch.zeros(2))\n"
    (tmp_path / "train.py").write_text(script)
    configuration(tmp_path, is_sync=True)
    subprocess.run(
        [sys.executable, "train.py"], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True, timeout=240
    )
    done = msdump_command(tmp_path, "zoom", "dump", "aten.log.default-op0")
    assert "\nthe script names its configuration itself: let it name this one\n" in done.stdout
    assert "\nnext:\n  python train.py  # " in done.stdout


def test_the_model_of_acl_is_run_again(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    ends = [[helper.make_tensor_value_info(name, kind, [2])] for name in "xy"]
    graph = helper.make_graph([helper.make_node("Sqrt", ["x"], ["y"], "sqrt")], "net", *ends)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "net.onnx")
    (tmp_path / "stats").mkdir()
    everything = {"dump_path": str(tmp_path / "stats"), "dump_list": [{"model_name": "net"}], "dump_data": "stats"}
    (tmp_path / "acl.json").write_text(json.dumps({"dump": everything | {"dump_mode": "all"}}))
    run = ("acl", "run", "net.onnx", "--random", "0", "--dump", "acl.json")
    assert msdump_command(tmp_path, *run).returncode == 0
    shown = msdump_command(tmp_path, "show", "stats", "sqrt").stdout
    line = next_line(shown, "zoom")
    assert line == "msdump zoom stats sqrt --run net.onnx --random 0"
    assert printed(tmp_path, line).returncode == 0

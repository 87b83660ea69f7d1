"""`msprobe.mindspore`: cells of MindSpore leave the records that msprobe 26.2 writes of MindSpore 2.7."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("msdump.mindspore")
import msdump
from tests.frontends.msprobe.running import config_file
from tests.frontends.msprobe.test_run import run

SCRIPT = """
import sys
import mindspore as ms
from mindspore import nn, ops
from msprobe.mindspore import PrecisionDebugger

ms.set_context(mode=ms.PYNATIVE_MODE if sys.argv[2] == "pynative" else ms.GRAPH_MODE)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(2, 3)
        self.act = nn.ReLU()
        self.seq = nn.SequentialCell(nn.Dense(3, 2), nn.Tanh())

    def construct(self, x):
        return self.seq(self.act(self.fc(x)))


debugger = PrecisionDebugger(config_path=sys.argv[1])
net = Net()
optimizer = nn.SGD(net.trainable_params(), 0.1)
step = ms.value_and_grad(lambda x, y: nn.MSELoss()(net(x), y), None, optimizer.parameters)
x, y = ops.ones((4, 2), ms.float32), ops.ones((4, 2), ms.float32)
for _ in range(2):
    debugger.start(model=net)
    loss, gradients = step(x, y)
    optimizer(gradients)
    debugger.stop()
    debugger.step()
"""
# Source: mindstudio-probe 26.2 with MindSpore 2.7.0 on a CPU, the same script.
FORWARD = [
    "Cell.fc.Dense.forward.0", "Cell.act.ReLU.forward.0", "Cell.seq.0.Dense.forward.0", "Cell.seq.1.Tanh.forward.0",
    "Cell.seq.SequentialCell.forward.0",
]  # fmt: skip
BACKWARD = [
    "Cell.seq.1.Tanh.backward.0", "Cell.seq.0.Dense.backward.0", "Cell.seq.SequentialCell.backward.0",
    "Cell.act.ReLU.backward.0",
]  # fmt: skip
PARENTS = {
    "Cell.fc.Dense.forward.0": None, "Cell.act.ReLU.forward.0": None, "Cell.seq.SequentialCell.forward.0": None,
    "Cell.seq.0.Dense.forward.0": "Cell.seq.SequentialCell.forward.0",
    "Cell.seq.1.Tanh.forward.0": "Cell.seq.SequentialCell.forward.0",
    "Cell.seq.SequentialCell.backward.0": None,
    "Cell.seq.1.Tanh.backward.0": "Cell.seq.SequentialCell.backward.0",
    "Cell.seq.0.Dense.backward.0": "Cell.seq.SequentialCell.backward.0", "Cell.act.ReLU.backward.0": None,
}  # fmt: skip


@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_cells_leave_the_records_of_msprobe(task: str, tmp_path: Path) -> None:
    status, output = run(tmp_path, SCRIPT, config_file(tmp_path, task=task, level="L0"), "pynative")
    assert status == 0 and "no dump is configured" not in output and "2 of 2 dumped" in output, output
    for step in range(2):
        (folder,) = (tmp_path / "dump" / f"step{step}").iterdir()
        content: dict[str, Any] = json.loads((folder / "dump.json").read_text())
        assert (content["framework"], content["level"], content["task"]) == ("mindspore", "L0", task)
        data = content["data"]
        assert [name for name in data if ".forward." in name] == FORWARD
        assert [name for name in data if ".backward." in name] == BACKWARD
        assert json.loads((folder / "construct.json").read_text()) == PARENTS
        assert set(data["Cell.fc.Dense.parameters_grad.0"]) == {"weight", "bias"}
        dense = data["Cell.seq.0.Dense.forward.0"]
        assert list(dense) == ["input_args", "input_kwargs", "output", "parameters"]
        shown = {key: dense["parameters"]["weight"][key] for key in ("type", "dtype", "shape")}
        assert shown == {"type": "mindspore.Tensor", "dtype": "Float32", "shape": [2, 3]}
        assert "requires_grad" not in dense["parameters"]["weight"]
        files = {path.name for path in folder.rglob("*.npy")}
        assert bool(files) == (task == "tensor")
        if files:
            name = dense["output"][0]["data_name"]
            assert name == "Cell.seq.0.Dense.forward.0.output.0.npy"
            array = np.load(folder / "dump_tensor_data" / name)
            assert array.max() == pytest.approx(dense["output"][0]["Max"])
            assert "Cell.fc.Dense.parameters_grad.0.weight.npy" in files
            (tensor,) = msdump.open(tmp_path / "dump").tensors(
                iteration=step, op_name="Cell.act.ReLU.backward.0", io="output"
            )
            assert tensor.load().shape == (4, 3)


@pytest.mark.parametrize(
    ("mode", "level", "message"),
    [("pynative", "mix", 'expected "L0" in a script of MindSpore'), ("graph", "L0", "expected PYNATIVE_MODE")],
)
def test_what_is_not_there_says_so(mode: str, level: str, message: str, tmp_path: Path) -> None:
    status, output = run(tmp_path, SCRIPT, config_file(tmp_path, level=level), mode)
    assert status == 1 and message in output, output

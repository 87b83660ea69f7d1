"""The whole system in some ten checks and a few seconds: one small training, run plain and run with a dump.

A newcomer's first read, and what to run before each commit.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from msdump.formats.paths.sync import parse_data_file_name
from msdump.formats.statistic_csv import read_statistic_csv
from msdump.graph._proto.debug_graph_pb2 import ModelProto

pytestmark = pytest.mark.usefixtures("needs_mindspore")
SCRIPT = """
import numpy as np
import mindspore as ms
from mindspore import nn

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Dense(8, 16)
        self.relu = nn.ReLU()
        self.fc2 = nn.Dense(16, 4)

    def construct(self, x):
        x = self.fc1(x)
        x = self.relu(x)
        return self.fc2(x)

ms.set_seed(1)
ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
rng = np.random.default_rng(0)
x = ms.Tensor(rng.standard_normal((16, 8)).astype(np.float32))
label = ms.Tensor(rng.integers(0, 4, 16).astype(np.int32))
net = Net()
loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), nn.Momentum(net.trainable_params(), 0.1, 0.9))
step.set_train()
for _ in range(5):
    print(step(x, label).asnumpy().tobytes().hex())
"""
COMMON = {
    "dump_mode": 0,
    "net_name": "Net",
    "iteration": "0|3-9",
    "saved_data": "full",
    "input_output": 0,
    "kernels": [],
    "support_device": [0],
}


class Run(NamedTuple):
    """One run of the script, and the folder of its dump's first iteration."""

    done: subprocess.CompletedProcess[str]
    root: Path
    first: Path

    @property
    def losses(self) -> list[float]:
        return [float(np.frombuffer(bytes.fromhex(line), np.float32)[0]) for line in self.done.stdout.split()]

    def load(self, start: str, place: str) -> np.ndarray:
        """The tensor of the one operator whose file name starts so, at "input.0" or the like."""
        (file,) = self.first.glob(f"{start}*.{place}.DefaultFormat.npy")
        return np.load(file)


def execute(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "msdump", "run", *options, "train.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
        capture_output=True,
        text=True,
        timeout=300,
    )


def configure(folder: Path, **changes: object) -> None:
    common = {**COMMON, "path": str(folder / "dump"), **changes}
    sections = {"common_dump_settings": common, "e2e_dump_settings": {"enable": True, "trans_flag": True}}
    (folder / "dump.json").write_text(json.dumps(sections))
    (folder / "train.py").write_text(SCRIPT)


@pytest.fixture(scope="module")
def dumped(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("tiny")
    configure(folder)
    root = folder / "dump" / "rank_0"
    return Run(execute(folder, "--config", "dump.json"), root, root / "Net" / "0" / "0")


def test_the_run_succeeds_and_reports(dumped: Run) -> None:
    assert dumped.done.returncode == 0, dumped.done.stderr
    assert "3 of 5 dumped" in dumped.done.stderr


def test_the_loss_falls(dumped: Run) -> None:
    assert dumped.losses[-1] < dumped.losses[0]


def test_dumping_does_not_change_the_training(dumped: Run, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    assert execute(tmp_path).stdout == dumped.done.stdout


def test_only_the_iterations_that_were_asked_for_are_there(dumped: Run) -> None:
    folders = {path.name for path in (dumped.root / "Net" / "0").iterdir()} - {"constants"}
    assert folders == {"0", "3", "4"}


def test_file_names_parse_and_folders_and_files_are_private(dumped: Run) -> None:
    files = list(dumped.first.glob("*.npy"))
    assert len(files) > 40
    for file in files:
        assert parse_data_file_name(file.name) is not None
        assert file.stat().st_mode & 0o777 == 0o400
    assert dumped.first.stat().st_mode & 0o777 == 0o700


def test_an_operator_replayed_on_its_inputs_gives_its_outputs(dumped: Run) -> None:
    assert np.array_equal(np.maximum(dumped.load("ReLU.", "input.0"), 0), dumped.load("ReLU.", "output.0"))


def test_a_tensor_used_twice_is_on_disk_once(dumped: Run) -> None:
    files = list(dumped.first.glob("*.npy"))
    assert len({file.stat().st_ino for file in files}) < len(files)


def test_statistics_describe_the_tensors(dumped: Run) -> None:
    (row,) = [
        row for row in read_statistic_csv(dumped.first / "statistic.csv") if (row.op_type, row.io) == ("ReLU", "output")
    ]
    tensor = dumped.load("ReLU.", "output.0")
    assert row.count == tensor.size
    assert row.max == pytest.approx(tensor.max(), rel=1e-5)


def test_the_ir_leads_from_the_line_to_the_operator(dumped: Run) -> None:
    text = (dumped.root / "graphs" / "ms_output_trace_code_graph_0.ir").read_text()
    block = text[: text.index("x = self.relu(x)")].rpartition("Fullname with scope: (")[2]
    assert block.startswith("Default/network-WithLossCell/_backbone-Net/relu-ReLU/ReLU-op")


def test_the_pb_holds_the_operators_of_the_execution_order(dumped: Run) -> None:
    model = ModelProto.FromString((dumped.root / "graphs" / "ms_output_trace_code_graph_0.pb").read_bytes())
    order = (dumped.root / "execution_order" / "ms_execution_order_graph_0.csv").read_text().splitlines()
    assert order[0] == "NodeExecutionOrder-FullNameWithScope"
    assert set(order[1:]) <= {node.full_name for node in model.graph.node}
    assert any(name.startswith("Gradients/") for name in order)


def test_a_wrong_configuration_stops_before_the_first_step(tmp_path: Path) -> None:
    configure(tmp_path, saved_data="tensors")
    done = execute(tmp_path, "--config", "dump.json")
    assert done.returncode == 2
    assert done.stdout == ""
    assert 'Did you mean "tensor"?' in done.stderr

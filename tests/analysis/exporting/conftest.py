"""Dumps that the exports are made of: a network that makes a NaN, and one with a moved weight beside its golden run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.analysis.small_dump import floats, write_dump

ROOT = Path(__file__).parents[3]
SCRIPT = """\
import os

import numpy as np

import mindspore as ms
from mindspore import nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Dense(8, 16, weight_init="normal", bias_init="zeros")
        self.middle = {"log": ops.Log(), "sigmoid": ops.Sigmoid(), "moved": ops.Sigmoid()}[os.environ["MIDDLE"]]
        self.fc2 = nn.Dense(16, 4, weight_init="normal", bias_init="zeros")

    def construct(self, x):
        x = self.fc1(x)
        x = self.middle(x)
        return self.fc2(x)


ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
ms.set_seed(1)
net = Net()
if os.environ["MIDDLE"] == "moved":
    weight = net.fc2.weight.asnumpy()
    weight[1, 2] += 0.5
    net.fc2.weight.set_data(ms.Tensor(weight))
loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), nn.Momentum(net.trainable_params(), 0.1, 0.9))
step.set_train()
rng = np.random.default_rng(0)
for _ in range(2):
    step(ms.Tensor(rng.standard_normal((4, 8)).astype(np.float32)), ms.Tensor(rng.integers(0, 4, 4).astype(np.int32)))
"""
NAN_LINE = 1 + SCRIPT.splitlines().index("        x = self.middle(x)")


def run_script(folder: Path, middle: str) -> Path:
    """The dump of two steps."""
    settings = {
        "dump_mode": 0,
        "path": str(folder / middle),
        "net_name": "Net",
        "iteration": "all",
        "saved_data": "tensor",
        "input_output": 0,
        "kernels": [],
        "support_device": [0],
    }
    config = {"common_dump_settings": settings, "e2e_dump_settings": {"enable": True, "trans_flag": True}}
    (folder / "train.py").write_text(SCRIPT)
    (folder / f"{middle}.json").write_text(json.dumps(config))
    done = subprocess.run(
        [sys.executable, "-m", "msdump", "run", "--config", f"{middle}.json", "train.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "MIDDLE": middle},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / middle


@pytest.fixture(scope="session")
def home(needs_mindspore: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the script, whose Sigmoid is computed by PyTorch."""
    pytest.importorskip("torch")
    return tmp_path_factory.mktemp("exported")


@pytest.fixture(scope="session")
def nan_dump(home: Path) -> Path:
    """Log of negative numbers, in the line NAN_LINE."""
    return run_script(home, "log")


@pytest.fixture(scope="session")
def golden_dump_folder(home: Path) -> Path:
    return run_script(home, "sigmoid")


@pytest.fixture(scope="session")
def moved_dump(home: Path) -> Path:
    """The golden run with another weight in fc2."""
    return run_script(home, "moved")


IN, OUT = ("input", 0), ("output", 0)
HOSTILE = (
    "=cmd|'calc'!A1",
    "<img src=x onerror=alert(1)>",
    "'); DROP TABLE tensors; --",
    "::error title=x::y%0A",
    "[click](javascript:alert(1)){0}",
    "\x1b[31mred\u202e",
    "</script><script>alert(1)</script>",
)


@pytest.fixture
def hostile_dump(tmp_path: Path) -> Path:
    """Operators whose names and types mean something to other programs; each makes a NaN."""
    operators = [
        (f"Net/{name.replace('/', '|').replace('.', '')}-op{number}", {IN: floats(-1, 1), OUT: floats(np.nan, 0)})
        for number, name in enumerate(HOSTILE)
    ]
    return write_dump(tmp_path / "dump", operators)

"""A script that trains a network of MindSpore beside the same one of PyTorch, to port it: both are dumped."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from msdump.analysis.overview.contents import Contents

pytest.importorskip("torch")

SCRIPT = """
import mindspore as ms
import numpy as np
import torch
from mindspore import nn, ops


class Mine(nn.Cell):
    def __init__(self):
        super().__init__()
        self.lstm, self.fc = nn.LSTM(4, 5, batch_first=True), nn.Dense(5, 3)

    def construct(self, x):
        return ops.square(self.fc(self.lstm(x)[0])).mean()


class Other(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.fc = torch.nn.LSTM(4, 5, batch_first=True), torch.nn.Linear(5, 3)

    def forward(self, x):
        return self.fc(self.lstm(x)[0]).square().mean()


ms.set_context(mode=ms.GRAPH_MODE)
mine, other = Mine(), Other()
step = ms.value_and_grad(mine, None, mine.trainable_params())
optimizer = torch.optim.SGD(other.parameters(), 0.1)
for _ in range(2):
    x = np.ones((2, 6, 4), np.float32)
    step(ms.Tensor(x))
    optimizer.zero_grad()
    other(torch.from_numpy(x)).backward()
    optimizer.step()
print("trained")
"""


@pytest.mark.usefixtures("needs_mindspore")
def test_each_graph_is_of_one_of_them(tmp_path: Path) -> None:
    settings = {
        "dump_mode": 0, "path": str(tmp_path / "dump"), "net_name": "Net", "iteration": "all", "saved_data": "tensor",
        "input_output": 0, "kernels": [], "support_device": list(range(8)),
    }  # fmt: skip
    content = {"common_dump_settings": settings, "e2e_dump_settings": {"enable": True, "trans_flag": True}}
    (tmp_path / "dump.json").write_text(json.dumps(content))
    (tmp_path / "train.py").write_text(SCRIPT)
    command = [sys.executable, "-m", "msdump", "run", "--config", "dump.json", "--torch-eager", "train.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and "trained" in done.stdout, done.stdout + done.stderr
    kinds: dict[int | None, set[bool]] = {}
    for operator in Contents(tmp_path / "dump").operators:
        if not operator.operator.is_parameter:
            kind = operator.operator.op_type.startswith("aten")
            kinds.setdefault(operator.step.graph_id, set()).add(kind)
    # Forward, backward, optimizer and construction of PyTorch; the one graph of MindSpore, in which PyTorch computes.
    assert sorted(map(sorted, kinds.values())) == [[False], [True], [True], [True], [True]]

"""Small scripts, one for each way into a dump: each prints the bytes of what it computed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.analysis.small_dump import floats, write_dump

_MINDSPORE = """
import numpy as np
import mindspore as ms
from mindspore import nn

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(4, 3)
        self.relu = nn.ReLU()

    def construct(self, x):
        return self.relu(self.fc(x))

ms.set_seed(1)
ms.set_context(mode=ms.MODE, device_target="CPU")
net = Net()
loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), nn.Momentum(net.trainable_params(), 0.1, 0.9))
step.set_train()
x = ms.Tensor(np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4))
label = ms.Tensor(np.array([0, 2], np.int32))
for number in range(2):
    print("result", step(x, label).asnumpy().tobytes().hex())
for parameter in net.trainable_params():
    print("result", parameter.asnumpy().tobytes().hex())
"""

_TORCH = """
import torch
from torch import nn

torch.manual_seed(1)
net = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
compiled = torch.compile(net, backend="msdump")
for number in range(2):
    loss = compiled(torch.linspace(-1, 1, 8).reshape(2, 4)).sum()
    loss.backward()
    print("result", loss.detach().numpy().tobytes().hex())
for parameter in net.parameters():
    print("result", parameter.grad.numpy().tobytes().hex())
"""

_TORCHAIR = """
import pathlib
import torch
import torchair

config = torchair.CompilerConfig()
config.debug.data_dump.type = "npy"
config.debug.data_dump.path = str(pathlib.Path("dump").absolute())
backend = torchair.get_npu_backend(compiler_config=config)
compiled = torch.compile(lambda x, y: torch.relu(x @ y + 1).sum(), backend=backend)
for number in range(2):
    print("result", compiled(torch.ones(2, 3), torch.ones(3, 2)).numpy().tobytes().hex())
"""

_ACL = """
import acl
import numpy as np

acl.init("acl.json")
x = np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)
y = np.zeros((2, 3), np.float32)
sets = [acl.mdl.create_dataset() for _ in range(2)]
for data, array in zip(sets, (x, y)):
    acl.mdl.add_dataset_buffer(data, acl.create_data_buffer(acl.util.numpy_to_ptr(array), array.nbytes))
model, _ = acl.mdl.load_from_file("net.onnx")
for number in range(2):
    assert acl.mdl.execute(model, *sets) == 0
    print("result", y.tobytes().hex())
"""


@dataclass(frozen=True)
class Entry:
    """One way into a dump.

    family    what the process imports, and what must be installed for it
    script    Python
    prepare   puts configuration and models beside the script
    options   of `msdump run`
    command   in its place; {folder} stands for where it runs
    below     folder whose calls count
    """

    name: str
    family: str
    script: str
    prepare: Callable[[Path], None]
    options: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    below: str = "dump"

    def __str__(self) -> str:
        return self.name


def _mindspore_json(is_sync: bool, **common: Any) -> Callable[[Path], None]:
    def prepare(folder: Path) -> None:
        settings = {
            "dump_mode": 0,
            "path": str(folder / "dump"),
            "net_name": "Net",
            "iteration": "all",
            "input_output": 0,
            "kernels": [],
            "support_device": [0],
            **common,
        }
        sections = {"common_dump_settings": settings, "e2e_dump_settings": {"enable": is_sync, "trans_flag": True}}
        (folder / "dump.json").write_text(json.dumps(sections))

    return prepare


def _acl_json(**keys: Any) -> Callable[[Path], None]:
    def prepare(folder: Path) -> None:
        from tests.frontends.acl.scripts import small_model

        small_model(folder)
        (folder / "dump").mkdir(exist_ok=True)
        dump = {"dump_path": str(folder / "dump"), "dump_list": [{}], "dump_mode": "all", **keys}
        (folder / "acl.json").write_text(json.dumps({"dump": dump}))

    return prepare


def _nothing(folder: Path) -> None:
    """The script has its configuration in itself."""


_RECORDER = """
import numpy as np
import msdump
import mindspore as ms
from mindspore import nn, ops

class Net(nn.Cell):
    def construct(self, x):
        return ops.log(x) + ops.exp(x)

ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
net = Net()
with msdump.recorder("dump", ring="ring", steps=2, budget="50M") as block:
    for number in range(5):
        value = net(ms.Tensor(np.full(3, -1.0 if number == 2 else 1.0, np.float32)))
        print("result", value.asnumpy().tobytes().hex())
        block.step()
"""


def _ring(folder: Path) -> None:
    (folder / "ring").mkdir(exist_ok=True)


def _small_dump(folder: Path) -> None:
    if not (folder / "small").exists():
        rows = {("input", 0): floats(1, 2, 3), ("output", 0): floats(1, 4, 9)}
        for rank in range(2):
            for iteration in range(2):
                write_dump(folder / "small", [("Net/Square-op0", rows), ("Net/Add-op1", rows)], iteration, rank=rank)


_CONFIG = ("--config", "dump.json")
_GRAPH, _PYNATIVE = _MINDSPORE.replace("ms.MODE", "ms.GRAPH_MODE"), _MINDSPORE.replace("ms.MODE", "ms.PYNATIVE_MODE")
ENTRIES = (
    Entry("sync", "mindspore", _GRAPH, _mindspore_json(True, saved_data="full"), _CONFIG),
    Entry("statistic", "mindspore", _GRAPH, _mindspore_json(True, saved_data="statistic"), _CONFIG),
    Entry("async-npy", "mindspore", _GRAPH, _mindspore_json(False, saved_data="full", file_format="npy"), _CONFIG),
    Entry("async-bin", "mindspore", _GRAPH, _mindspore_json(False, file_format="bin"), _CONFIG),
    Entry("pynative", "mindspore", _PYNATIVE, _mindspore_json(False, saved_data="full", file_format="npy"), _CONFIG),
    Entry("torch", "torch", _TORCH, _mindspore_json(False, saved_data="full", file_format="npy"), _CONFIG),
    Entry("torch-sync", "torch", _TORCH, _mindspore_json(True, saved_data="full"), _CONFIG),
    Entry("torchair", "torch", _TORCHAIR, _nothing),
    Entry("acl", "acl", _ACL, _acl_json()),
    Entry("acl-stats", "acl", _ACL, _acl_json(dump_data="stats")),
)
RECORDER = Entry("recorder", "mindspore", _RECORDER, _ring)
RING = Entry("ring", "mindspore", _RECORDER, _ring, below="ring")
TABLES = Entry(
    "tables",
    "mindspore",
    "",
    _small_dump,
    command=("stat", "small", "--tables", "{folder}/dump", "--jobs", "1", "--force"),
)

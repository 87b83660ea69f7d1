"""Examples of TorchAir's documentation, as a script has them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
import torch
import torch_npu
import torchair
from torchair import CompilerConfig, register_fx_node_ge_converter
from torchair.ge import Cast, Const, DataType, Format, Tensor, TensorSpec
from torch._decomp import get_decompositions, register_decomposition

# record, wait
def demo(x, y):
    with torchair.scope.npu_stream_switch("1"):
        mm = torch.mm(x, x)
        abs = torch.abs(mm)
        record = torchair.ops.record()
    add = torch.add(abs, 1)
    torchair.ops.wait([record])
    sub = torch.sub(x, mm)
    return add, sub

config = CompilerConfig()
npu_backend = torchair.get_npu_backend(compiler_config=config)
func = torch.compile(demo, backend=npu_backend, dynamic=False, fullgraph=True)
print("streams", [t.tolist() for t in func(torch.ones(2, 2).npu(), torch.ones(2, 2).npu())])

# register_fx_node_ge_converter
@register_fx_node_ge_converter(torch.ops.aten.sin.default)
def converter_aten_sin_default(self: Tensor, meta_outputs: TensorSpec = None):
    raise NotImplementedError("torch.ops.aten.sin.default ge_converter is not implemented!")

config = CompilerConfig()
config.debug.graph_dump.type = "py"
config.debug.graph_dump.path = "graphs"
try:
    torch.compile(torch.sin, backend=torchair.get_npu_backend(compiler_config=config))(torch.ones(2))
except Exception as error:
    print("converter", "torch.ops.aten.sin.default ge_converter is not implemented!" in str(error))

# cache_compile with a decomposition
@register_decomposition(torch.ops.aten.add.default)
def test_add_decomp(t1, t2):
    return t1 + t2

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.cached = torchair.inference.cache_compile(self.inner_forward,
            custom_decompositions=get_decompositions([torch.ops.aten.add.default]))

    def inner_forward(self, t1, t2):
        return torch.ops.aten.add(t1, t2)

    def forward(self, t1, t2):
        return self.cached(t1, t2)

print("cached", Model()(torch.ones(2), torch.ones(2)).tolist())
"""


def test_a_script_with_the_examples_runs(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "msdump", "run", "script.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "streams [[[3.0, 3.0], [3.0, 3.0]], [[-1.0, -1.0], [-1.0, -1.0]]]",
        "converter True",
        "cached [2.0, 2.0]",
    ]

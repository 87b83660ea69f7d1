"""A script for an NPU gets past its imports and its device names. Each test is a process: torch is changed for good."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

START = "import torch, torch_npu, torchair\n"
SAYS = "torch_npu is not installed"


def run(folder: Path, text: str, *variables: tuple[str, str]) -> subprocess.CompletedProcess[str]:
    (folder / "script.py").write_text(START + text)
    environment = {**os.environ, "PYTHONPATH": os.getcwd(), **dict(variables)}
    command = [sys.executable, "-m", "msdump", "run", "script.py"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=240)


def test_devices_methods_and_a_compiled_model(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        """
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4, device=torch.device("npu:0"))
    def forward(self, x):
        return self.layer(x.npu()).relu() + torch.zeros(4, device="npu") + torch.ones(4, device=torch.device("npu", 0))

real = "cuda" if torch.cuda.is_available() else "cpu"
torch.npu.set_device("npu:0")
torch.npu.synchronize()
torch.npu.empty_cache()
torch.manual_seed(0)
assert not torch.npu.is_available() and torch_npu.npu.device_count() >= 1 and torch.npu.current_device() == 0
model = Model().to("npu:0").npu()
made = [
    torch.asarray([1.0], device="npu"), torch.scalar_tensor(1, device="npu:0"), torch.fft.fftfreq(3, device="npu"),
    torch.hann_window(3, device="npu"), torch.empty_permuted((2,), (0,), device=torch.device("npu")),
    torch.sparse_coo_tensor([[0]], [1.0], (2,), device="npu", check_invariants=True),
]
assert {tensor.device.type for tensor in made} == {real}
x = torch.randn(3, 4).npu(0).to(torch.device("npu"), torch.float32)
assert x.device.type == real and x.is_npu and x.new_zeros(2, device="npu").device.type == real
torch.save(model.state_dict(), "weights.pt")
model.load_state_dict(torch.load("weights.pt", map_location="npu:0"))
config = torchair.CompilerConfig()
config.debug.data_dump.type = "npy"
config.debug.data_dump.path = "dump"
compiled = torch.compile(model, backend=torchair.get_npu_backend(compiler_config=config), fullgraph=True)
with torch.autocast("npu", dtype=torch.bfloat16):
    loss = compiled(x).sum()
loss.backward()
print("done", model.layer.weight.grad.abs().sum().item() > 0)
""",
    )
    assert (done.returncode, done.stdout) == (0, "done True\n"), done.stderr
    assert done.stderr.count(SAYS) == 1
    assert "eager data dump: " in done.stderr
    assert list(tmp_path.glob("dump/worldsize1_global_rank0/graph_1/0/addmm-aten.addmm.default.OUTPUT.0.*.npy"))


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("torch_npu.npu_fusion_attention", 'expected "npu", got "npu_fusion_attention"'),
        ("torch.npu.NPUGraph", 'has no "NPUGraph"'),
        ("import torch_npu.contrib", "No module named 'torch_npu.contrib'"),
    ],
)
def test_what_needs_an_npu_says_so(line: str, text: str, tmp_path: Path) -> None:
    done = run(tmp_path, line)
    assert done.returncode == 1
    assert text in done.stderr


def test_a_real_torch_npu_wins(tmp_path: Path) -> None:
    (tmp_path / "torch_npu.py").write_text("npu = 'real'")
    done = run(tmp_path, "print(torch_npu.npu, hasattr(torch, 'npu'))")
    assert (done.returncode, done.stdout) == (0, "real False\n"), done.stderr
    assert SAYS not in done.stderr


def test_a_dump_that_failed_changes_the_exit_status(tmp_path: Path) -> None:
    (tmp_path / "dump").mkdir()
    (tmp_path / "dump" / "worldsize1_global_rank0").write_text("")
    done = run(
        tmp_path,
        """
config = torchair.CompilerConfig()
config.debug.data_dump.type = "npy"
config.debug.data_dump.path = "dump"
backend = torchair.get_npu_backend(compiler_config=config)
print(torch.compile(lambda x: x + 1, backend=backend)(torch.zeros(1)).item())
""",
    )
    assert (done.returncode, done.stdout) == (4, "1.0\n"), done.stderr
    assert "The eager data dump is not complete, " in done.stderr
    assert " lost. The model itself went on." in done.stderr


def test_hccl_is_gloo_without_a_gpu(tmp_path: Path) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU, where hccl is nccl")
    store = (("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", "0"), ("RANK", "0"), ("WORLD_SIZE", "1"))
    code = "torch.distributed.init_process_group('hccl')\nprint(torch.distributed.get_backend())\n"
    done = run(tmp_path, code + "torch.distributed.destroy_process_group()", *store)
    assert (done.returncode, done.stdout) == (0, "gloo\n"), done.stderr


def test_a_library_that_looks_for_the_package_is_told_nothing(tmp_path: Path) -> None:
    """As accelerate does in every program: it imports the package, and asks for a device."""
    done = run(
        tmp_path,
        "import importlib.util\nassert importlib.util.find_spec('torch_npu') and not torch.npu.is_available()\n"
        "print(torch.ones(1, device='cpu').to(torch.float64).device)\n",
    )
    assert (done.returncode, done.stdout) == (0, "cpu\n") and "npu" not in done.stderr.lower(), done.stderr

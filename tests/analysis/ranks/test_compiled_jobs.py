"""Jobs of four gloo processes with compiled models: the rank whose weight is another one is named, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("duckdb")

from msdump.cli.main import main
from msdump.formats.selection import StepSelection
from tests.analysis.ranks.test_healthy_jobs import LAUNCHER, ROOT, slow, write_config

SCRIPT = """
import os, torch, torch.distributed as dist, torch.multiprocessing as mp
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

KIND, IS_FAULTY, RANKS = "{kind}", {is_faulty}, 4
# PyTorch may hang where a compiled replica is freed after its process group, whatever compiles it.
KEPT = []


class Layer(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs) / inputs)
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        return x @ self.weight.T + self.bias


class Net(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.up, self.down = layer(8, 16), layer(16, 4)

    def forward(self, x):
        return self.down(torch.relu(self.up(x)))


def made(net):
    if KIND == "ddp outside":
        return torch.compile(DistributedDataParallel(net))
    if KIND == "ddp inside":
        return DistributedDataParallel(torch.compile(net))
    if KIND == "fsdp":
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("copies", "shards"))
        for part in (net.up, net.down, net):
            fully_shard(part, mesh=mesh)
    if KIND == "tensor parallel":
        mesh = init_device_mesh("cpu", (RANKS,), mesh_dim_names=("tp",))
        parallelize_module(net, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
    return torch.compile(net)


def flip(net):
    if KIND == "fsdp":
        net.up.unshard()
    flipped = net.down.bias.to_local() if KIND == "tensor parallel" else net.up.weight.detach()
    flipped.view(torch.int32).view(-1)[2] ^= 1 << 20


def work(rank, *unused):
    torch.set_num_threads(1)
    # Memory that nobody has filled holds NaN then, in place of what is left there by chance.
    torch.use_deterministic_algorithms(True)
    dist.init_process_group("gloo", init_method=f"file://{os.getcwd()}/store", rank=rank, world_size=RANKS)
    torch.manual_seed(0)
    net = Net(nn.Linear if KIND == "tensor parallel" else Layer)
    model = made(net)
    KEPT.append(model)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    torch.manual_seed(0 if KIND == "tensor parallel" else rank)
    for step in range(3):
        if IS_FAULTY and (rank, step) == (2, 1):
            flip(net)
        loss = model(torch.rand(4, 8)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    if "RANK" in os.environ:
        work(int(os.environ["RANK"]))
    else:
        mp.spawn(work, (RANKS,), RANKS)
"""
# What the first sentence says of the weight that was changed; the part of a model that FSDP2 cuts off is called alone.
NAMED = {
    "ddp outside": "up.weight (graph 0",
    "ddp inside": "up.weight (graph 0",
    "fsdp": "weight (graph 0",
    "tensor parallel": "down.bias (graph 0",
}
JOBS = [
    ("ddp outside", "msdump", "dumped launcher"),
    pytest.param("ddp inside", "msdump", "spawn", marks=slow),
    pytest.param("fsdp", "msdump", "launcher of dumped scripts", marks=slow),
    pytest.param("tensor parallel", "msdump", "dumped launcher", marks=slow),
    pytest.param("ddp outside", "msdump-inductor", "dumped launcher", marks=slow),
    pytest.param("tensor parallel", "msdump-inductor", "dumped launcher", marks=slow),
]
each_job = pytest.mark.parametrize(("kind", "backend", "way"), JOBS)


def dumped(kind: str, backend: str, way: str, folder: Path, is_faulty: bool) -> str:
    """Run a job; the folder of its dump, with one folder for each rank."""
    write_config(folder)
    (folder / "train.py").write_text(SCRIPT.replace("{kind}", kind).replace("{is_faulty}", str(is_faulty)))
    options = ("-m", "msdump", "run", "--config", "dump.json", "--torch-backend", backend)
    ways = {
        "launcher of dumped scripts": (*LAUNCHER, *options, "train.py"),
        "dumped launcher": (*options, *LAUNCHER, "train.py"),
        "spawn": (*options, "train.py"),
    }
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, *ways[way]]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=480)
    assert done.returncode == 0, done.stderr[-3000:]
    assert {path.name for path in (folder / "dump").iterdir()} == {f"rank_{rank}" for rank in range(4)}
    return str(folder / "dump")


@each_job
def test_the_rank_with_another_weight_is_named(
    kind: str, backend: str, way: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from msdump.analysis.overview.contents import Contents
    from msdump.viewing.pages import Pages

    dump = dumped(kind, backend, way, tmp_path, is_faulty=True)
    assert main(["ranks", dump]) == 1
    first, *rest = capsys.readouterr().out.splitlines()
    assert first.startswith(f"rank 2 is outvoted, first in iteration 1: {NAMED[kind]}")
    assert not [line for line in rest if "not declared equal" in line or "far from" in line]
    # The report opens with it, and leads to the operator of that rank.
    overview = Pages(Contents(dump, selection=StepSelection(), is_job=True)).get("overview")
    assert overview["verdict"]["text"] == first
    assert overview["verdict"]["at"]["step"] == [2, 0, 1] and overview["verdict"]["at"]["operator"] is not None


@each_job
def test_nothing_is_found_in_a_healthy_job(
    kind: str, backend: str, way: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dump = dumped(kind, backend, way, tmp_path, is_faulty=False)
    assert main(["nan", dump]) == 0, capsys.readouterr().out
    assert main(["ranks", dump]) == 0, capsys.readouterr().out
    out = capsys.readouterr().out
    assert "all of them are equal" in out and "far from" not in out
    assert main(["report", dump, "-o", str(tmp_path / "report.html")]) == 0
    assert "No NaN and no Inf" in capsys.readouterr().out


ALONE = """
import torch, torch.multiprocessing as mp


def work(index):
    torch.compile(torch.sin)(torch.full((2,), float(index)))


if __name__ == "__main__":
    mp.spawn(work, nprocs=2)
"""


def test_processes_of_no_group_have_the_ranks_that_they_are_given(tmp_path: Path) -> None:
    write_config(tmp_path)
    (tmp_path / "train.py").write_text(ALONE)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "msdump", "run", "--config", "dump.json", "--torch-backend", "msdump", "train.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]
    assert {path.name for path in (tmp_path / "dump").iterdir()} == {"rank_0", "rank_1"}

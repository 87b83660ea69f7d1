"""Jobs of four gloo processes without a fault: no command finds one, in buffers that nobody has filled neither."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("duckdb")

from msdump.cli.main import main
from tests.frontends.torch.eager.test_shardings import ROOT

SCRIPT = """
import os, torch, torch.distributed as dist, torch.multiprocessing as mp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

KIND, RANKS = "{kind}", 4


def work(rank, *unused):
    torch.set_num_threads(1)
    # Memory that nobody has filled holds NaN then, in place of what is left there by chance.
    torch.use_deterministic_algorithms(True)
    dist.init_process_group("gloo", init_method=f"file://{os.getcwd()}/store", rank=rank, world_size=RANKS)
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 8))
    if KIND == "ddp":
        net = DistributedDataParallel(net)
    elif KIND == "fsdp2":
        mesh = init_device_mesh("cpu", (RANKS,))
        for layer in [*net, net]:
            fully_shard(layer, mesh=mesh)
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
    torch.manual_seed(rank)
    for step in range(3):
        loss = (net(torch.randn(5, 8)) - torch.randn(5, 8)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        if KIND == "plain":
            for parameter in net.parameters():
                dist.all_reduce(parameter.grad)
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    if "RANK" in os.environ:
        work(int(os.environ["RANK"]))
    else:
        mp.spawn(work, (RANKS,), RANKS)
"""
LAUNCHER = ("-m", "torch.distributed.run", "--nproc-per-node", "4", "--standalone")
DUMPED = ("-m", "msdump", "run", "--config", "dump.json", "--torch-eager")
WAYS = {
    "launcher of dumped scripts": (*LAUNCHER, *DUMPED, "train.py"),
    "dumped launcher": (*DUMPED, *LAUNCHER, "train.py"),
    "spawn": (*DUMPED, "train.py"),
}
slow = pytest.mark.slow


def write_config(tmp_path: Path) -> None:
    settings = {
        "dump_mode": 0, "path": str(tmp_path / "dump"), "net_name": "Net", "iteration": "all", "saved_data": "tensor",
        "input_output": 0, "kernels": [], "support_device": list(range(8)),
    }  # fmt: skip
    config = {"common_dump_settings": settings, "e2e_dump_settings": {"enable": True, "trans_flag": True}}
    (tmp_path / "dump.json").write_text(json.dumps(config))


@pytest.mark.parametrize(
    ("kind", "way"),
    [
        ("ddp", "dumped launcher"),
        pytest.param("ddp", "spawn", marks=slow),
        pytest.param("fsdp2", "launcher of dumped scripts", marks=slow),
        pytest.param("plain", "dumped launcher", marks=slow),
    ],
)
def test_nothing_is_found(kind: str, way: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_config(tmp_path)
    (tmp_path / "train.py").write_text(SCRIPT.replace("{kind}", kind))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, *WAYS[way]]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "holds an earlier dump" not in done.stderr
    dump = str(tmp_path / "dump")
    assert {path.name for path in (tmp_path / "dump").iterdir()} == {f"rank_{rank}" for rank in range(4)}
    assert main(["nan", dump]) == 0, capsys.readouterr().out
    assert main(["ranks", dump]) == 0, capsys.readouterr().out
    out = capsys.readouterr().out
    assert "all of them are equal" in out and "far from" not in out
    assert main(["report", dump, "-o", str(tmp_path / "report.html")]) == 0
    assert "No NaN and no Inf" in capsys.readouterr().out


FORKING = """
import torch, torch.multiprocessing as mp


def work(index):
    pass


if __name__ == "__main__":
    mp.start_processes(work, nprocs=2, start_method="fork")
    torch.nn.Linear(3, 3)(torch.ones(2, 3)).sum().backward()
"""


def test_a_script_that_forks_is_dumped_to_its_end(tmp_path: Path) -> None:
    """Processes that are forked run as they are: they cannot take over."""
    write_config(tmp_path)
    (tmp_path / "train.py").write_text(FORKING)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, *DUMPED, "train.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]
    assert list((tmp_path / "dump" / "rank_0").rglob("*addmm*.npy"))

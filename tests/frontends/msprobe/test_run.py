"""`msdump run --as msprobe`: unmodified scripts, their workers, and the exit status."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
from tests.frontends.msprobe.running import config_file

WORKERS = """
import sys
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from msprobe.pytorch import PrecisionDebugger


def work(rank, config, store):
    debugger = PrecisionDebugger(config_path=config)
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    if rank == 1:
        debugger.start(model=net)  # before the rank is known
    dist.init_process_group("gloo", rank=rank, world_size=2, init_method=f"file://{store}")
    if rank == 0:
        debugger.start(model=net)
    x = net(torch.ones(1, 2) * rank).detach()
    dist.all_reduce(x)
    debugger.stop()
    debugger.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.start_processes(work, sys.argv[1:], nprocs=2, start_method="spawn")
"""


def run(folder: Path, text: str, *arguments: str, options: tuple[str, ...] = ("--as", "msprobe")) -> tuple[int, str]:
    script = folder / "script.py"
    script.write_text(text)
    command = [sys.executable, "-m", "msdump", "run", *options, str(script), *arguments]
    environment = {**os.environ, "PYTHONPATH": os.getcwd(), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout + done.stderr


def test_workers_dump_into_folders_of_their_ranks(tmp_path: Path) -> None:
    config = config_file(tmp_path, level="mix")
    status, output = run(tmp_path, WORKERS, config, str(tmp_path / "store"))
    assert status == 0, output
    assert {path.name for path in (tmp_path / "dump" / "step0").iterdir()} == {"rank0", "rank1"}
    for rank in range(2):
        folder = tmp_path / "dump" / "step0" / f"rank{rank}"
        names = list(json.loads((folder / "dump.json").read_text())["data"])
        assert names[1:3] == ["Functional.linear.0.forward", "Module.0.Linear.forward.0"]
        assert names[-1] == "Distributed.all_reduce.0.forward"
        assert (folder / "construct.json").is_file() and (folder / "stack.json").is_file()
    assert output.count(f"to {tmp_path / 'dump'}") == 2


def test_the_report_and_the_stack_know_the_script(tmp_path: Path) -> None:
    text = f"""
        import torch
        from msprobe.pytorch import PrecisionDebugger, seed_all
        seed_all()
        debugger = PrecisionDebugger({config_file(tmp_path)!r})
        debugger.start()
        torch.nn.functional.relu(torch.ones(2))
        debugger.stop()
        """
    status, output = run(tmp_path, "\n".join(line.strip() for line in text.splitlines()))
    assert status == 0 and "dump of msprobe's layout: " in output, output
    assert "PrecisionDebugger of the script dumps" in output and "go to msdump_dump" not in output
    (folder,) = (tmp_path / "dump" / "step0").iterdir()
    (entry,) = json.loads((folder / "stack.json").read_text()).values()
    place = f"File {tmp_path / 'script.py'}, line 7, in <module>, \n torch.nn.functional.relu(torch.ones(2))"
    assert entry == [["Functional.relu.0.forward"], [place]]


@pytest.mark.parametrize(
    ("text", "status", "message"),
    [
        ("import msprobe.pytorch as p; p.PrecisionDebugger(CONFIG)", 3, "the script called no start()"),
        ("import msprobe.pytorch as p; p.PrecisionDebugger(CONFIG, level='L2')", 1, '"L2" is not supported'),
        ("import msprobe.pytorch", 0, "the script turns none on"),
        (
            "import torch, msprobe.pytorch as p; d = p.PrecisionDebugger(CONFIG, task='structure', level='mix'); "
            "d.start(torch.nn.Sequential(torch.nn.ReLU())); torch.ones(1).exp(); d.step()",
            0,
            "1 of 1 dumped",
        ),
    ],
)
def test_exit_status(tmp_path: Path, text: str, status: int, message: str) -> None:
    code, output = run(tmp_path, text.replace("CONFIG", repr(config_file(tmp_path))))
    assert (code, message in output) == (status, True), output


def test_other_packages_are_refused(tmp_path: Path) -> None:
    status, output = run(tmp_path, "", options=("--as", "numpy"))
    assert status == 2 and "msprobe" in output

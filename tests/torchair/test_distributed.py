"""Two processes: each dumps apart, and a collective shows what everybody sees after it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.torchair.dumps import read_steps

pytest.importorskip("torch")

SCRIPT = """
import sys
import torch, torch.distributed as dist
import torch.distributed._functional_collectives as collectives
import msdump.torchair as torchair

def backend(folder, names):
    config = torchair.CompilerConfig()
    config.debug.data_dump.type = "npy"
    config.debug.data_dump.path = folder
    if names:
        config.debug.data_dump.filter = lambda n: n if n.name in names else None
    return torchair.get_npu_backend(compiler_config=config)

def function(x):
    return collectives.all_reduce(x * 2, "sum", dist.group.WORLD) + 1

dist.init_process_group("gloo")
x = torch.full((50_000,), float(dist.get_rank() + 1))
for argument in sys.argv[1:]:
    torch._dynamo.reset()
    folder, *names = argument.split(",")
    compiled = torch.compile(function, backend=backend(folder, names), fullgraph=True)
    with torch.no_grad():
        for _ in range(2):
            assert torch.equal(compiled(x), torch.full_like(x, 7.0))
dist.destroy_process_group()
"""


def run_two(folder: Path, *arguments: str) -> None:
    """Each argument: a folder to dump to, then the nodes to dump, with commas; none: all."""
    (folder / "script.py").write_text(SCRIPT)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    variables = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": "2"}
    variables |= {"PYTHONPATH": os.getcwd(), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(folder / "script.py"), *arguments]
    processes = [
        subprocess.Popen(command, env={**variables, "RANK": str(rank), "LOCAL_RANK": str(rank)}, stderr=subprocess.PIPE)
        for rank in range(2)
    ]
    for process in processes:
        _, errors = process.communicate(timeout=240)
        assert process.returncode == 0, errors.decode()


def test_ranks_dump_apart_and_collectives_are_complete(tmp_path: Path) -> None:
    dumps = {"all": (), "chosen": ("wait_tensor",)}
    for folder in dumps:
        (tmp_path / folder).mkdir()
    run_two(tmp_path, *(",".join((str(tmp_path / folder), *names)) for folder, names in dumps.items()))
    for folder, names in dumps.items():
        for rank in range(2):
            ((first, second),) = read_steps(tmp_path / folder, f"worldsize2_global_rank{rank}")
            for step in (first, second):
                for place in (("INPUT", 0), ("OUTPUT", 0)):
                    assert np.all(step.values["wait_tensor"][place] == 6)
                assert ("all_reduce" in step.values) == (not names)
                if not names:
                    assert np.all(step.values["all_reduce"]["INPUT", 0] == 2 * (rank + 1))
                    assert np.all(step.values["all_reduce"]["OUTPUT", 0] == 6)
                    assert step.values["all_reduce"]["INPUT", 1] == "sum"

"""sample_code/torch/train_digits_torchair.py does what its README says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.torchair.dumps import read_steps

pytest.importorskip("torch")
pytest.importorskip("sklearn")

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "sample_code" / "torch" / "train_digits_torchair.py"
LOSS = re.compile(r"step: (\d+), loss: (\S+)")


def run(folder: Path, *command: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_loss_falls_and_the_chosen_nodes_are_dumped(tmp_path: Path) -> None:
    output = run(tmp_path, "-m", "msdump", "run", str(SCRIPT), "--steps", "30", "--nodes", "convolution", "relu_1")
    losses = [float(loss) for _, loss in LOSS.findall(output)]
    assert len(losses) == 30 and np.mean(losses[-5:]) < np.mean(losses[:5]) - 0.5
    (forward,) = read_steps(tmp_path / "dump")
    assert len(forward) == 30
    assert {name: set(values) for name, values in forward[0].values.items()} == {
        "convolution": {*(("INPUT", slot) for slot in range(9)), ("OUTPUT", 0)},
        "relu_1": {("INPUT", 0), ("OUTPUT", 0)},
    }


def test_the_transformer_leaves_forward_and_backward(tmp_path: Path) -> None:
    run(tmp_path, "-m", "msdump", "run", str(SCRIPT), "--model", "transformer", "--steps", "2")
    forward, backward = read_steps(tmp_path / "dump")
    assert [len(forward), len(backward)] == [2, 2]
    assert "aten.native_layer_norm.default" in forward[0].targets.values()
    assert "aten.native_layer_norm_backward.default" in backward[0].targets.values()


@pytest.mark.slow
def test_two_processes_average_their_gradients(tmp_path: Path) -> None:
    launcher = ["-m", "torch.distributed.run", "--nproc_per_node", "2", "--standalone", "-m", "msdump", "run"]
    run(tmp_path, *launcher, str(SCRIPT), "--steps", "1")
    ranks = [read_steps(tmp_path / "dump", f"worldsize2_global_rank{rank}")[2][0].values for rank in range(2)]
    own = [values["all_reduce"]["INPUT", 0] for values in ranks]
    assert not np.array_equal(*own)
    for values in ranks:
        np.testing.assert_allclose(values["all_reduce"]["OUTPUT", 0], own[0] + own[1], rtol=1e-6)

"""Two processes of one job: ranks dump apart, and a sum over them is dumped as the sum."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

ROOT = Path(__file__).resolve().parents[3]
SAMPLES = ROOT / "sample_code" / "torch"


@pytest.mark.skipif(not torch.distributed.is_available(), reason="this PyTorch has no distributed package")
def test_ranks_dump_apart_and_sums_are_sums(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    command += ["-m", "msdump", "run", "--config", str(SAMPLES / "data_dump.json"), "--torch-backend", "msdump"]
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "MS_DIAGNOSTIC_DATA_PATH": str(tmp_path),
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(
        [*command, str(SAMPLES / "train_two_processes.py")],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for iteration in ("0", "1"):
        found = {
            (rank, io): np.load(path)
            for rank in ("rank_0", "rank_1")
            for io in ("input", "output")
            for path in (tmp_path / "debug_dump" / rank / "Digits" / "0" / iteration).glob(f"*all_reduce*.{io}.0.*.npy")
        }
        assert len(found) == 4
        assert not np.array_equal(found["rank_0", "input"], found["rank_1", "input"])
        total = found["rank_0", "input"] + found["rank_1", "input"]
        np.testing.assert_array_equal(found["rank_0", "output"], total)
        np.testing.assert_array_equal(found["rank_1", "output"], total)

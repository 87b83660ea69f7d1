"""Scripts of MindSpore users run unchanged under a dump, train, and leave files that the readers take."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import msdump

ROOT = Path(__file__).resolve().parent.parent
NAMES = sorted(
    path.stem for path in (ROOT / "tests" / "scripts").glob("*.py") if path.stem not in ("__init__", "run_all")
)
# They share one process, which imports once.
pytestmark = pytest.mark.xdist_group("scripts")


@pytest.fixture(scope="module")
def out(needs_mindspore: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scripts")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MINDSPORE_", "MSDUMP_"))}
    command = [sys.executable, "-m", "tests.scripts.run_all", str(folder), *NAMES]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stderr
    return folder


def left_by(name: str, out: Path) -> Any:
    left = json.loads((out / f"{name}.json").read_text(encoding="utf-8"))
    if find_spec("torch") is None and "expected PyTorch" in left.get("error", ""):
        pytest.skip("needs PyTorch")
    assert "error" not in left, left["error"]
    return left


@pytest.mark.parametrize("name", NAMES)
def test_a_script_runs_and_its_losses_fall(name: str, out: Path) -> None:
    losses = left_by(name, out)["losses"]
    assert len(losses) > 1 and np.isfinite(losses).all()
    third = max(1, len(losses) // 3)
    assert np.mean(losses[-third:]) < 0.9 * np.mean(losses[:third]), losses


@pytest.mark.parametrize("name", NAMES)
def test_its_dump_can_be_read(name: str, out: Path) -> None:
    left = left_by(name, out)
    tensors = list(msdump.open(out / name).tensors())
    assert left["written"] == len(tensors) > 0
    assert all(tensor.load().shape == tensor.shape for tensor in tensors)

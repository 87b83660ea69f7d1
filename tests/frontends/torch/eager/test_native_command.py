"""`msdump native` as a user types it: with a real compiler, and a run that uses what it has built."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

pytest.importorskip("torch")

from msdump.frontends.torch.eager.listening import tells_of_compiling
from msdump.frontends.torch.eager.native_building import recipe

ROOT = Path(__file__).resolve().parents[4]
SCRIPT = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
optimizer = torch.optim.AdamW(model.parameters())
for step in range(3):
    optimizer.zero_grad()
    model(torch.ones(5, 6)).square().mean().backward()
    optimizer.step()
"""


def msdump(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment: Mapping[str, str] = {
        **os.environ,
        "XDG_CACHE_HOME": str(folder / "cache"),
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")])),
        **variables,
    }
    command = [sys.executable, "-m", "msdump", *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=900)


def test_a_build_is_made_used_and_found_broken(tmp_path: Path) -> None:
    file = ROOT / "native" / "compiling.py"
    if not tells_of_compiling() or not file.is_file() or recipe(file).missing():
        pytest.skip("needs a newer PyTorch, a C++ compiler and the headers of Python")
    (tmp_path / "cache").mkdir()
    (tmp_path / "train.py").write_text(SCRIPT)
    if "installed as a package" in (made := msdump(tmp_path, "native")).stdout:
        pytest.skip("a package is installed")
    assert made.returncode == 0 and "is built, checked in a dump, and used from now on" in made.stdout, made.stderr
    folder = Path(made.stdout.rstrip().rpartition(": ")[2])
    assert folder.parent == tmp_path / "cache" / "msdump" / "native"
    again = msdump(tmp_path, "native")
    assert again.returncode == 0 and "was built before, and works" in again.stdout

    seen = "operators of 3 iterations were seen by msdump-native."
    assert seen in (used := msdump(tmp_path, "run", "train.py")).stdout + used.stderr
    assert seen not in (off := msdump(tmp_path, "run", "train.py", MSDUMP_NATIVE="0")).stdout + off.stderr
    assert used.returncode == off.returncode == 0

    (library,) = folder.glob("_msdump_native.*")
    library.write_bytes(library.read_bytes()[:10_000])
    broken = msdump(tmp_path, "native", "--check")
    assert broken.returncode == 2 and "Build it again: msdump native" in broken.stderr
    told = msdump(tmp_path, "run", "train.py")
    assert told.returncode == 0 and seen not in told.stdout + told.stderr
    assert "expected" in (doctor := msdump(tmp_path, "doctor")).stderr and "Build it again" in doctor.stderr
    library.chmod(0o722)
    assert "this user alone can write" in msdump(tmp_path, "native", "--check").stderr
    assert msdump(tmp_path, "native", "--remove").returncode == 0 and not folder.parent.exists()

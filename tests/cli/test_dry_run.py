"""`msdump plan CONFIG --dry-run SCRIPT` says what one step leaves, which is what a step of the run then leaves."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_run_children import environment
from tests.cli.test_run_dump import TRAIN

COUNT = re.compile(r"per iteration +(?P<size>\S+ \S+) in (?P<files>\d+) files?(, (?P<links>\d+) further names)?")


def configure(folder: Path, is_sync: bool, **changes: object) -> None:
    common = {
        "dump_mode": 0, "path": str(folder / "dump"), "net_name": "Net", "iteration": "5-7", "saved_data": "tensor",
        "input_output": 0, "kernels": [], "support_device": [0], "op_debug_mode": 0, "file_format": "npy", **changes,
    }  # fmt: skip
    sections = {"common_dump_settings": common, "e2e_dump_settings": {"enable": is_sync, "trans_flag": True}}
    (folder / "dump.json").write_text(json.dumps(sections))


def msdump(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "msdump", *arguments]
    return subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("is_sync", [True, False], ids=["sync", "async"])
@pytest.mark.parametrize("saved_data", ["tensor", "statistic"])
def test_one_step_is_measured_and_leaves_nothing(tmp_path: Path, is_sync: bool, saved_data: str) -> None:
    configure(tmp_path, is_sync, saved_data=saved_data)
    (tmp_path / "train.py").write_text(TRAIN)
    done = msdump(tmp_path, "plan", "dump.json", "--dry-run", "train.py", "1000000")
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dump.json", "train.py"]
    assert re.search(r"time +a step of [0-9.]+ ms takes [0-9.]+ ms more", done.stdout)
    assert "3 times that" in done.stdout and "measured" in done.stdout and "loss" not in done.stdout
    found = COUNT.search(done.stdout)
    assert found is not None, done.stdout
    assert msdump(tmp_path, "run", "--config", "dump.json", "train.py", "8").returncode == 0
    files = [path for path in (tmp_path / "dump").rglob("*") if path.is_file() and path.parent.name == "6"]
    inodes = {path.stat().st_ino: path.stat().st_size for path in files}
    assert int(found["files"]) == len(inodes)
    assert int(found["links"] or 0) == len(files) - len(inodes)
    if saved_data == "tensor":
        assert found["size"] == f"{sum(inodes.values()) / 1024:.3g} KiB"


def test_a_script_of_one_step_is_measured_by_it(tmp_path: Path) -> None:
    configure(tmp_path, is_sync=True)
    (tmp_path / "train.py").write_text(TRAIN)
    done = msdump(tmp_path, "plan", "dump.json", "--dry-run", "train.py", "1")
    assert done.returncode == 0, done.stderr
    assert "iteration 0 of train.py" in done.stdout


def test_a_script_of_torch(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    configure(tmp_path, is_sync=True)
    (tmp_path / "train.py").write_text("""
import torch
model = torch.compile(torch.nn.Linear(3, 2), backend="msdump")
for _ in range(100):
    model(torch.ones(4, 3)).sum().backward()
""")
    done = msdump(tmp_path, "plan", "dump.json", "--dry-run", "train.py")
    assert done.returncode == 0, done.stderr
    assert COUNT.search(done.stdout) and "iteration 1 of train.py" in done.stdout


@pytest.mark.parametrize(
    ("script", "text"), [("print(1)", "runs a network"), ("raise ValueError('mine')", "ValueError: mine")]
)
def test_a_script_that_computes_nothing(tmp_path: Path, script: str, text: str) -> None:
    configure(tmp_path, is_sync=True)
    (tmp_path / "train.py").write_text(script)
    done = msdump(tmp_path, "plan", "dump.json", "--dry-run", "train.py")
    assert done.returncode == 1 and text in done.stderr and "Traceback" not in done.stderr.split("\n")[0]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dump.json", "train.py"]


def test_what_it_cannot_measure_is_refused(tmp_path: Path) -> None:
    configure(tmp_path, is_sync=True)
    assert msdump(tmp_path, "plan", "dump.json", "--dry-run").returncode == 2
    (tmp_path / "acl.json").write_text('{"dump": {"dump_path": ".", "dump_list": [{}]}}')
    done = msdump(tmp_path, "plan", "acl.json", "--dry-run", "train.py")
    assert done.returncode == 2 and "acl.json" in done.stderr

"""`msdump run` of a script that leaves little or no address space for the report."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_run import environment, write

SCRIPT = """
    import mmap, resource, sys, torch

    linear = torch.nn.Linear(3, 2)
    for _ in range(2):
        linear(torch.ones(1, 3)).sum().backward()
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        # The limit is what the process has, and what is to be left.
        used = int(open("/proc/self/statm").read().split()[0]) * mmap.PAGESIZE
        resource.setrlimit(resource.RLIMIT_AS, (used + int(sys.argv[1]) * 2**20,) * 2)
    if sys.argv[2] == "fill":
        sys.held = []
        try:
            while True:
                sys.held.append(bytearray(2**20))
        except MemoryError:
            del sys.held[-3:]
"""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("torch")
    if not Path("/proc/self/statm").exists() or resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
        pytest.skip("needs Linux, and no limit of its own")
    write(folder, "train.py", SCRIPT)
    command = [sys.executable, "-m", "msdump", "run", "train.py", *arguments]
    return subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=300)


def test_40_mb_are_enough_for_the_report(tmp_path: Path) -> None:
    done = run(tmp_path, "40", "leave")
    assert done.returncode == 0 and "MemoryError" not in done.stderr, done.stderr
    assert "2 of 2 dumped" in done.stderr and "finite: " in done.stderr


def test_a_script_that_leaves_3_mb_gets_an_end_without_a_traceback(tmp_path: Path) -> None:
    done = run(tmp_path, "1", "fill")
    assert "Traceback" not in done.stderr and "MemoryError" not in done.stderr, done.stderr
    assert done.returncode == 4 and "the report is not complete" in done.stderr, done.stderr
    assert "msdump ls" in done.stderr
    assert [*(tmp_path / "msdump_dump").rglob("statistic.csv")]

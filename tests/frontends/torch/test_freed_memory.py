"""keep_freed_memory: a step finds the pages of the step before, unless the user has other plans for the heap."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="mappings as Linux counts them")

ROOT = Path(__file__).resolve().parents[3]
# Memory that the process has from the system: before, during and after a step that keeps 192 MB, when it comes again.
SCRIPT = """
import torch
from msdump.frontends.torch.freed_memory import keep_freed_memory

def mapped():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmSize:"))

print(keep_freed_memory())
for _ in range(12):  # the heap needs a few steps until its free pieces lie well
    before = mapped()
    kept = [torch.ones(12 << 20) for _ in range(4)]
    during = mapped()
    del kept
print(during - before, during - mapped())
"""


def run(**environment: str) -> tuple[bool, int, int]:
    """Whether freed memory is kept; KiB that the last step took from the system, and gave back."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    environment = {**inherited, "PYTHONPATH": str(ROOT), "THP_MEM_ALLOC_ENABLE": "0", **environment}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    is_kept, taken, given_back = done.stdout.split()
    return is_kept == "True", int(taken), int(given_back)


def test_what_was_freed_is_used_again() -> None:
    """By the size of the mappings: how often their pages fault depends on what the machine reclaims meanwhile."""
    is_kept, taken, given_back = run()
    if not is_kept:
        pytest.skip("another C library")
    assert (taken, given_back) == (0, 0)


def test_a_heap_that_the_user_configures_stays_as_it_is() -> None:
    is_kept, taken, given_back = run(MALLOC_TRIM_THRESHOLD_="131072")
    assert not is_kept
    assert min(taken, given_back) >= 4 * (48 << 10)

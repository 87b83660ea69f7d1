"""keep_freed_memory: a step finds the pages of the step before, unless the user has other plans for the heap."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="page faults as Linux counts them")

ROOT = Path(__file__).resolve().parents[3]
# What a step that keeps 192 MB costs in page faults, when it comes again and again. The heap needs a few steps until
# its free pieces lie well, and a machine that reclaims idle memory may take some away in any one step: the best counts.
SCRIPT = """
import resource, torch
from msdump.frontends.torch.heap import keep_freed_memory
print(keep_freed_memory())
faults = []
for _ in range(12):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    kept = [torch.ones(12 << 20) for _ in range(4)]
    del kept
    faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
print(min(faults))
"""


def run(**environment: str) -> tuple[bool, int]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    environment = {**inherited, "PYTHONPATH": str(ROOT), "THP_MEM_ALLOC_ENABLE": "0", **environment}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    is_kept, faults = done.stdout.split()
    return is_kept == "True", int(faults)


def test_what_was_freed_is_used_again() -> None:
    is_kept, faults = run()
    if not is_kept:
        pytest.skip("another C library")
    assert faults < 1000


def test_a_heap_that_the_user_configures_stays_as_it_is() -> None:
    is_kept, _ = run(MALLOC_TRIM_THRESHOLD_="131072")
    assert not is_kept

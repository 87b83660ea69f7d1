"""Commands as users start them, and the plain loop that they are measured against."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.workers import ROOT

LOOP = """
import sys
from pathlib import Path
import numpy as np
for path in sorted(Path(sys.argv[1]).rglob("*.npy")):
    array = np.load(path)
    array.min(), array.max(), array.mean(), np.isnan(array).sum()
"""


def seconds_of(arguments: Sequence[str | Path], timeout: float = 600) -> float:
    """Seconds of a Python process with these arguments. Statuses above 1 are errors of a command.

    Raises: RuntimeError with what the process said.
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, *map(str, arguments)], env=environment, capture_output=True, text=True, timeout=timeout
    )
    seconds = time.perf_counter() - started
    if done.returncode > 1:
        raise RuntimeError(f"{arguments}: {done.stderr[-2000:]}")
    return seconds


def dump_commands(dump: Path) -> dict[str, list[str | Path]]:
    """Name of each command that reads a dump -> its arguments."""
    command = ["-m", "msdump"]
    return {
        "stat": [*command, "stat", dump],
        "nan": [*command, "nan", dump],
        "compare": [*command, "compare", dump, dump],
        "ls": [*command, "ls", dump],
    }


def plain_loop(dump: Path) -> list[str | Path]:
    """np.load of each file, with its least, greatest and mean value and the number of NaN."""
    return ["-c", LOOP, dump]

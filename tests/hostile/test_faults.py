"""Every call to the system fails once, or is the last of its process: files stay whole, results stay right."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from msdump.analysis.graph_info import read_graph
from msdump.formats.npy import read_npy
from msdump.formats.order_csv import read_history, read_order
from msdump.formats.statistic_csv import read_statistic_csv
from tests.hostile.faults import COMPLETE, FAIL, INCOMPLETE, KILL, STEPS

ROOT = Path(__file__).parents[2]
FEW, ALL = (7, 280, 31), (1, 280, 1)  # the dumps make some 250 calls
RECORDS = 7  # of a step: inputs and outputs of three operators, and the parameter


def check_file(path: Path) -> None:
    """Whole and right, whatever happened to the process that wrote it."""
    if path.suffix == ".npy":
        values = {abs(value) for value in read_npy(path).tolist()}
        assert values in [{float(step + 1)} for step in range(STEPS)], path
    elif path.name == "statistic.csv":
        assert path.read_text().endswith("\n"), path
        read_statistic_csv(path)
    elif path.suffix in (".ir", ".pb"):
        assert len(read_graph(path).nodes) == 3, path
    elif path.name.startswith("ms_global_"):
        assert set(read_history(path)) <= set(range(STEPS)), path
    elif path.parent.name == "execution_order":
        assert len(read_order(path)) == 3, path
    elif path.suffix == ".json":
        json.loads(path.read_bytes())
    else:
        assert path.name.endswith(".tmp"), path


@pytest.mark.parametrize("numbers", [pytest.param(FEW, id="few"), pytest.param(ALL, id="all", marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", [FAIL, KILL])
@pytest.mark.parametrize("engine", ["sync", "async"])
def test_no_failing_call_damages_a_file_or_a_result(
    engine: str, kind: str, numbers: tuple[int, int, int], tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.hostile.faults", str(tmp_path), engine, kind, *map(str, numbers)],
        cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for number in range(*numbers):
        first, second = json.loads((tmp_path / f"{number}.json").read_text())
        assert first in ((COMPLETE, INCOMPLETE) if kind == FAIL else (COMPLETE, -9)), (number, done.stderr)
        assert second == COMPLETE, (number, done.stderr)
        files = [path for path in (tmp_path / str(number)).rglob("*") if path.is_file()]
        for path in files:
            check_file(path)
        arrays = [path for path in files if path.suffix == ".npy"]
        # The second run is complete in any case, the first one when it says so.
        runs = 2 if first == COMPLETE else 1
        assert len(arrays) >= runs * STEPS * RECORDS, number
        if engine == "sync":
            assert not [path for path in files if path.suffix == ".tmp"], number

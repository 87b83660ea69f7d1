"""A real job of four processes with one fault: the rank and the first tensor are named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("duckdb")

import msdump
from msdump.ranks.job import JobReport, job_report, write_tables
from msdump.ranks.questions import Tables
from tests.frontends.torch.eager.test_layout import ROOT

RANKS, STEPS, BAD = 4, 3, 2


def report_of(kind: str, folder: Path) -> JobReport:
    settings = {
        "dump_mode": 0, "path": str(folder / "dump"), "net_name": "Net", "iteration": "all", "saved_data": "tensor",
        "input_output": 0, "kernels": [], "support_device": list(range(8)),
    }  # fmt: skip
    config = {"common_dump_settings": settings, "e2e_dump_settings": {"enable": True, "trans_flag": True}}
    (folder / "dump.json").write_text(json.dumps(config))
    command = [sys.executable, "-m", "tests.ranks.job_rank", kind, str(folder)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    ranks = [
        subprocess.Popen(
            [*command, str(rank)], cwd=ROOT, env={**environment, "RANK": str(rank)}, stderr=subprocess.PIPE
        )
        for rank in range(RANKS)
    ]
    errors = [process.communicate(timeout=240)[1] for process in ranks]
    assert [process.returncode for process in ranks] == [0] * RANKS, errors
    write_tables([folder / "dump"], folder / "tables", jobs=1)
    return job_report(Tables(folder / "tables"), [folder / "dump"])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["flipped", "dropped", "none"])
def test_a_fault_of_one_rank(kind: str, tmp_path: Path) -> None:
    report = report_of(kind, tmp_path)
    assert report.compared > 10 and report.gaps == ()
    # A functional collective is over when its result is dumped.
    results = [one for one in msdump.open(tmp_path / "dump") if "all_reduce" in one.op_type and one.io == "output"]
    results = [one for one in results if one.shape == (300_000,)]
    assert len(results) == RANKS * STEPS and all(float(one.load().min()) == 10.0 for one in results)
    if kind == "none":
        assert report.unequal.rows == () and report.suspects == {}
        return
    assert list(report.suspects) == [BAD], report.suspects
    rows = [dict(zip(report.unequal.titles, row, strict=True)) for row in report.unequal.rows]
    # A gradient of its own shows in the step of the optimizer, a bit in the first operator that reads the weight.
    assert rows[0]["iteration"] == (1 if kind == "flipped" else 0)
    assert all(row["suspects"] == [BAD] for row in rows)

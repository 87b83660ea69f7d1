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
from msdump.analysis.ranks.job import JobReport, job_report, write_tables
from msdump.analysis.ranks.questions import Tables
from msdump.cli.main import main
from tests.analysis.ranks.job_rank import RECEIVER, SENDER
from tests.frontends.torch.eager.test_shardings import ROOT

RANKS, STEPS, BAD = 4, 3, 2


def run(kind: str, folder: Path) -> Path:
    """The dump of a job of `job_rank`."""
    folder.mkdir(exist_ok=True)
    settings = {
        "dump_mode": 0, "path": str(folder / "dump"), "net_name": "Net", "iteration": "all", "saved_data": "tensor",
        "input_output": 0, "kernels": [], "support_device": list(range(8)),
    }  # fmt: skip
    config = {"common_dump_settings": settings, "e2e_dump_settings": {"enable": True, "trans_flag": True}}
    (folder / "dump.json").write_text(json.dumps(config))
    command = [sys.executable, "-m", "tests.analysis.ranks.job_rank", kind, str(folder)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    ranks = [
        subprocess.Popen(
            [*command, str(rank)], cwd=ROOT, env={**environment, "RANK": str(rank)}, stderr=subprocess.PIPE
        )
        for rank in range(1 if kind == "one-device" else RANKS)
    ]
    try:
        errors = [process.communicate(timeout=120)[1] for process in ranks]
    finally:
        for process in ranks:
            process.kill()
            process.wait()
    assert [process.returncode for process in ranks] == [0] * len(ranks), errors
    return folder / "dump"


def report_of(kind: str, folder: Path) -> JobReport:
    dump = run(kind, folder)
    write_tables([dump], folder / "tables", jobs=1)
    return job_report(Tables(folder / "tables"), [dump])


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


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pipeline", "both-ways"])
def test_what_is_sent_arrives(kind: str, tmp_path: Path) -> None:
    """Two stages that send to each other before they wait do not stop, and each message has both of its ends."""
    report = report_of(kind, tmp_path)
    # Two messages of each pair of ranks and step; those of `both-ways` go in both directions, and one more in one.
    assert report.compared == (2 * 2 if kind == "pipeline" else 2 * 3) * STEPS
    assert report.messages.rows == () and report.suspects == {} and report.gaps == ()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "bad", "cause"),
    [
        ("overwritten", SENDER, "overwritten by Default/aten.copy_.default-op1 before the message was waited for"),
        ("stale", RECEIVER, "used by Default/layer-Linear/aten.addmm.default-op1 before the message was waited for"),
    ],
)
def test_a_buffer_of_a_pipeline_that_is_used_too_early(kind: str, bad: int, cause: str, tmp_path: Path) -> None:
    report = report_of(kind, tmp_path)
    (row,) = (dict(zip(report.messages.titles, row, strict=True)) for row in report.messages.rows)
    assert (row["iteration"], row["source"], row["destination"]) == (1, SENDER, RECEIVER)
    assert (row["suspects"], row["is_known"], row["cause"]) == ([bad], True, cause)
    number = 0 if kind == "overwritten" else 1
    assert row["send"].endswith(f"c10d.send.default-op{number}")
    assert row["receive"].endswith(f"c10d.recv_.default-op{number}")
    assert report.suspects == {bad: 1} and report.unequal.rows == ()


@pytest.mark.slow
def test_a_layer_that_is_cut_along_the_wrong_dimension(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All ranks agree, as all of them are wrong; a run of one device tells the layer."""
    golden, good, wrong = (run(kind, tmp_path / kind) for kind in ("one-device", "shard", "wrong-shard"))
    assert main(["compare", str(good), str(golden), "--merge"]) == 0, capsys.readouterr().out
    assert main(["ranks", str(wrong), "--jobs", "1"]) == 0
    capsys.readouterr()
    assert main(["compare", str(wrong), str(golden), "--merge"]) == 1
    out = capsys.readouterr().out
    # Its transpose only moves elements.
    assert "first difference: Default/aten.mm.default-op0" in out and "job_rank.py" in out
    assert "torch.nn.functional.linear(inputs, weights[0])" in out and "input 1 differs already" in out


@pytest.mark.slow
def test_one_rank_that_cuts_its_layer_along_the_wrong_dimension(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its replica has another weight. Which of the two is wrong, a run of one device tells."""
    report = report_of("one-wrong-shard", tmp_path / "job")
    row = dict(zip(report.unequal.titles, report.unequal.rows[0], strict=True))
    assert (row["name"], row["suspects"], row["has_majority"]) == ("Default/aten.t.default-op0", [1, RECEIVER], False)
    golden = run("one-device", tmp_path / "golden")
    assert main(["compare", str(tmp_path / "job/dump"), str(golden), "--merge"]) == 1
    # The weight that is taken, that of the lower rank, agrees; so it is the other one that is wrong.
    assert capsys.readouterr().out.startswith("first wrong operator: Default/aten.mm.default-op0")

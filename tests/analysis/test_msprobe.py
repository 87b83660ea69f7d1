"""Trees that mindstudio-probe 26.2 wrote: the commands read them as dumps."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import msdump
from msdump.analysis import compare_statistics
from msdump.cli.main import main

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "msprobe"


def test_the_first_nan(capsys: pytest.CaptureFixture[str]) -> None:
    report = msdump.find_nan(GOLDEN / "nan")
    first = report.first
    assert first is not None
    assert (first.operator.op_name, first.operator.op_type, first.how) == ("Torch.log.0.forward", "Torch.log", "made")
    assert not report.damaged
    assert main(["nan", str(GOLDEN / "nan")]) == 1
    assert "float32 [3, 8], holds NaN" in capsys.readouterr().out


def test_an_inf_is_told_by_the_largest_value(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "nan", tmp_path / "inf")
    path = tmp_path / "inf" / "step0" / "proc1" / "dump.json"
    path.write_text(path.read_text().replace("NaN", "Infinity"))
    first = msdump.find_nan(tmp_path / "inf").first
    assert first is not None and first.kind == "Inf" and first.operator.op_name == "Torch.log.0.forward"


def test_tensors_are_those_of_the_files() -> None:
    tensors = list(msdump.open(GOLDEN / "tensor").tensors())
    assert [tensor.op_name for tensor in tensors if tensor.io == "output"] == [
        "Functional.linear.0.forward", "Module.fc1.Linear.forward.0", *["Functional.linear.0.backward"] * 2,
        *["Module.fc1.Linear.parameters_grad.0"] * 2,
    ]  # fmt: skip
    weights = [
        tensor.load()
        for tensor in tensors
        if tensor.shape == (8, 4) and "grad" not in tensor.op_name and tensor.io == "input"
    ]
    assert len(weights) == 2
    np.testing.assert_array_equal(*weights)
    assert float(weights[0].max()) == pytest.approx(0.45273810625076294, rel=1e-7)


def test_two_trees_agree_and_a_changed_one_does_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    comparison = msdump.compare(GOLDEN / "tensor", GOLDEN / "tensor")
    assert comparison.is_agreeing and comparison.operators
    statistics = compare_statistics(GOLDEN / "crc", GOLDEN / "tensor")
    assert statistics.is_agreeing
    assert {tensor.status for result in statistics.operators for tensor in result.outputs} == {"agrees"}
    shutil.copytree(GOLDEN / "crc", tmp_path / "other")
    path = tmp_path / "other" / "step0" / "proc1" / "dump.json"
    content = json.loads(path.read_text())
    content["data"]["Torch.relu.0.forward"]["output"][0]["Max"] = 7.0
    path.write_text(json.dumps(content))
    different = compare_statistics(tmp_path / "other", GOLDEN / "tensor")
    assert different.first_wrong is not None
    assert different.first_wrong.pair.mine.op_name == "Torch.relu.0.forward"
    assert main(["compare", str(GOLDEN / "crc"), str(GOLDEN / "tensor")]) == 2
    assert "msdump stat DIR --diff OTHER" in capsys.readouterr().err
    assert main(["stat", str(GOLDEN / "crc"), "--diff", str(GOLDEN / "nan")]) == 1


def test_a_damaged_tree_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(GOLDEN / "tensor", tmp_path / "cut")
    (tmp_path / "cut" / "step0" / "proc1" / "dump.json").write_text('{"data": {')
    assert main(["stat", str(tmp_path / "cut")]) == 4
    assert "dump.json" in capsys.readouterr().err

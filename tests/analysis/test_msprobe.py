"""Trees that mindstudio-probe 26.2 wrote: the commands read them as dumps."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import msdump
from msdump.analysis import compare_statistics, find_source_line
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
    assert "msdump stat DIR --golden OTHER" in capsys.readouterr().err
    assert main(["stat", str(GOLDEN / "crc"), "--golden", str(GOLDEN / "nan")]) == 1


def test_a_damaged_tree_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(GOLDEN / "tensor", tmp_path / "cut")
    (tmp_path / "cut" / "step0" / "proc1" / "dump.json").write_text('{"data": {')
    assert main(["stat", str(tmp_path / "cut")]) == 4
    assert "dump.json" in capsys.readouterr().err


LIBRARY = "File /env/site-packages/torch/nn/functional.py, line 9, in relu, \n return torch.relu(x)"
SCRIPT = "File /job/train.py, line 28, in <module>, \n loss = model(torch.log(x))"


@pytest.fixture
def with_lines(tmp_path: Path) -> Path:
    shutil.copytree(GOLDEN / "nan", tmp_path / "tree")
    stacks = {"0": [["Torch.log.0.forward"], [LIBRARY, SCRIPT]], "1": [["Torch.relu.0.forward"], [LIBRARY]]}
    (tmp_path / "tree" / "step0" / "proc1" / "stack.json").write_text(json.dumps(stacks))
    return tmp_path / "tree"


def test_a_call_has_the_line_of_its_stack(with_lines: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = msdump.find_nan(with_lines).first
    assert first is not None and (str(first.line), first.how) == ("/job/train.py:28", "made")
    assert main(["show", str(with_lines), "Torch.log.0.backward"]) == 0
    shown = capsys.readouterr().out
    assert shown.index("  /job/train.py:28  loss = model(torch.log(x))") < shown.index("  /env/site-packages/torch/")
    hits = find_source_line(with_lines, "torch.log(x)")
    assert [(hit.node.full_name, hit.line.line, hit.files) for hit in hits] == [("Torch.log.0.forward", 28, ())]
    assert find_source_line(with_lines, "train.py:28", iteration=5) == []
    assert main(["where", str(with_lines), "loss = model(torch.log(y))"]) == 3
    assert "Did you mean" in capsys.readouterr().err


def test_a_damaged_stack_is_named_and_the_rest_is_read(with_lines: Path) -> None:
    (with_lines / "step0" / "proc1" / "stack.json").write_text('{"0": [')
    report = msdump.find_nan(with_lines)
    assert report.first is not None and report.first.line is None
    assert [Path(path).name for path, _ in report.damaged] == ["stack.json"]


def test_arguments_that_differ_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trees = [tmp_path / name for name in ("mine", "golden")]
    for tree, form in zip(trees, ("tanh", "none"), strict=True):
        shutil.copytree(GOLDEN / "tensor", tree)
        folder = tree / "step0" / "proc1"
        content = json.loads((folder / "dump.json").read_text())
        content["data"]["Functional.linear.0.forward"]["input_kwargs"] = {"form": {"type": "str", "value": form}}
        (folder / "dump.json").write_text(json.dumps(content))
        (folder / "stack.json").write_text(json.dumps({"0": [["Functional.linear.0.forward"], [SCRIPT]]}))
    path = trees[0] / "step0" / "proc1" / "dump_tensor_data" / "Functional.linear.0.forward.output.0.pt"
    data = bytearray(path.read_bytes())
    (output,) = [tensor.load() for tensor in msdump.open(trees[0]).tensors() if tensor.path == str(path)]
    place = bytes(data).find(output.tobytes())
    data[place : place + 4] = np.float32(9).tobytes()
    path.write_bytes(data)
    assert main(["compare", *map(str, trees)]) == 1
    said = capsys.readouterr().out
    assert "train.py:28" in said and "attribute form: tanh against none" in said

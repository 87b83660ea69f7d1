"""The scripts and acl.json files of sample_code/acl do what their README says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import msdump
from msdump.formats.acl_stats_csv import read_acl_stats
from msdump.formats.bin import BinFile, read_bin

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("sklearn")

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = ROOT / "sample_code" / "acl"
OPERATORS = {
    "Data": {"picture"},
    "Cast": {"to_float"},
    "Reshape": {"to_row"},
    "Mul": {"normalize_square"},
    "ReduceSum": {"normalize_sum"},
    "Sqrt": {"normalize_length"},
    "Div": {"normalize_divide"},
    "Gemm": {"fc1", "fc2", "fc3"},
    "Relu": {"fc1_relu", "fc2_relu"},
    "Softmax": {"softmax"},
}


def python(folder: Path, *command: str, status: int = 0) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    python(folder, str(SAMPLES / "make_models.py"))
    return folder


@pytest.fixture
def folder(models: Path, tmp_path: Path) -> Path:
    for path in models.iterdir():
        (tmp_path / path.name).symlink_to(path)
    (tmp_path / "output").mkdir()
    return tmp_path


def infer(folder: Path, model: str, config: str) -> tuple[float, Path]:
    """What share of the pictures is read well, run in this process; the folder of the dump."""
    import msdump.acl

    content = json.loads((SAMPLES / config).read_text())
    assert content["dump"]["dump_path"] == "output"
    content["dump"]["dump_path"] = str(folder / "output")
    pictures, labels = np.load(folder / "pictures.npy"), np.load(folder / "labels.npy")
    with msdump.acl.dump(content):
        found = msdump.acl.load(folder / f"{model}.onnx")(pictures)["probabilities"].argmax(axis=1)
    return float(np.mean(found == labels)), folder / "output"


def files(dump: Path) -> dict[str, set[str]]:
    """Names of the operators of the only run, by type."""
    found: dict[str, set[str]] = {}
    for path in dump.glob("*/0/*/*/0/*"):
        op_type, name, *_ = path.name.split(".")
        found.setdefault(op_type, set()).add(name)
    return found


def operator(dump: Path, name: str) -> BinFile:
    (path,) = dump.glob(f"*/0/*/*/0/*.{name}.*")
    return read_bin(path)


def test_two_precisions_lose_what_the_first_one_reads(folder: Path) -> None:
    right, _ = infer(folder, "digits", "overflow.json")
    assert right > 0.9
    assert infer(folder, "digits_fp16", "dump_layers.json")[0] < 0.3
    assert 0.5 < infer(folder, "digits_int8", "dump_layers.json")[0] < right - 0.03
    assert not files(folder / "output")  # nothing overflows in the one, and the others are not the model of the list


def test_all_operators_with_inputs_and_outputs(folder: Path) -> None:
    _, dump = infer(folder, "digits", "dump_all.json")
    assert files(dump) == OPERATORS
    x, weight, bias, y = (tensor.host_array() for tensor in operator(dump, "fc1").tensors)
    np.testing.assert_allclose(x @ weight + bias, y, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(np.square(x).sum(axis=1), 1, rtol=1e-5)
    (step,) = {record.iteration for record in msdump.open(dump)}
    assert step == 0


def test_layers_range_and_blacklists(folder: Path) -> None:
    _, dump = infer(folder, "digits", "dump_layers.json")
    assert files(dump) == {"Gemm": {"fc1", "fc2", "fc3"}}
    (folder / "output").rename(folder / "layers")
    (folder / "output").mkdir()
    _, dump = infer(folder, "digits", "dump_range.json")
    assert set(files(dump)) == {"Mul", "ReduceSum", "Sqrt", "Div"}
    assert {tensor.io for tensor in operator(dump, "normalize_sum").tensors} == {"output"}
    (folder / "output").rename(folder / "range")
    (folder / "output").mkdir()
    _, dump = infer(folder, "digits", "dump_blacklist.json")
    assert files(dump) == {name: found for name, found in OPERATORS.items() if name != "Reshape"}
    # Those of the weights have no bytes.
    assert [(tensor.io, tensor.slot) for tensor in operator(dump, "fc2").tensors] == [("input", 0), ("output", 0)]


def test_statistics_are_those_of_the_tensors(folder: Path) -> None:
    _, dump = infer(folder, "digits", "dump_stats.json")
    assert {path.suffix for path in dump.glob("*/0/*/*/0/*")} == {".csv"}
    (path,) = dump.glob("*/0/*/*/0/*.normalize_sum.*")
    (row,) = read_acl_stats(path)
    assert row.max is not None and row.avg is not None
    energy = np.square(np.load(folder / "pictures.npy").astype(np.float32)).sum(axis=(1, 2))
    assert row.shape == (360, 1)
    assert row.max == pytest.approx(energy.max(), rel=1e-5)
    assert row.avg == pytest.approx(energy.mean(), rel=1e-5)


def test_the_overflow_is_the_sum(folder: Path) -> None:
    _, dump = infer(folder, "digits_fp16", "overflow.json")
    assert files(dump) == {"ReduceSum": {"normalize_sum"}, "Opdebug": {"Node_OpDebug"}}


def test_nobody_tramples_on_watched_memory(folder: Path) -> None:
    _, dump = infer(folder, "digits", "watcher.json")
    later = {f"{name}_To_fc1_relu" for name in ("fc2", "fc2_relu", "fc3")}
    assert files(dump) == {"Relu": {"fc1_relu", *later}}
    contents: set[Any] = {operator(dump, name).tensors[0].host_array().tobytes() for name in ("fc1_relu", *later)}
    assert len(contents) == 1


def test_an_operator_that_raises(folder: Path) -> None:
    np.save(folder / "cropped.npy", np.load(folder / "pictures.npy")[:, :4])
    command = ["acl", "run", "digits.onnx", "--input", "cropped.npy", "--dump", str(SAMPLES / "exception.json")]
    python(folder, "-m", "msdump", *command, status=1)
    (path,) = folder.glob("output/extra-info/data-dump/0/Gemm.fc1.*")
    assert read_bin(path).tensors[0].shape == (360, 32)


def test_pyacl_runs_pictures_and_then_one_operator(folder: Path) -> None:
    command = ["-m", "msdump", "run", str(SAMPLES / "infer_pyacl.py"), "digits.onnx"]
    printed = python(folder, *command, str(SAMPLES / "single_op.json"), "20")
    assert int(re.findall(r"^(\d+) of 20 are right", printed, re.MULTILINE)[0]) >= 15
    (path,) = folder.glob("output/*/0/Softmax.*")
    x, y = (tensor.host_array() for tensor in read_bin(path).tensors)
    np.testing.assert_array_equal(x, [0, 1, 2])
    np.testing.assert_allclose(y, np.exp(x) / np.exp(x).sum(), rtol=1e-6)


def test_the_short_script(folder: Path) -> None:
    printed = python(folder, str(SAMPLES / "infer.py"), "digits.onnx", str(SAMPLES / "dump_range.json"))
    assert re.search(r"^digits: accuracy 0\.9\d+\n4 files, ", printed)

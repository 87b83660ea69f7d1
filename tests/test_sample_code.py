"""The scripts of sample_code/dump do what their README says."""

from __future__ import annotations

import csv
import json
import os
import re
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msdump.formats.bin import BinFile, read_bin
from msdump.formats.npy_reader import read_npy
from msdump.mindspore.dataset import Cifar10Dataset
from tests.package import PACKAGE

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = ROOT / "sample_code" / "dump"
LOSS = re.compile(r"step: (\d+), losses: (\S+)")


def run(folder: Path, *command: str, **variables: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    # `python` of run_sync_dump.sh has to be this one.
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def python(folder: Path, script: str, *arguments: str, **variables: str) -> str:
    return run(folder, sys.executable, str(SAMPLES / script), *arguments, **variables)


def test_training_falls_and_the_dump_is_found_and_read(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    settings = json.loads((SAMPLES / "data_dump.json").read_text())
    assert settings["common_dump_settings"]["path"] == ""
    settings["common_dump_settings"].update(dump_mode=1, kernels=["conv2d"], input_output=2)
    (tmp_path / "data_dump.json").write_text(json.dumps(settings))
    command = ["-m", "msdump", "run", "--config", "data_dump.json", str(SAMPLES / "train_alexnet.py")]
    folders = {"MS_DIAGNOSTIC_DATA_PATH": str(tmp_path)}
    output = run(tmp_path, sys.executable, *command, "--batch_size", "2", "--steps", "2", **folders)
    losses = [float(loss) for _, loss in LOSS.findall(output)]
    assert [step for step, _ in LOSS.findall(output)] == ["1", "2"]
    assert losses[1] < losses[0] < 4
    assert (tmp_path / "datasets/digits/data_batch_5.bin").is_file()

    pattern = ["--dump_config", "data_dump.json", "--name", "Conv2D.*.output.0.*.npy"]
    files = python(tmp_path, "get_tensor_path.py", *pattern, **folders).split()
    shapes = {np.load(file).shape for file in files}
    assert len(files) == 5
    assert shapes == {(2, 96, 55, 55), (2, 256, 27, 27), (2, 384, 13, 13), (2, 256, 13, 13)}
    shown = python(tmp_path, "read_npy.py", "--npy_files", *files)
    assert len(re.findall(r"shape \(2, .*, dtype float32, min ", shown)) == 5
    graph = tmp_path / "debug_dump/rank_0/graphs/ms_output_trace_code_graph_0.ir"
    text = graph.read_text()
    number = 1 + (SAMPLES / "train_alexnet.py").read_text().splitlines().index("        x = self.conv3(x)")
    assert re.search(rf"train_alexnet\.py:{number}.*x = self\.conv3\(x\)", text)


@pytest.mark.slow
def test_run_sync_dump(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    output = run(tmp_path, "bash", str(SAMPLES / "run_sync_dump.sh"), "--steps", "1", "--batch_size", "1")
    assert len(LOSS.findall(output)) == 1
    assert len(re.findall(r"^Conv2D\.Conv2D-op\d+\..*: shape \(1, ", output, re.MULTILINE)) == 5
    assert len(list((tmp_path / "debug_dump/rank_0/AlexNet/0/0").glob("*.npy"))) > 200


def test_an_asynchronous_dump_is_found_and_converted(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    settings = json.loads((SAMPLES / "async_dump.json").read_text())
    settings["common_dump_settings"].update(dump_mode=1, kernels=["conv2d"])
    (tmp_path / "async_dump.json").write_text(json.dumps(settings))
    folders = {"MS_DIAGNOSTIC_DATA_PATH": str(tmp_path)}
    command = ["-m", "msdump", "run", "--config", "async_dump.json", str(SAMPLES / "train_alexnet.py")]
    run(tmp_path, sys.executable, *command, "--device_target", "Ascend", "--batch_size", "2", "--steps", "1", **folders)
    pattern = ["--dump_config", "async_dump.json", "--name", "Conv2D.*"]
    files = python(tmp_path, "get_tensor_path.py", *pattern, **folders).split()
    assert len(files) == 5
    assert {read_bin(file).tensors[0].format for file in files} == {"NC1HWC0"}
    options = ["--format", "NCHW", "--output-tensor", "0", "--output", "converted"]
    run(tmp_path, sys.executable, "-m", "msdump", "convert", *files, *options)
    shapes = [np.load(file).shape for file in (tmp_path / "converted").iterdir()]
    assert sorted(shapes) == [(2, 96, 55, 55), (2, 256, 13, 13), (2, 256, 27, 27), (2, 384, 13, 13), (2, 384, 13, 13)]


@pytest.mark.slow
def test_run_async_dump(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    output = run(tmp_path, "bash", str(SAMPLES / "run_async_dump.sh"), "--steps", "1", "--batch_size", "1")
    assert len(LOSS.findall(output)) == 1
    assert len(re.findall(r"^Conv2D\.\S*Conv2D-op\d+\..*: shape \(1, ", output, re.MULTILINE)) == 5


def broken_operators(folder: Path) -> list[str]:
    """Full names of the operators of a synchronous dump whose outputs hold Inf or NaN and whose inputs do not."""
    with (folder / "rank_0/execution_order/ms_execution_order_graph_0.csv").open(newline="") as file:
        names = [row[0] for row in csv.reader(file)][1:]  # a title comes first
    broken = []
    for name in names:
        files = list((folder / "rank_0/Digits/0/0").glob(f"*.{name.rpartition('/')[2]}.*.npy"))
        assert files, name
        is_broken = {io: [not np.isfinite(read_npy(file)).all() for file in files if f".{io}." in file.name]
                     for io in ("input", "output")}  # fmt: skip
        if any(is_broken["output"]) and not any(is_broken["input"]):
            broken.append(name)
    return broken


def test_the_overflow_sample_names_what_the_tensors_show(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    common = json.loads((SAMPLES / "overflow_dump.json").read_text())["common_dump_settings"]
    everything: dict[str, Any] = {
        "common_dump_settings": {**common, "op_debug_mode": 0, "iteration": "0", "path": str(tmp_path / "all")},
        "e2e_dump_settings": {"enable": True, "trans_flag": True},
    }
    (tmp_path / "all.json").write_text(json.dumps(everything))
    command = [sys.executable, "-m", "msdump", "run", "--config"]
    script = [str(SAMPLES / "overflow.py"), "--steps", "4"]
    run(tmp_path, *command, "all.json", *script)
    expected = broken_operators(tmp_path / "all")
    assert expected
    assert all(name.startswith("Gradients/") for name in expected)

    config = str(SAMPLES / "overflow_dump.json")
    printed = run(tmp_path, *command, config, *script, MS_DIAGNOSTIC_DATA_PATH=str(tmp_path))
    steps = [line.split("overflow: ")[1] for line in printed.splitlines()]
    assert steps[0] == "yes, step skipped"
    assert steps[-1] == "no"
    [folder] = (tmp_path / "debug_dump").glob("*/0/kernel_graph_0/0/0")
    dumps = sorted((read_bin(path) for path in folder.iterdir()), key=lambda dump: dump.dump_time_us)
    operators = [dump for dump in dumps if dump.op_name in expected]
    assert [dump.op_name for dump in operators] == expected
    for dump in operators:
        assert dump.tensors[0].host_array().dtype == np.float16
        for tensor in dump.tensors:
            assert np.isfinite(tensor.host_array()).all() == (tensor.io == "input")
    notes = [path for path in folder.iterdir() if path.name.startswith("Opdebug.")]
    assert len(notes) == len(operators)
    for path, dump in zip(sorted(notes, key=lambda path: path.suffix), operators, strict=True):
        check_opdebug(path, dump, next(folder.glob(f"*.{re.sub('[^A-Za-z0-9_-]', '_', dump.op_name)}.*")))


def check_opdebug(path: Path, operator: BinFile, operator_path: Path) -> None:
    """Field by field: which unit, and the ids that lead to the operator's own file."""
    prefix, name, *_ = path.name.split(".")
    assert (prefix, name) == ("Opdebug", "Node_OpDebug")
    content = path.read_bytes()
    (header,) = struct.unpack_from("<Q", content)
    assert len(content) == 8 + header + 2048
    data = content[8 + header :]
    task_id, stream_id = map(int, operator_path.name.split(".")[2:4])
    task = (0, stream_id, task_id, 0, 0, 0)  # model, stream, task, type of task, program counter, parameters
    nothing = (0,) * 6
    is_atomic = operator_path.name.split(".")[0] in ("BiasAddGrad", "Conv2DBackpropFilter")
    assert struct.unpack_from("<6Q", data, 0) == (task if is_atomic else nothing)
    assert struct.unpack_from("<6Q", data, 128) == nothing
    assert struct.unpack_from("<6Q", data, 256) == (nothing if is_atomic else task)
    assert struct.unpack_from("<Q", data, 512)[0] == is_atomic
    assert struct.unpack_from("<Q", data, 768)[0] == 0
    assert struct.unpack_from("<3Q", data, 1024) == (0, 0, int(not is_atomic))
    filled = {*range(48), *range(128, 176), *range(256, 304), *range(512, 520), *range(1024, 1048)}
    assert not any(byte for at, byte in enumerate(data) if at not in filled)


def test_pictures_that_lie_around_are_taken(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    python(tmp_path, "make_digits.py", "datasets/cifar10/train")
    code = (
        "import runpy, sys; from msdump.frontends.aliases import install_aliases; install_aliases(prefer_real=False)\n"
    )
    code += f"print(runpy.run_path({str(SAMPLES / 'train_alexnet.py')!r})['find_pictures']())"
    assert run(tmp_path, sys.executable, "-c", code).split() == ["datasets/cifar10/train"]
    assert not (tmp_path / "datasets/digits").exists()
    assert Cifar10Dataset(tmp_path / "datasets/cifar10/train", usage="train").get_dataset_size() == 1498


def test_the_packaged_sample_is_the_one_in_sample_code() -> None:
    import msdump.cli.samples

    packaged = Path(msdump.cli.samples.__file__).with_name("train_alexnet.py")
    assert packaged.read_bytes() == (SAMPLES / "train_alexnet.py").read_bytes()
    if SAMPLES.parents[1] / "msdump" == PACKAGE:
        assert packaged.resolve() == (SAMPLES / "train_alexnet.py").resolve()

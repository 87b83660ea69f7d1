"""The scripts of sample_code/dump do what their README says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from msdump.frontends.mindspore.dataset import Cifar10Dataset

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


def test_pictures_that_lie_around_are_taken(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    python(tmp_path, "make_digits.py", "datasets/cifar10/train")
    code = "import runpy, sys; from msdump.aliases import install_aliases; install_aliases(prefer_real=False)\n"
    code += f"print(runpy.run_path({str(SAMPLES / 'train_alexnet.py')!r})['find_pictures']())"
    assert run(tmp_path, sys.executable, "-c", code).split() == ["datasets/cifar10/train"]
    assert not (tmp_path / "datasets/digits").exists()
    assert Cifar10Dataset(tmp_path / "datasets/cifar10/train", usage="train").get_dataset_size() == 1498


def test_the_packaged_sample_is_the_one_in_sample_code() -> None:
    import msdump.samples

    packaged = Path(msdump.samples.__file__).with_name("train_alexnet.py")
    assert packaged.read_bytes() == (SAMPLES / "train_alexnet.py").read_bytes()
    assert packaged.resolve() == (SAMPLES / "train_alexnet.py").resolve()

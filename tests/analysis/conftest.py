"""Dumps that several tests read: a real one of LeNet-5, and the same script run here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

GOLDEN = Path(__file__).parent.parent / "golden" / "lenet"
ROOT = Path(__file__).parents[2]
# Where the first values of the weights stand in the reference: inputs of operators that ran before any update.
WEIGHT_OF = {
    "conv1.weight": ("Conv2D", 0, 1),
    "conv2.weight": ("Conv2D", 1, 1),
    "fc1.weight": ("MatMulBiasAddReluFusion", 0, 1),
    "fc1.bias": ("MatMulBiasAddReluFusion", 0, 2),
    "fc2.weight": ("MatMulBiasAddReluFusion", 1, 1),
    "fc2.bias": ("MatMulBiasAddReluFusion", 1, 2),
    "fc3.weight": ("MatMulBiasAddFusion", 0, 1),
    "fc3.bias": ("MatMulBiasAddFusion", 0, 2),
}


@pytest.fixture(scope="session")
def real_dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The dump of two training steps that MindSpore 2.0.0 made, file by file under its own names."""
    folder = tmp_path_factory.mktemp("real")
    packed = np.load(GOLDEN / "reference.npz")
    for name, digest in json.loads(packed["index"].tobytes()).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, packed[digest])
    order = folder / "rank_0/execution_order/ms_execution_order_graph_0.csv"
    order.parent.mkdir()
    order.write_bytes((GOLDEN / "ms_execution_order_graph_0.csv").read_bytes())
    return folder


def first_weights(dump: Path) -> dict[str, np.ndarray[Any, np.dtype[Any]]]:
    """Values of the weights before the first update."""
    names = (dump / "rank_0/execution_order/ms_execution_order_graph_0.csv").read_text().splitlines()[1:]
    by_type: dict[str, list[str]] = {}
    for name in (full_name.rsplit("/", 1)[-1] for full_name in names):
        by_type.setdefault(name.rsplit("-op", 1)[0], []).append(name)
    weights = {}
    for weight, (op_type, nth, slot) in WEIGHT_OF.items():
        (path,) = (dump / "rank_0/LeNet/0/0").glob(f"{op_type}.{by_type[op_type][nth]}.*.input.{slot}.*")
        weights[weight] = np.load(path)
    return weights


def run_lenet(folder: Path, weights: dict[str, np.ndarray[Any, np.dtype[Any]]], **settings: Any) -> Path:
    """Run the script of the real dump here with these first weights; the folder of its dump."""
    np.savez(folder / "weights.npz", **weights)  # type: ignore[arg-type]
    load = (
        "net = LeNet5()\n"
        f"weights = np.load({str(folder / 'weights.npz')!r})\n"
        "ms.load_param_into_net(net, {name: ms.Parameter(weights[name], name=name) for name in weights.files})\n"
    )
    script = (GOLDEN / "lenet.py").read_text()
    assert script.count("net = LeNet5()\n") == 1
    (folder / "lenet.py").write_text(script.replace("net = LeNet5()\n", load))
    config = json.loads((GOLDEN / "dump.json").read_text())
    config["common_dump_settings"] |= {"path": str(folder / "dump"), **settings}
    (folder / "dump.json").write_text(json.dumps(config))
    done = subprocess.run(
        [sys.executable, "-m", "msdump", "run", "--config", "dump.json", "lenet.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        # The release that made the real dump.
        env={**os.environ, "PYTHONPATH": str(ROOT), "MSDUMP_MINDSPORE_VERSION": "2.0"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "dump"


@pytest.fixture(scope="session")
def own_dump(needs_mindspore: None, real_dump: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same two steps, run here."""
    return run_lenet(tmp_path_factory.mktemp("own"), first_weights(real_dump), saved_data="full")


@pytest.fixture(scope="session")
def perturbed_dump(needs_mindspore: None, real_dump: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same again, with one weight of the second convolution moved."""
    weights = first_weights(real_dump)
    weights["conv2.weight"] = weights["conv2.weight"].copy()
    weights["conv2.weight"][3, 2, 1, 1] += np.float32(0.5)
    return run_lenet(tmp_path_factory.mktemp("perturbed"), weights)


@pytest.fixture(scope="session")
def fused_map(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """How the operators of the real dump were fused, and what it left out."""
    path = tmp_path_factory.mktemp("map") / "fused.json"
    types = {
        "MatMulBiasAddReluFusion": ["MatMul", "BiasAdd", "ReLU"],
        "MatMulBiasAddFusion": ["MatMul", "BiasAdd"],
        "Flatten": [],
        "Reshape": [],
    }
    path.write_text(json.dumps({"types": types}))
    return path

"""The same LeNet-5 run as a real MindSpore 2.0.0 on CPU: tree, names, modes, operators, values, losses."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.usefixtures("needs_mindspore")

GOLDEN = Path(__file__).parent.parent / "golden" / "lenet"
Array = np.ndarray[Any, np.dtype[Any]]
FUSED = {
    "MatMulBiasAddFusion": ("MatMul", "BiasAdd"),
    "MatMulBiasAddReluFusion": ("MatMul", "BiasAdd", "ReLU"),
}
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


@dataclass(frozen=True)
class Op:
    """One operator of one iteration with what was dumped of it."""

    op_type: str
    name: str
    inputs: dict[int, Array]
    outputs: dict[int, Array]


class Dump:
    """Operators of a dump in execution order, and its Parameter files, per iteration."""

    def __init__(self, arrays: dict[str, Array], order: list[str]) -> None:
        self._tensors: dict[tuple[int, str, str, int], Array] = {}
        for path, array in arrays.items():
            parts = Path(path).parts
            if len(parts) != 5 or not parts[3].isdigit():
                continue
            op_type, rest = parts[4].split(".", 1)
            name, _task, _stream, _time, io, slot, _format, _npy = rest.rsplit(".", 7)
            self._tensors[int(parts[3]), f"{op_type}.{name}", io, int(slot)] = array
        self._order = [name.rsplit("/", 1)[-1] for name in order]

    def ops(self, iteration: int) -> Iterator[Op]:
        for name in self._order:
            op_type = name.rsplit("-op", 1)[0]
            yield Op(
                op_type,
                name,
                self._slots(iteration, op_type, name, "input"),
                self._slots(iteration, op_type, name, "output"),
            )

    def _slots(self, iteration: int, op_type: str, name: str, io: str) -> dict[int, Array]:
        found = {
            key[3]: array for key, array in self._tensors.items() if key[:3] == (iteration, f"{op_type}.{name}", io)
        }
        return dict(sorted(found.items()))

    def parameter(self, iteration: int, name: str) -> Array:
        return self._tensors[iteration, f"Parameter.{name}", "output", 0]

    def parameters(self, iteration: int) -> set[str]:
        return {
            key[1].split(".", 1)[1] for key in self._tensors if key[0] == iteration and key[1].startswith("Parameter.")
        }


@pytest.fixture(scope="module")
def reference() -> Dump:
    packed = np.load(GOLDEN / "reference.npz")
    index = json.loads(packed["index"].tobytes())
    order = (GOLDEN / "ms_execution_order_graph_0.csv").read_text().splitlines()[1:]
    return Dump({path: packed[digest] for path, digest in index.items()}, order)


@dataclass(frozen=True)
class Run:
    root: Path
    losses: list[float]
    dump: Dump


@pytest.fixture(scope="module")
def run(reference: Dump, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("lenet")
    by_type: dict[str, list[Op]] = defaultdict(list)
    for op in reference.ops(0):
        by_type[op.op_type].append(op)
    weights = {name: by_type[kind][nth].inputs[slot] for name, (kind, nth, slot) in WEIGHT_OF.items()}
    np.savez(folder / "weights.npz", **weights)
    load = (
        "net = LeNet5()\n"
        f"weights = np.load({str(folder / 'weights.npz')!r})\n"
        "ms.load_param_into_net(net, {name: ms.Parameter(weights[name], name=name) for name in weights.files})\n"
    )
    script = (GOLDEN / "lenet.py").read_text()
    assert script.count("net = LeNet5()\n") == 1
    (folder / "lenet.py").write_text(script.replace("net = LeNet5()\n", load))
    config = json.loads((GOLDEN / "dump.json").read_text())
    config["common_dump_settings"]["path"] = str(folder / "dump")
    (folder / "dump.json").write_text(json.dumps(config))
    done = subprocess.run(
        [sys.executable, "-m", "msdump", "run", "--config", "dump.json", "lenet.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "MSDUMP_MINDSPORE_VERSION": "2.0"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    losses = [float(line) for line in done.stdout.splitlines() if _is_float(line)]
    arrays = {
        str(path.relative_to(folder / "dump")): np.load(path)
        for path in (folder / "dump").glob("rank_0/LeNet/**/*.npy")
    }
    order = folder / "dump/rank_0/execution_order/ms_execution_order_graph_0.csv"
    return Run(folder / "dump", losses, Dump(arrays, order.read_text().splitlines()[1:]))


def _is_float(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _close(actual: Array, expected: Array, what: str) -> None:
    assert actual.size == expected.size, what
    assert actual.dtype == expected.dtype, what
    if np.issubdtype(expected.dtype, np.floating):
        # 1e-4 of the tensor's largest value: float32 sums of both frameworks run in different orders.
        limit = 1e-4 * float(np.max(np.abs(expected), initial=0))
        np.testing.assert_allclose(actual.reshape(expected.shape), expected, rtol=1e-4, atol=limit, err_msg=what)
    else:
        np.testing.assert_array_equal(actual.reshape(expected.shape), expected, err_msg=what)


def _expanded(op: Op) -> tuple[str, ...]:
    return FUSED.get(op.op_type, (op.op_type,))


def _key(op_type: str, outputs: dict[int, Array]) -> tuple[str, tuple[int, ...]]:
    return op_type, outputs[0].shape


def test_operators_correspond_one_to_one(run: Run, reference: Dump) -> None:
    for iteration in (0, 1):
        ours = sorted(op.op_type for op in run.dump.ops(iteration) if op.op_type not in ("Flatten", "Reshape"))
        theirs = sorted(part for op in reference.ops(iteration) for part in _expanded(op))
        assert ours == theirs
        # MindSpore removes Flatten and its gradient: fc1 reads the 4-D tensor.
        assert [op.op_type for op in run.dump.ops(iteration) if op.op_type in ("Flatten", "Reshape")] == [
            "Flatten",
            "Reshape",
        ]


@pytest.mark.parametrize("iteration", [0, 1])
def test_every_tensor_agrees(run: Run, reference: Dump, iteration: int) -> None:
    ours: dict[tuple[str, tuple[int, ...]], list[Op]] = defaultdict(list)
    for op in run.dump.ops(iteration):
        ours[_key(op.op_type, op.outputs)].append(op)
    compared = 0
    for expected in reference.ops(iteration):
        parts = _expanded(expected)
        chain = [ours[_key(part, expected.outputs)].pop(0) for part in parts]
        first, last = chain[0], chain[-1]
        _close(last.outputs[0], expected.outputs[0], f"{expected.name}.output.0")
        compared += 1
        inputs = dict(first.inputs)
        if len(chain) > 1:
            inputs[2] = chain[1].inputs[1]
        assert inputs.keys() == expected.inputs.keys(), expected.name
        for slot, array in expected.inputs.items():
            if expected.op_type == "ApplyMomentum" and slot in (0, 1):
                continue  # MindSpore shows what the operator left there, not what it read
            _close(inputs[slot], array, f"{expected.name}.input.{slot}")
            compared += 1
        if expected.op_type == "ApplyMomentum":
            _close(first.outputs[0], expected.inputs[0], f"{expected.name}.input.0")
            compared += 1
    # All but the accumulators, which stand under Parameter.moments.*.
    assert compared == sum(len(op.inputs) + len(op.outputs) for op in reference.ops(iteration)) - 8


@pytest.mark.parametrize("iteration", [0, 1])
def test_parameter_files_agree(run: Run, reference: Dump, iteration: int) -> None:
    names = reference.parameters(iteration)
    assert run.dump.parameters(iteration) == names | {"inputs1"}  # MindSpore leaves the labels out
    for name in names:
        _close(run.dump.parameter(iteration, name), reference.parameter(iteration, name), name)


def test_losses_agree(run: Run, reference: Dump) -> None:
    expected = [
        float(op.outputs[0])
        for iteration in (0, 1)
        for op in reference.ops(iteration)
        if op.op_type == "SparseSoftmaxCrossEntropyWithLogits" and op.outputs[0].ndim == 0
    ]
    np.testing.assert_allclose(run.losses, expected, rtol=1e-5)


def test_tree_and_modes(run: Run) -> None:
    rank = run.root / "rank_0"
    folders = {str(path.relative_to(rank)) for path in rank.rglob("*") if path.is_dir()}
    assert folders == {
        ".dump_metadata",
        "LeNet",
        "LeNet/0",
        "LeNet/0/0",
        "LeNet/0/1",
        "LeNet/0/constants",
        "graphs",
        "execution_order",
    }
    files = {path.name for path in rank.rglob("*") if path.is_file() and path.suffix != ".npy"}
    assert files == {
        "data_dump.json",
        "config.json",
        "command.json",
        "ms_output_trace_code_graph_0.ir",
        "ms_output_trace_code_graph_0.pb",
        "ms_execution_order_graph_0.csv",
        "ms_global_execution_order_graph_0.csv",
    }
    for path in rank.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o400), path
    assert (rank / "execution_order/ms_global_execution_order_graph_0.csv").read_text() == "0\n1\n"
    header = (rank / "execution_order/ms_execution_order_graph_0.csv").read_text().splitlines()[0]
    assert header == (GOLDEN / "ms_execution_order_graph_0.csv").read_text().splitlines()[0]
    assert (rank / ".dump_metadata/config.json").read_bytes() == b'{"device_target":"CPU","ms_version":"2.0.0"}'

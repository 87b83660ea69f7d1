"""`set_dump`: its checks, which operators a mark reaches, and what dump_mode 2 leaves on disk."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msdump.mindspore as ms
from msdump.engine import opening
from msdump.formats.paths.sync import parse_data_file_name
from msdump.graph.graph import Graph
from msdump.mindspore import Tensor, nn, ops
from tests.mindspore.networks import LeNet5, digits, graphs_of, rows, training_step

DEVICE = (
    "Current device_target is CPU, which is not supported by set_dump. Only Ascend device target is supported "
    "currently. If you have Ascend device, consider set device_target to Ascend before calling set_dump."
)
MODE = (
    "Current mode is PYNATIVE_MODE, which is not supported by set_dump. Only GRAPH_MODE is supported currently. "
    "Consider set mode to GRAPH_MODE before calling set_dump."
)


@pytest.fixture
def dumping(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Switches Dump on with changes to a complete synchronous configuration; returns the folder of the dump."""

    def start(**changes: Any) -> Path:
        common = {
            "dump_mode": 2, "path": str(tmp_path / "dump"), "net_name": "Net", "iteration": "all",
            "input_output": 0, "kernels": [], "support_device": [0], **changes,
        }  # fmt: skip
        config = {"common_dump_settings": common, "e2e_dump_settings": {"enable": True, "trans_flag": True}}
        (tmp_path / "dump.json").write_text(json.dumps(config))
        monkeypatch.setenv("MINDSPORE_DUMP_CONFIG", str(tmp_path / "dump.json"))
        return tmp_path / "dump" / "rank_0"

    return start


def marked_types(graph: Graph) -> list[str]:
    return sorted(op.op_type for op in graph.op_infos() if op.is_marked)


def trained(net: nn.Cell, batch: tuple[Tensor, Tensor], *, mark: Any = None, enabled: bool = True) -> Graph:
    """The graph of one training step after `mark` was marked."""
    ms.set_context(mode=ms.GRAPH_MODE)
    step = training_step(net, nn.Momentum(net.trainable_params(), 0.01, 0.9))
    if mark is not None:
        ms.set_dump(mark, enabled)
    step(*batch)
    return graphs_of(step)[-1]


def test_arguments_are_checked_in_the_original_s_words() -> None:
    with pytest.raises(ValueError, match="instance") as caught:
        ms.set_dump(3)
    assert str(caught.value) == (
        "The \"target\" parameter must be an instance of Cell or Primitive, but got an instance of <class 'int'>."
    )
    with pytest.raises(ValueError, match=r'^The "enabled" parameter must be bool\.$'):
        ms.set_dump(nn.ReLU(), 1)


def test_strict_warns_once_for_every_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    net = nn.SequentialCell([nn.ReLU(), nn.Dense(2, 2)])
    ms.set_dump(net)  # no warning: marks work everywhere here
    monkeypatch.setenv("MINDSPORE_DUMP_CONFIG", "dump.json")
    monkeypatch.setenv("MSDUMP_STRICT", "1")
    with pytest.warns(UserWarning, match="set_dump") as found:
        ms.set_dump(net)
    assert [str(warning.message) for warning in found] == [DEVICE, MODE] * 3
    ms.set_context(mode=ms.GRAPH_MODE, device_target="Ascend")
    ms.set_dump(net)


def test_a_mark_reaches_forward_and_backward_of_a_cell_and_nothing_else() -> None:
    net = LeNet5()
    graph = trained(net, digits(), mark=net.conv2)
    assert marked_types(graph) == ["Conv2D", "Conv2DBackpropFilter", "Conv2DBackpropInput"]
    assert all("conv2-Conv2d" in op.full_name for op in graph.op_infos() if op.is_marked)
    everything = [op for op in trained(LeNet5(), digits(), mark=None).op_infos() if op.is_marked]
    assert everything == []


def test_children_are_marked_and_can_be_left_out_again() -> None:
    net = LeNet5()
    ms.set_dump(net)
    assert net.conv1.get_flags() == {"dump": True}
    graph = trained(net, digits(), mark=net.relu, enabled=False)
    types = marked_types(graph)
    assert "Conv2D" in types and "MaxPoolGrad" in types and "MatMul" in types
    assert not {"ReLU", "ReluGrad", "ApplyMomentum", "SparseSoftmaxCrossEntropyWithLogits"} & set(types)


@pytest.mark.parametrize("sparse", [True, False])
def test_a_marked_loss_shows_its_backward_only(sparse: bool) -> None:
    net, (data, labels) = nn.Dense(5, 3), rows()
    targets = labels if sparse else Tensor(np.eye(3, dtype=np.float32)[labels.asnumpy()])
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=sparse, reduction="mean")
    ms.set_context(mode=ms.GRAPH_MODE)
    step = training_step(net, nn.SGD(net.trainable_params(), 0.1), loss)
    ms.set_dump(loss)
    step(data, targets)
    (graph,) = graphs_of(step)
    marked = [op for op in graph.op_infos() if op.is_marked and "SoftmaxCrossEntropy" in op.full_name]
    assert marked
    assert all(op.full_name.startswith("Gradients/") for op in marked if op.op_type != "ReduceMean")
    evaluation = nn.WithEvalCell(net, loss)
    evaluation(data, targets)
    assert any("SoftmaxCrossEntropyWithLogits" in kind for kind in marked_types(graphs_of(evaluation)[0]))


class WithOperators(nn.Cell):
    """Operator objects of all kinds: own attributes, none, and a call that differs."""

    def __init__(self) -> None:
        super().__init__()
        self.relu, self.matmul, self.reduce = ops.ReLU(), ops.MatMul(transpose_b=True), ops.ReduceSum(keep_dims=True)

    def construct(self, x: Tensor) -> Any:
        return self.reduce(self.matmul(self.relu(x), x), 1) + x.mean()


@settings(max_examples=20, deadline=None)
@given(marks=st.dictionaries(st.sampled_from(["relu", "matmul", "reduce"]), st.booleans()), cell=st.booleans())
def test_operators_carry_marks_of_their_own(marks: dict[str, bool], cell: bool) -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    net = WithOperators()
    net.add_flags(dump=cell)
    for name, mark in marks.items():
        ms.set_dump(getattr(net, name), mark)
    net(Tensor(np.ones((2, 3), np.float32)))
    (graph,) = graphs_of(net)
    kinds = {"relu": "ReLU", "matmul": "MatMul", "reduce": "ReduceSum"}
    expected = [kind for name, kind in kinds.items() if marks.get(name, cell)]
    expected += ["Add", "ReduceMean"] if cell else []
    assert marked_types(graph) == sorted(expected)


def test_a_cell_passes_its_mark_to_operators_that_have_one() -> None:
    net = WithOperators()
    ms.set_dump(net.relu, False)
    ms.set_dump(net)
    assert net.relu.attrs["dump"] == "true"
    assert "dump" not in net.matmul.attrs


def files(root: Path, iteration: int = 0) -> set[str]:
    """Names of operators and parameters that were dumped."""
    names = [parse_data_file_name(path.name) for path in root.glob(f"Net/*/{iteration}/*.npy")]
    return {name.op_name for name in names if name is not None}


def test_only_marked_operators_are_on_disk(dumping: Callable[..., Path], caplog: pytest.LogCaptureFixture) -> None:
    root = dumping()
    net = LeNet5()
    graph = trained(net, digits(), mark=net.fc1)
    assert files(root) == {op.full_name.rpartition("/")[2] for op in graph.op_infos() if op.is_marked}
    assert len(files(root)) == 5
    assert not list(root.glob("Net/*/constants"))
    assert "nothing" not in caplog.text


def test_a_graph_without_marks_is_said(dumping: Callable[..., Path], caplog: pytest.LogCaptureFixture) -> None:
    root = dumping()
    graph = trained(LeNet5(), digits())
    said = [record.message for record in caplog.records if "set_dump" in record.message]
    assert said == [f"dump_mode 2: set_dump marked no operator of {graph.name}, so nothing of it will be dumped."]
    assert files(root) == set()


def test_marks_that_come_late_count_from_the_next_call(dumping: Callable[..., Path]) -> None:
    root = dumping()
    ms.set_context(mode=ms.GRAPH_MODE)
    net = nn.SequentialCell([nn.Dense(5, 4), nn.ReLU()])
    data, _ = rows()
    net(data)
    ms.set_dump(net[1])
    net(data)
    assert [path.name.split(".")[0] for path in sorted(root.rglob("*.npy"))] == ["ReLU"] * 2
    assert opening.current() is not None


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE], ids=["graph", "pynative"])
@pytest.mark.parametrize("saved", ["tensor", "full"])
def test_the_synchronous_dump_of_exceptions_has_the_operator_that_failed(
    dumping: Callable[..., Path], mode: int, saved: str
) -> None:
    """Mode 4: no good step, whatever `iteration` says, and of the bad one the operator that raised."""
    root = dumping(dump_mode=0, op_debug_mode=4, iteration="0", saved_data=saved)

    class Lookup(nn.Cell):
        def construct(self, table: Tensor, index: Tensor) -> Tensor:
            return ops.gather(ops.mul(table, 2), index, 0) + 1

    ms.set_context(mode=mode)
    net, table = Lookup(), Tensor(np.arange(6, dtype=np.float32).reshape(3, 2))
    for index in (0, 2):
        net(table, Tensor([index]))
    with pytest.raises(RuntimeError, match="expected indices in"):
        net(table, Tensor([7]))
    files = sorted(path for path in root.rglob("*") if path.is_file() and path.parent.name == "2")
    assert files and {path.parent for path in root.rglob("*.npy")} == {files[0].parent}
    tensors = [parse_data_file_name(path.name) for path in files if path.suffix == ".npy"]
    assert {(each.op_type, each.io, each.slot) for each in tensors} >= {("Gather", "input", 0), ("Gather", "input", 1)}
    assert {each.op_type for each in tensors} == {"Gather"}
    by_slot = {each.slot: path for each, path in zip(tensors, [f for f in files if f.suffix == ".npy"], strict=True)
               if each.io == "input"}  # fmt: skip
    np.testing.assert_array_equal(np.load(by_slot[0]), table.asnumpy() * 2)
    assert (files[0].parent / "statistic.csv").exists() == (saved == "full")
    assert list((root / "execution_order").glob("*.csv"))

"""Names, scopes, order and source lines of traced graphs, against those of real runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import msdump.mindspore as ms
from msdump.analysis.graph_info import GraphNode
from msdump.mindspore import Tensor, nn
from tests.mindspore.networks import LeNet5, SmallResNet, digits, graphs_of, training_step

B = "Default/network-WithLossCell/_backbone-LeNet5/"
G = "Gradients/" + B
# Source: order csv of a real LeNet-5 run, with the fused MatMulBiasAdd(Relu) taken apart and, inside a cell, the
# gradients of parameters before those of inputs.
LENET = [
    B + "conv1-Conv2d/Conv2D",
    B + "relu-ReLU/ReLU",
    B + "max_pool2d-MaxPool2d/MaxPool",
    B + "conv2-Conv2d/Conv2D",
    B + "relu-ReLU/ReLU",
    B + "max_pool2d-MaxPool2d/MaxPool",
    B + "flatten-Flatten/Flatten",
    B + "fc1-Dense/MatMul",
    B + "fc1-Dense/BiasAdd",
    B + "relu-ReLU/ReLU",
    B + "fc2-Dense/MatMul",
    B + "fc2-Dense/BiasAdd",
    B + "relu-ReLU/ReLU",
    B + "fc3-Dense/MatMul",
    B + "fc3-Dense/BiasAdd",
    "Default/network-WithLossCell/_loss_fn-SoftmaxCrossEntropyWithLogits/SparseSoftmaxCrossEntropyWithLogits",
]
LAST_BACKWARD = [
    G + "max_pool2d-MaxPool2d/gradMaxPool-meta/MaxPoolGrad",
    G + "relu-ReLU/gradReLU-expand/ReluGrad",
    G + "conv1-Conv2d/gradConv2D-expand/Conv2DBackpropFilter",
    "Default/optimizer-Momentum/ApplyMomentum",
]
COUNT = "Default/optimizer-Momentum/AssignAdd"
LAYERS = ("fc3.bias", "fc3.weight", "fc2.bias", "fc2.weight", "fc1.bias", "fc1.weight", "conv2.weight", "conv1.weight")


@pytest.fixture
def lenet_step() -> nn.Cell:
    ms.set_context(mode=ms.GRAPH_MODE)
    net = LeNet5()
    step = training_step(net, nn.Momentum(net.trainable_params(), 0.01, 0.9))
    step(*digits())
    return step


def test_lenet_operators_in_order(lenet_step: nn.Cell) -> None:
    (graph,) = graphs_of(lenet_step)
    names = [node.full_name.rpartition("-op")[0] for node in graph.nodes]
    assert names[: len(LENET)] == LENET
    assert names[-4:] == LAST_BACKWARD
    # Source: order csv of a LeNet-5 run of 2.7.0: the step is counted when the first gradient of a parameter is there.
    assert names.index(COUNT) == names.index("Default/optimizer-Momentum/ApplyMomentum") - 1
    updated = [node.inputs[0].name for node in graph.nodes if node.op_type == "ApplyMomentum"]
    assert sorted(updated) == sorted(LAYERS)
    assert updated.index("fc3.bias") < updated.index("fc2.bias") < updated.index("conv2.weight") < 7


def test_op_ids_are_unique_and_rising(lenet_step: nn.Cell) -> None:
    (graph,) = graphs_of(lenet_step)
    assert [node.op_id for node in graph.nodes] == list(range(len(graph.nodes)))
    assert len({node.full_name for node in graph.nodes}) == len(graph.nodes)


def test_parameter_order_is_that_of_mindspore(lenet_step: nn.Cell) -> None:
    """That of 2.0, which has no count of steps: docs/compatibility.md."""
    (graph,) = graphs_of(lenet_step)
    names = [value.name for value in graph.parameter_order]
    head = [*LAYERS, "inputs0", "inputs1", "global_step", "moments.fc3.bias", "learning_rate", "momentum"]
    assert names == head + [f"moments.{name}" for name in LAYERS[1:]]


def test_source_lines_end_in_the_user_s_line(lenet_step: nn.Cell) -> None:
    (graph,) = graphs_of(lenet_step)
    lines = graph.nodes[3].source
    assert [Path(line.path).name for line in lines] == ["cell_wrapper.py", "cell_wrapper.py", "networks.py"]
    assert lines[-1].code == "        x = self.max_pool2d(self.relu(self.conv2(x)))"
    assert all(Path(line.path).is_absolute() for node in graph.nodes for line in node.source)
    backward = next(node for node in graph.nodes if node.op_type == "Conv2DBackpropInput")
    assert backward.source == lines


def test_class_names_can_be_left_out() -> None:
    ms.set_context(mode=ms.GRAPH_MODE, reserve_class_name_in_scope=False)
    net = LeNet5()
    step = training_step(net, nn.Momentum(net.trainable_params(), 0.01, 0.9))
    step(*digits())
    scopes = {node.scope for node in graphs_of(step)[0].nodes}
    assert {"Default/network/_backbone/conv1", "Default/optimizer", "Default/network/_loss_fn"} <= scopes


def test_children_of_containers_are_numbered() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    net = SmallResNet()
    net(Tensor(np.zeros((1, 3, 16, 16), np.float32)))
    scopes = [node.scope for node in graphs_of(net)[0].nodes]
    assert "Default/blocks-SequentialCell/1-Block/bn-BatchNorm2d" in scopes
    assert "Default/heads-CellList/0-Dense" in scopes
    assert scopes.count("Default/blocks-SequentialCell/0-Block") == 1


def test_functions_have_no_cells_in_their_scopes() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    net = LeNet5()
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    seen: list[str] = []

    @ms.jit
    def forward(x: Tensor, y: Tensor) -> Tensor:
        result: Tensor = loss(net(x), y)
        value = result._value
        assert value is not None and value.node is not None
        seen.append(value.node.scope)
        return result

    forward(*digits())
    assert seen == ["Default"]


def test_argument_names_become_input_names() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    net = LeNet5()
    evaluation = nn.WithEvalCell(net, nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"))
    evaluation(*digits())
    assert [value.name for value in graphs_of(evaluation)[0].inputs] == ["data", "label"]


def test_parameters_are_named_after_their_place() -> None:
    net = SmallResNet()
    names = [parameter.name for parameter in net.get_parameters()]
    assert names[:3] == ["stem.weight", "blocks.0.conv.weight", "blocks.0.bn.moving_mean"]
    assert names[-1] == "heads.1.bias"
    assert list(net.parameters_dict()) == names
    assert [parameter.name for parameter in net.untrainable_params()] == [
        f"blocks.{at}.bn.{name}" for at in (0, 1) for name in ("moving_mean", "moving_variance")
    ]
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    assert optimizer.moments[0].name == "moments.stem.weight"
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer)
    assert [parameter.name for parameter in net.get_parameters()] == names
    assert "moments.heads.1.bias" in step.parameters_dict()


def test_a_program_of_library_cells_has_the_line_that_calls_it() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    net = nn.SequentialCell(nn.Dense(2, 3), nn.ReLU())
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.1))
    step(Tensor(np.ones((4, 2), np.float32)), Tensor(np.ones((4, 3), np.float32)))  # the call
    (graph,) = graphs_of(step)
    for node in graph.nodes:
        own = GraphNode(node.full_name, node.op_type, node.source, ()).own_line
        assert own is not None and own.path == __file__ and own.code.endswith("# the call")
    square = next(node for node in graph.nodes if node.op_type == "Square")
    assert [Path(line.path).name for line in square.source][1:] == ["cell_wrapper.py", "cell_wrapper.py", "loss.py"]

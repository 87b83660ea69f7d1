"""Execution order: what must hold for every graph, and the two habits that real order files show."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.graph.graph import Graph, Node, Parameter, Value
from msdump.graph.primitive import Primitive
from msdump.graph.types import TensorType
from msdump.mindspore.program.autodiff import gradients
from msdump.mindspore.program.compile import finish
from msdump.mindspore.program.executor import Executor
from msdump.mindspore.program.graph_cases import GraphCase, graphs


@settings(max_examples=50, deadline=None)
@given(graphs())
def test_scheduled_graph_is_well_formed_and_numbered(case: GraphCase) -> None:
    case.graph.lint()
    names = [node.full_name for node in case.graph.nodes]
    assert len(set(names)) == len(names)
    assert [node.op_id for node in case.graph.nodes] == list(range(len(names)))


@settings(max_examples=50, deadline=None)
@given(graphs())
def test_no_dead_node_remains(case: GraphCase) -> None:
    read = {value.id for node in case.graph.nodes for value in node.inputs}
    read.update(value.id for value in case.graph.outputs)
    for node in case.graph.nodes:
        assert node.definition.has_side_effect or any(value.id in read for value in node.outputs)


def _dense(graph: Graph, x: Value, name: str, units: int) -> Value:
    weight = Parameter(f"{name}.weight", np.ones((units, x.type.shape[1]), np.float32), "float32")
    bias = Parameter(f"{name}.bias", np.zeros(units, np.float32), "float32")
    scope = f"Default/{name}-Dense"
    matmul = Primitive("MatMul", {"transpose_a": False, "transpose_b": True})
    product = graph.add_node(matmul, [x, graph.add_parameter(weight)], scope).outputs[0]
    return graph.add_node(Primitive("BiasAdd"), [product, graph.add_parameter(bias)], scope).outputs[0]


def _training_graph(layers: int) -> Graph:
    graph = Graph()
    value = graph.add_input("x", TensorType("float32", (2, 3)))
    for number in range(layers):
        value = _dense(graph, value, f"fc{number}", 3)
        value = graph.add_node(Primitive("Square"), [value], "Default/act-Square").outputs[0]
    loss = graph.add_node(Primitive("ReduceSum", {"axis": (), "keep_dims": False}), [value], "Default").outputs[0]
    weights = list(graph.parameters)
    for weight, gradient in zip(reversed(weights), reversed(gradients(graph, loss, weights)), strict=True):
        assert gradient is not None
        graph.add_node(Primitive("AssignSub"), [weight, gradient], "Default/optimizer-Plain", stage="update")
    graph.outputs = [loss]
    return finish(graph)


def _position(graph: Graph, node: Node | None) -> int:
    return graph.nodes.index(node) if node is not None else -1


@settings(max_examples=10, deadline=None)
@given(st.integers(1, 4))
def test_updates_follow_their_cell_and_readers(layers: int) -> None:
    graph = _training_graph(layers)
    updates = [node for node in graph.nodes if node.stage == "update"]
    assert len(updates) == 2 * layers
    for node in updates:
        weight, gradient = node.inputs
        assert _position(graph, gradient.node) < graph.nodes.index(node)
        readers = [other for other in graph.nodes if weight in other.inputs and other is not node]
        assert all(graph.nodes.index(reader) < graph.nodes.index(node) for reader in readers)
    # Memory of a gradient is freed before the next cell's gradients are made: no update waits for the end.
    last_backward = max(graph.nodes.index(node) for node in graph.nodes if node.stage == "backward")
    early = [node for node in updates if graph.nodes.index(node) < last_backward]
    assert len(early) == 2 * (layers - 1)


def test_dense_backward_order() -> None:
    graph = _training_graph(2)
    tail = [node.op_type for node in graph.nodes if node.stage != "forward"]
    start = tail.index("MatMul")
    assert tail[start : start + 5] == ["MatMul", "BiasAddGrad", "MatMul", "AssignSub", "AssignSub"]
    names = [node.inputs[0].name for node in graph.nodes if node.stage == "update"]
    assert names == ["fc1.bias", "fc1.weight", "fc0.bias", "fc0.weight"]


def test_training_moves_the_weights() -> None:
    graph = _training_graph(2)
    before = {value.name: value.parameter.array.copy() for value in graph.parameters if value.parameter}
    Executor(graph).run([np.full((2, 3), 0.1, np.float32)])
    for value in graph.parameters:
        assert value.parameter is not None
        assert not np.array_equal(before[value.name], value.parameter.array), value.name


def _counting_graph(is_read: bool) -> Graph:
    """An update that waits for no gradient, and an operator of the network that may read what it wrote."""
    graph = Graph()
    x = graph.add_input("x", TensorType("float32", (2,)))
    weight = graph.add_parameter(Parameter("weight", np.ones(2, np.float32), "float32"))
    step = graph.add_parameter(Parameter("global_step", np.zeros(2, np.float32), "float32"))
    graph.add_node(Primitive("AssignAdd"), [step, x], "Default/optimizer-Plain", stage="update")
    read = [graph.add_node(Primitive("Neg"), [step], "Default").outputs[0]] if is_read else []
    product = graph.add_node(Primitive("Mul"), [x, weight], "Default").outputs[0]
    loss = graph.add_node(Primitive("ReduceSum", {"axis": (), "keep_dims": False}), [product], "Default").outputs[0]
    (gradient,) = gradients(graph, loss, [weight])
    assert gradient is not None
    graph.add_node(Primitive("AssignSub"), [weight, gradient], "Default/optimizer-Plain", stage="update")
    graph.outputs = [loss, *read]
    return finish(graph)


def test_an_update_that_waits_for_nothing_comes_beside_the_first_that_does() -> None:
    order = [node.op_type for node in _counting_graph(is_read=False).nodes]
    assert order[-2:] == ["AssignAdd", "AssignSub"]


def test_what_reads_an_update_comes_behind_it() -> None:
    graph = _counting_graph(is_read=True)
    assert [node.op_type for node in graph.nodes][:2] == ["AssignAdd", "Neg"]
    assert [node.op_id for node in graph.nodes] == list(range(len(graph.nodes)))

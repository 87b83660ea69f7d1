"""Cross entropy losses."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.errors import ExecutionError, GraphError
from msdump.graph.graph import Graph
from msdump.graph.primitive import Primitive
from msdump.mindspore.program.autodiff import gradients
from tests.mindspore.kernels.interpreter import check_gradient, run_graph, run_op, type_of

SPARSE, DENSE = "SparseSoftmaxCrossEntropyWithLogits", "SoftmaxCrossEntropyWithLogits"


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 5), st.integers(1, 6), st.integers(0, 99))
def test_losses_are_their_definition(rows: int, classes: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    logits, labels = random.standard_normal((rows, classes)), random.integers(0, classes, rows).astype(np.int32)
    chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    each = [-math.log(chances[row, label]) for row, label in enumerate(labels)]
    ones = np.eye(classes)[labels]
    assert run_op(SPARSE, [logits, labels])[0] == pytest.approx(np.mean(each))
    gradient = run_op(SPARSE, [logits, labels], {"is_grad": True})[0]
    np.testing.assert_allclose(gradient, (chances - ones) / rows, atol=1e-12)
    losses, dlogits = run_op(DENSE, [logits, ones])
    np.testing.assert_allclose(losses, each, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(dlogits, chances - ones, atol=1e-12)


@pytest.mark.parametrize("sens", [1.0, 128.0])
def test_sparse_bprop_agrees_with_differences(sens: float) -> None:
    logits = np.random.default_rng(1).standard_normal((3, 4))
    labels = np.array([0, 3, 1], np.int32)
    assert run_op(SPARSE, [logits, labels], {"is_grad": True, "sens": sens})[0] == pytest.approx(
        sens * run_op(SPARSE, [logits, labels], {"is_grad": True})[0]
    )
    check_gradient(SPARSE, [logits, labels], {"is_grad": False, "sens": 1.0}, wrt=[0])


def test_dense_bprop_agrees_with_differences() -> None:
    """Labels that sum to one: only then is softmax - labels the gradient."""
    logits = np.random.default_rng(2).standard_normal((3, 4))
    labels = np.array([[1, 0, 0, 0], [0.25, 0.25, 0.25, 0.25], [0, 0.5, 0.5, 0]])
    check_gradient(DENSE, [logits, labels], wrt=[0])


def test_gradient_of_the_loss_itself_is_one_node() -> None:
    """Source: MindSpore 2.0 IR: the same operator with is_grad, no Mul after it."""
    graph = Graph()
    logits, labels = np.array([[1.0, 2.0]], np.float32), np.array([1], np.int32)
    values = [graph.add_input("logits", type_of(logits)), graph.add_input("labels", type_of(labels))]
    node = graph.add_node(Primitive(SPARSE, {"is_grad": False, "sens": 1.0}), values, "Default/_loss_fn")
    (gradient,) = gradients(graph, node.outputs[0], values[:1])
    assert [n.op_type for n in graph.nodes] == [SPARSE, SPARSE]
    assert graph.nodes[1].primitive.attrs == {"is_grad": True, "sens": 1.0}
    assert graph.nodes[1].scope == f"Gradients/Default/_loss_fn/grad{SPARSE}"
    assert gradient is not None
    rest = 1 / (1 + math.e)
    np.testing.assert_allclose(run_graph(graph, [logits, labels])[gradient.id], [[rest, -rest]], rtol=1e-6)
    with pytest.raises(GraphError, match="gradient of a gradient"):
        gradients(graph, gradient, values[:1])


def test_edges() -> None:
    labels = np.array([0], np.int32)
    assert np.isnan(run_op(SPARSE, [np.array([[np.nan, 0]], np.float32), labels])[0])
    assert run_op(SPARSE, [np.array([[-np.inf, 0]], np.float32), labels])[0] == np.inf
    assert run_op(SPARSE, [np.array([[-1e4, 0]], np.float32), labels])[0] == 1e4
    assert np.isnan(run_op(SPARSE, [np.zeros((0, 2), np.float32), np.zeros(0, np.int32)])[0])
    losses, _ = run_op(DENSE, [np.array([[-np.inf, 0]], np.float32), np.array([[0, 1]], np.float32)])
    assert losses.tolist() == [0]
    assert not np.signbit(losses).any()


@pytest.mark.parametrize("label", [-1, 4])
def test_label_outside_of_the_classes_is_named(label: int) -> None:
    labels = np.array([0, label, 1], np.int32)
    with pytest.raises(ExecutionError, match=rf"labels\[1\]: expected a class in \[0, 4\), got {label}\."):
        run_op(SPARSE, [np.zeros((3, 4), np.float32), labels])


def test_misfits_are_refused() -> None:
    logits = np.zeros((3, 4), np.float32)
    with pytest.raises(GraphError, match="labels of dtype"):
        run_op(SPARSE, [logits, np.zeros(3, np.float32)])
    with pytest.raises(GraphError, match="labels of shape"):
        run_op(SPARSE, [logits, np.zeros(4, np.int32)])
    with pytest.raises(GraphError, match="labels float32"):
        run_op(DENSE, [logits, np.zeros((3, 5), np.float32)])
    with pytest.raises(GraphError, match="features of shape"):
        run_op(DENSE, [logits[0], logits[0]])

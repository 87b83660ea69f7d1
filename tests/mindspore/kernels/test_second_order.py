"""Gradients of gradients against central differences of the gradients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from msdump.graph.graph import Graph
from msdump.graph.primitive import Primitive
from msdump.mindspore.program.autodiff import gradients
from msdump.tensors.arrays import Array
from tests.mindspore.kernels.interpreter import check_graph_gradient, type_of
from tests.mindspore.kernels.test_gradients import positive, reals

SMALL = {"kernel_size": (2, 2), "strides": (1, 1), "pad_mode": "same"}
CASES: list[tuple[str, list[Array], Mapping[str, Any]]] = [
    *((name, [reals(2, 3)], {}) for name in ("ReLU", "ReLU6", "Sigmoid", "Tanh", "GeLU", "Reciprocal")),
    *((name, [positive(2, 3)], {}) for name in ("Sqrt", "Rsqrt")),
    *((name, [reals(2, 3), reals(3) * 1.7], {}) for name in ("Maximum", "Minimum")),
    ("LogSoftmax", [reals(2, 3)], {"axis": -1}),
    ("BiasAdd", [reals(2, 3, 2), reals(3)], {"format": "NCHW"}),
    ("Slice", [reals(3, 4)], {"begin": (1, 0), "size": (2, -1)}),
    ("StridedSlice", [reals(3, 4)], {"begin": (0, 3), "end": (3, 0), "strides": (2, -1)}),
    ("GatherD", [reals(3, 2), np.array([[0, 0], [2, 1]])], {"dim": 0}),
    ("AvgPool", [reals(1, 2, 3, 3)], SMALL),
    ("MaxPool", [reals(1, 2, 3, 3)], SMALL),
    ("LayerNorm", [reals(3, 4), reals(4), reals(4)], {"epsilon": 1e-3}),
    ("GroupNorm", [reals(2, 4, 2), reals(4), reals(4)], {"num_groups": 2, "eps": 1e-3}),
    *(
        ("BatchNorm", [reals(3, 2, 2), *(positive(2) for _ in range(4))], {"is_training": flag, "epsilon": 1e-3})
        for flag in (True, False)
    ),
]
BY_NUMPY = {"ReLU", "BiasAdd", "Slice", "StridedSlice", "GatherD"}


@pytest.mark.parametrize(("op_type", "arrays", "attrs"), CASES, ids=[row[0] for row in CASES])
def test_gradient_of_each_gradient(op_type: str, arrays: list[Array], attrs: Mapping[str, Any]) -> None:
    """Of the gradient of a square, so that it depends on the gradient that the operator gets."""
    if op_type not in BY_NUMPY:
        pytest.importorskip("torch")
    graph = Graph()
    inputs = [graph.add_input(f"x{slot}", type_of(array)) for slot, array in enumerate(arrays)]
    wrt = [value for value in inputs[: 3 if op_type == "BatchNorm" else None] if value.type.dtype == "float64"]
    result = graph.add_node(Primitive(op_type, dict(attrs)), inputs, "Default").outputs[0]
    square = graph.add_node(Primitive("Square"), [result], "Default").outputs[0]
    for first in gradients(graph, square, wrt, graph.add_constant(reals(*square.type.shape), "float64")):
        assert first is not None
        dependent = [value for value in wrt if gradients(graph, first, [value])[0] is not None]
        check_graph_gradient(graph, first, arrays, dependent, rtol=1e-4, atol=1e-5)


def test_penalty_on_a_gradient_reaches_the_weights() -> None:
    """As in a GAN with a gradient penalty: MatMul, Maximum of a slope, MatMul."""
    graph = Graph()
    arrays = [reals(2, 3), reals(3, 4), reals(4, 1)]
    x, first, last = (graph.add_input(f"x{slot}", type_of(array)) for slot, array in enumerate(arrays))
    hidden = graph.add_node(Primitive("MatMul"), [x, first], "Default").outputs[0]
    slope = graph.add_constant(np.asarray(0.2), "float64")
    leaky = graph.add_node(Primitive("Mul"), [hidden, slope], "Default").outputs[0]
    bent = graph.add_node(Primitive("Maximum"), [leaky, hidden], "Default").outputs[0]
    score = graph.add_node(Primitive("MatMul"), [bent, last], "Default").outputs[0]
    (gradient,) = gradients(graph, score, [x])
    assert gradient is not None
    penalty = graph.add_node(Primitive("Square"), [gradient], "Default").outputs[0]
    check_graph_gradient(graph, penalty, arrays, [first, last], rtol=1e-4, atol=1e-5)

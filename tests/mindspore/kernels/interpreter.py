"""The smallest thing that runs a graph: one numpy kernel after the other, no arena, no observers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import msdump.mindspore.kernels  # noqa: F401  fills the registry
from msdump.graph.graph import Graph, Node, Value
from msdump.graph.primitive import Primitive, definition_of
from msdump.graph.types import TensorType
from msdump.mindspore.program.autodiff import gradients
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array


def type_of(array: Array) -> TensorType:
    """TensorType of an array."""
    return TensorType(dtypes.dtype_from_numpy(array.dtype).name, tuple(array.shape))


def empty_like_type(tensor_type: TensorType, fill: int = 0xA5) -> Array:
    """New array whose bytes are all `fill`, so that an element without a write shows."""
    array: Array = np.empty(tensor_type.shape, dtypes.dtype(tensor_type.dtype).numpy)
    array.reshape(-1).view(np.uint8)[...] = fill if tensor_type.dtype != "bool" else fill & 1
    return array


def run_op(
    op_type: str,
    inputs: Sequence[Any],
    attrs: Mapping[str, Any] | None = None,
    provider: str = "numpy",
) -> tuple[Array, ...]:
    """Outputs of one primitive on arrays; mutated inputs are written. PyTorch computes what numpy cannot."""
    arrays = [np.asarray(array) for array in inputs]
    return run_kernel(op_type, arrays, attrs or {}, provider)


def run_kernel(op_type: str, arrays: Sequence[Array], attrs: Mapping[str, Any], provider: str) -> tuple[Array, ...]:
    definition = definition_of(op_type)
    assert definition.infer is not None, f"{op_type} has no infer"
    types = definition.infer([type_of(array) for array in arrays], attrs)
    outputs: list[Array] = []
    for slot, tensor_type in enumerate(types):
        if slot in definition.aliases:
            outputs.append(arrays[definition.aliases[slot]])
        elif slot in definition.views:
            outputs.append(arrays[definition.views[slot]].reshape(tensor_type.shape))
        else:
            outputs.append(empty_like_type(tensor_type))
    kernel = definition.kernels.get(provider) or definition.kernels["torch"]
    kernel(arrays, attrs, outputs)
    return tuple(outputs)


def run_graph(graph: Graph, inputs: Sequence[Array]) -> dict[int, Array]:
    """Arrays of all values by value id after the nodes ran in order.

    `inputs` follow `graph.inputs`. Parameters and inputs are copied first: the graph stays as it is. A value that
    an operator mutates shows what it holds at the end.
    """
    values: dict[int, Array] = {}
    for value, array in zip(graph.inputs, inputs, strict=True):
        assert type_of(array) == value.type, f"input {value.name}: expected {value.type}, got {type_of(array)}"
        values[value.id] = np.array(array, copy=True, order="C")
    for value in graph.parameters:
        assert value.parameter is not None
        values[value.id] = value.parameter.array.copy()
    for value in graph.constants:
        assert value.constant is not None
        values[value.id] = value.constant
    for node in graph.nodes:
        _run_node(node, values)
    return values


def _run_node(node: Node, values: dict[int, Array]) -> None:
    provider = "numpy" if "numpy" in node.definition.kernels else "torch"
    outputs = run_kernel(node.op_type, [values[value.id] for value in node.inputs], node.primitive.attrs, provider)
    for value, array in zip(node.outputs, outputs, strict=True):
        assert type_of(array) == value.type
        values[value.id] = array


def check_gradient(
    op_type: str,
    inputs: Sequence[Any],
    attrs: Mapping[str, Any] | None = None,
    *,
    wrt: Sequence[int] | None = None,
    output: int = 0,
    step: float = 1e-6,
    rtol: float = 1e-5,
    atol: float = 1e-6,
) -> None:
    """The bprop of one primitive against central differences, in float64.

    `wrt`: input slots to differentiate; None means all floating inputs. `output`: the output that the loss reads.
    """
    graph = Graph()
    arrays = [np.asarray(array) for array in inputs]
    values = [graph.add_input(f"x{slot}", type_of(array)) for slot, array in enumerate(arrays)]
    node = graph.add_node(Primitive(op_type, dict(attrs or {})), values, "Default")
    chosen = wrt if wrt is not None else [s for s, array in enumerate(arrays) if array.dtype == np.float64]
    check_graph_gradient(graph, node.outputs[output], arrays, [values[s] for s in chosen], step, rtol, atol)


def check_graph_gradient(
    graph: Graph,
    target: Value,
    inputs: Sequence[Array],
    wrt: Sequence[Value],
    step: float = 1e-6,
    rtol: float = 1e-5,
    atol: float = 1e-6,
) -> None:
    """Gradients of a random weighting of `target` against central differences; `wrt` are inputs of the graph."""
    weights = np.random.default_rng(7).standard_normal(target.type.shape)
    forward_count = len(graph.nodes)
    sens = graph.add_constant(weights, "float64")
    found = gradients(graph, target, wrt, sens)
    graph.lint()
    values = run_graph(graph, inputs)
    backward = graph.nodes[forward_count:]
    del graph.nodes[forward_count:]
    try:
        slots = [graph.inputs.index(value) for value in wrt]
        expected = [_difference(graph, target, weights, inputs, slot, step) for slot in slots]
    finally:
        graph.nodes.extend(backward)
    for slot, gradient, numeric in zip(slots, found, expected, strict=True):
        assert gradient is not None, f"input {slot} got no gradient"
        np.testing.assert_allclose(values[gradient.id], numeric, rtol=rtol, atol=atol, err_msg=f"input {slot}")


def _difference(graph: Graph, target: Value, weights: Array, inputs: Sequence[Array], slot: int, step: float) -> Array:
    """Central difference of sum(weights * target) along each element of one input."""

    def loss(shifted: Array) -> float:
        arrays = [shifted if i == slot else array for i, array in enumerate(inputs)]
        return float(np.sum(run_graph(graph, arrays)[target.id] * weights))

    numeric = np.zeros(inputs[slot].shape)
    for index in np.ndindex(*inputs[slot].shape):
        plus, minus = inputs[slot].copy(), inputs[slot].copy()
        plus[index] += step
        minus[index] -= step
        numeric[index] = (loss(plus) - loss(minus)) / (2 * step)
    return numeric

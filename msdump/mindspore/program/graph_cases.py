"""Hypothesis strategies for small graphs that run: views, in-place operators, several uses of a value, dead code."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

import msdump.mindspore.kernels  # noqa: F401  (fills the registry)
from msdump.graph.graph import Graph, Parameter, Value
from msdump.graph.primitive import Primitive
from msdump.graph.types import SourceLine, TensorType
from msdump.mindspore.program.compile import finish
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array

_UNARY = ("Neg", "Square", "Exp")
_BINARY = ("Add", "Sub", "Mul", "Maximum")


@dataclass
class GraphCase:
    """A graph ready to run.

    inputs      one array per graph input
    parameters  the graph's parameters with their first values; `restore` puts these values back
    """

    graph: Graph
    inputs: list[Array]
    first_values: dict[str, Array]

    def restore(self) -> None:
        """Undo what runs did to the parameters."""
        for value in self.graph.parameters:
            if value.parameter is not None:
                np.copyto(value.parameter.array, self.first_values[value.name])


@st.composite
def graphs(draw: st.DrawFn, max_nodes: int = 12, dtype: str = "float32", graph_id: int = 0) -> GraphCase:
    """A random well-formed graph of elementwise operators, reshapes, matrix products and in-place updates.

    Shapes:  all values have 12 elements, as (3, 4), (12,) or (4, 3), or 9 or 16 after a product.
    Edges:   values may be dead, used many times, or viewed while their memory is mutated; every value of the
             last few is a graph output.
    """
    graph = Graph(f"kernel_graph_{graph_id}", graph_id)
    array_dtype = dtypes.dtype(dtype).numpy
    elements = st.floats(-2, 2, width=16)

    def array(shape: tuple[int, ...]) -> Array:
        values = draw(st.lists(elements, min_size=12, max_size=12))
        return np.array(values, np.float64).astype(array_dtype).reshape(shape)

    values: list[Value] = []
    inputs: list[Array] = []
    first: dict[str, Array] = {}
    for number in range(draw(st.integers(1, 2))):
        inputs.append(array((3, 4)))
        values.append(graph.add_input(f"x{number}", TensorType(dtype, (3, 4))))
    for number in range(draw(st.integers(1, 2))):
        name = f"cell.weight{number}"
        first[name] = array((3, 4))
        values.append(graph.add_parameter(Parameter(name, first[name].copy(), dtype)))
    values.append(graph.add_constant(array((3, 4)), dtype))
    for number in range(draw(st.integers(1, max_nodes))):
        values.extend(_draw_node(draw, graph, values, number))
    tail = [value for value in values if value.node is not None]
    graph.outputs = tail[-draw(st.integers(1, 3)) :]
    return GraphCase(finish(graph), inputs, first)


def _draw_node(draw: st.DrawFn, graph: Graph, values: list[Value], number: int) -> tuple[Value, ...]:
    operand = draw(st.sampled_from(values))
    same = [value for value in values if value.type == operand.type]
    references = [value for value in same if value.parameter is not None]
    kind = draw(st.sampled_from(["unary", "binary", "reshape", "matmul", "assign"]))
    if kind == "assign" and references:
        target = draw(st.sampled_from(references))
        primitive, operands = Primitive(draw(st.sampled_from(["Assign", "AssignAdd"]))), [target, operand]
    elif kind == "reshape" and operand.type.size == 12:
        shape = draw(st.sampled_from([(3, 4), (4, 3), (12,), (2, 6, 1)]))
        primitive, operands = Primitive("Reshape", {"shape": shape}), [operand]
    elif kind == "matmul" and operand.type.ndim == 2:
        primitive = Primitive("MatMul", {"transpose_a": False, "transpose_b": True})
        operands = [operand, draw(st.sampled_from(same))]
    elif kind == "binary":
        primitive, operands = Primitive(draw(st.sampled_from(_BINARY))), [operand, draw(st.sampled_from(same))]
    else:
        primitive, operands = Primitive(draw(st.sampled_from(_UNARY))), [operand]
    source = [SourceLine("train.py", number + 1, f"    x{number} = self.cell(x)")]
    scope = draw(st.sampled_from(["Default", "Default/net-Net/cell-Cell", "Default/net-Net/relu-ReLU"]))
    return graph.add_node(primitive, operands, scope, source).outputs

"""What the files of a graph (.ir, .pb, GE, order) have in common, the order of its operators, and dot for Graphviz."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from msdump.errors import GraphError
from msdump.graph.graph import CONSTANT, SAVED, Graph, Node, Value

_ORDER_TITLE = "NodeExecutionOrder-FullNameWithScope"


def shown_attrs(node: Node) -> dict[str, Any]:
    """Attributes as they are written to files: plain Python values, then the operand names as lists.

    Raises: GraphError for a value that is neither bool, int, float, str, None nor a tuple or list of these.
    """
    shown = {name: _plain(node, name, value) for name, value in node.primitive.attrs.items()}
    for name, operands in (
        ("input_names", node.definition.input_names),
        ("output_names", node.definition.output_names),
    ):
        if operands:
            shown.setdefault(name, list(operands))
    return shown


def _plain(node: Node, name: str, value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (tuple, list)):
        return type(value)(_plain(node, name, item) for item in value)
    raise GraphError(
        f"{node.where}: attribute {name}: expected a bool, an int, a float, a str, None or a tuple of these, "
        f"got {type(value).__name__}."
    )


def spare_op_ids(graph: Graph) -> Iterator[int]:
    """Op ids that no node of the graph has, for bookkeeping nodes that exist in the files only."""
    op_id = max((node.op_id for node in graph.nodes), default=-1)
    while True:
        op_id += 1
        yield op_id


def listed_parameters(graph: Graph) -> list[Value]:
    """Parameters and inputs in dump order.   Raises: GraphError when the order leaves one out that is in use."""
    listed = graph.dumped_parameters()
    known = {value.id for value in listed}
    for value in (*graph.parameters, *graph.inputs):
        if value.id not in known and _is_used(graph, value):
            raise GraphError(f"graph {graph.name}: %{value.name} is used, but missing in the parameter order.")
    return listed


def _is_used(graph: Graph, value: Value) -> bool:
    return value in graph.outputs or any(value in node.inputs for node in graph.nodes)


def order_csv_text(graph: Graph) -> str:
    """Text of `ms_execution_order_graph_{graph_id}.csv`: title, then one full name per line.

    Edges: bookkeeping nodes (Depend) are not launched and not listed.
    """
    return "".join(f"{line}\n" for line in (_ORDER_TITLE, *(node.full_name for node in graph.kernels)))


# -- dot ---------------------------------------------------------------------------------------------------------------

_SHAPES = {"input": "ellipse", SAVED: "ellipse", "parameter": "octagon", CONSTANT: "note"}


def dot_text(graph: Graph) -> str:
    """The graph as a picture for `dot -Tsvg FILE`: a box for each operator with its full name and types, an edge for
    each operand."""
    return "".join(f"{line}\n" for line in _lines(graph))


def _lines(graph: Graph) -> Iterator[str]:
    yield f"digraph {_quoted(graph.name)} {{"
    yield "  node [shape=box];"
    for value in (*graph.parameters, *graph.inputs, *graph.constants):
        name = value.name or f"constant {value.id}"
        yield f"  v{value.id} [shape={_SHAPES[value.kind]}, label={_quoted(name, str(value.type))}];"
    for node in graph.nodes:
        types = ", ".join(str(value.type) for value in node.outputs)
        yield f"  n{node.id} [label={_quoted(node.op_type, node.full_name, types)}];"
        for slot, value in enumerate(node.inputs):
            yield f"  {_place(value)} -> n{node.id} [label={_quoted(str(slot))}];"
    for slot, value in enumerate(graph.outputs):
        yield f"  r{slot} [shape=doublecircle, label={_quoted(f'output {slot}')}];"
        yield f"  {_place(value)} -> r{slot};"
    yield "}"


def _place(value: Value) -> str:
    return f"v{value.id}" if value.node is None else f"n{value.node.id}"


def _quoted(*lines: str) -> str:
    escaped = (line.replace("\\", "\\\\").replace('"', '\\"') for line in lines)
    return '"' + "\\n".join(escaped) + '"'

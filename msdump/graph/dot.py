"""A graph as a picture, in the language of Graphviz: `dot -Tsvg FILE`."""

from __future__ import annotations

from collections.abc import Iterator

from msdump.graph.graph import CONSTANT, SAVED, Graph, Value

_SHAPES = {"input": "ellipse", SAVED: "ellipse", "parameter": "octagon", CONSTANT: "note"}


def dot_text(graph: Graph) -> str:
    """The whole file: a box per operator, labelled with its full name and types; an edge per operand."""
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
            yield f"  {_point(value)} -> n{node.id} [label={_quoted(str(slot))}];"
    for slot, value in enumerate(graph.outputs):
        yield f"  r{slot} [shape=doublecircle, label={_quoted(f'output {slot}')}];"
        yield f"  {_point(value)} -> r{slot};"
    yield "}"


def _point(value: Value) -> str:
    return f"v{value.id}" if value.node is None else f"n{value.node.id}"


def _quoted(*lines: str) -> str:
    escaped = (line.replace("\\", "\\\\").replace('"', '\\"') for line in lines)
    return '"' + "\\n".join(escaped) + '"'

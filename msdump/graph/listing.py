"""What every picture of a graph (.ir, .pb) shows alike: attributes, source lines, the values behind operand names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from msdump.errors import GraphError
from msdump.graph.graph import Graph, Node, SourceLine, Value

# The path stops at the first ":LINE/", so that a slice in the code ("a[0:2/n]") is not taken for the line number.
_SOURCE_LINE = re.compile(r"# (?:inlined:)?In file (?P<path>.+?):(?P<line>[0-9]+)/(?P<code>.*)/")

# All that str.splitlines takes for the end of a line.
_LINE_END = re.compile("[\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029]")


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


def format_source_line(line: SourceLine) -> str:
    """`PATH:LINE/CODE/`, on one line whatever the path and the code hold."""
    return f"{_one_line(line.path)}:{line.line}/{_one_line(line.code.rstrip())}/"


def _one_line(text: str) -> str:
    # A file name may hold any byte, a text file only UTF-8.
    encodable = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return _LINE_END.sub(lambda match: repr(match[0])[1:-1], encodable)


def parse_source_line(text: str) -> SourceLine | None:
    """Inverse of `format_source_line` with its `# In file` mark; None for any other line."""
    match = _SOURCE_LINE.fullmatch(text.strip())
    if match is None:
        return None
    return SourceLine(match["path"], int(match["line"]), match["code"])


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

"""pbtxt files: a GE graph as the text of a TensorFlow GraphDef, which TensorBoard and Netron draw."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from msdump.frontends.torchair.ge.graph import GeGraph
from msdump.frontends.torchair.graph_dump.definition import graph_definition

_CONTROL = ":-1"


def tensorboard_text(graph: GeGraph, is_optimized: bool = False) -> str:
    """One node for each operator.

    Attributes are shown as the text of their AttrDef, descriptors as attributes `[i]{input}` and `[o]{output}`.
    Source: TorchAir, pbtxt files of graph_dump.
    """
    definition = graph_definition(graph, is_optimized)
    return "".join(f"{line}\n" for op in definition.op for line in _node(op))


def _node(op: Any) -> Iterator[str]:
    yield "node {"
    yield f"    name: {json.dumps(op.name)}"
    yield f"    op: {json.dumps(op.type)}"
    for edge in op.input:
        # What nothing feeds is no edge; its descriptor says so.
        if edge:
            yield f"    input: {json.dumps(_tensorflow_edge(edge))}"
    for entry in op.attr:
        yield from _attr(entry.key, entry.value)
    for descriptor in op.input_desc:
        yield from _attr(f"[i]{descriptor.name}", descriptor)
    for descriptor in op.output_desc:
        yield from _attr(f"[o]{descriptor.name}", descriptor)
    yield "}"


def _tensorflow_edge(edge: str) -> str:
    return f"^{edge.removesuffix(_CONTROL)}" if edge.endswith(_CONTROL) else edge


def _attr(key: str, value: Any) -> Iterator[str]:
    yield "    attr {"
    yield f"        key: {json.dumps(key)}"
    yield "        value {"
    # The text of a message is plain ASCII, of which Python's literals are protobuf's as well.
    yield f"            s: {str(value)!r}"
    yield "        }"
    yield "    }"

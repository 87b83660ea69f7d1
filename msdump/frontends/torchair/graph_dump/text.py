"""txt files: the GraphDef of a GE graph as protobuf text."""

from __future__ import annotations

from msdump.frontends.torchair.ge.graph import GeGraph
from msdump.frontends.torchair.graph_dump.definition import graph_definition

_SEPARATOR = ": "


def graph_text(graph: GeGraph, is_optimized: bool = False) -> str:
    """Equal graphs give equal text.

    Edges: `": "` stands once in a line. Readers split there, so a colon inside of a value is written as its octal
    escape, which any protobuf parser turns back.
    """
    return "".join(f"{_split_once(line)}\n" for line in str(graph_definition(graph, is_optimized)).splitlines())


def _split_once(line: str) -> str:
    name, separator, value = line.partition(_SEPARATOR)
    return name + separator + value.replace(_SEPARATOR, r"\072 ")

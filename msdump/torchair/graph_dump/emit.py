"""Text of a GE graph in the types of `debug.graph_dump.type`, and the file of it."""

from __future__ import annotations

import json
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msdump.errors import ConfigError
from msdump.formats.paths.torchair import PBTXT, PY, TXT
from msdump.graph.ge import TOPOLOGY, WITHOUT_DATA
from msdump.torchair.debug_save.safe_files import write_safe_text
from msdump.torchair.ge.graph import CONST, GeGraph
from msdump.torchair.graph_dump.definition import graph_definition
from msdump.torchair.graph_dump.python import python_text

# Passes do not change the source: it says how the graph was built.   Source: TorchAir.
_sources: weakref.WeakKeyDictionary[GeGraph, str] = weakref.WeakKeyDictionary()
# What was printed last of a graph that is being compiled, and of which state.
_latest: weakref.WeakKeyDictionary[GeGraph, tuple[object, str]] = weakref.WeakKeyDictionary()


def write_ge_graph(
    graph: GeGraph, path: Path, file_type: str, is_optimized: bool = False, is_view_lazy: bool = True
) -> None:
    """Publish one file, in a folder that is there.

    file_type     "txt", "pbtxt" or "py"
    is_optimized  all passes are done; see `graph_definition`
    is_view_lazy  see `python_text`
    Raises: WriteError; ConfigError for another type.
    """
    write_safe_text(path, ge_graph_text(graph, file_type, is_optimized, is_view_lazy))


def ge_graph_text(graph: GeGraph, file_type: str, is_optimized: bool = False, is_view_lazy: bool = True) -> str:
    """What `write_ge_graph` writes.

    Edges: a debug save asks after each pass, and most passes change nothing; the text before is then given again.
    """
    if file_type == PY:
        if graph not in _sources:
            _sources[graph] = python_text(graph, is_view_lazy)
        return _sources[graph]
    if file_type not in _MAKERS:
        raise ConfigError(f"graph_dump.type: expected one of {TXT}, {PBTXT}, {PY}, got {file_type!r}.")
    state = (file_type, _state(graph))
    latest, text = _latest.pop(graph, (None, ""))
    if is_optimized or latest != state:
        text = _MAKERS[file_type](graph, is_optimized)
    if not is_optimized:
        _latest[graph] = (state, text)
    return text


def _state(graph: GeGraph) -> list[object]:
    """Equal only while a graph prints the same. Values are compared by identity: passes put new ones in their place."""
    return [
        (
            op.name,
            tuple((name, id(tensor)) for name, tensor in op.inputs.items()),
            repr(op.attrs),
            repr(op.scope),
            tuple(before.name for before in op.controls),
            tuple(id(tensor.fake) for tensor in op.outputs),
        )
        for op in graph.ops
    ]


_SEPARATOR = ": "


def graph_text(graph: GeGraph, is_optimized: bool = False) -> str:
    """Equal graphs give equal text.

    Edges: `": "` stands once in a line. Readers split there, so a colon inside of a value is written as its octal
    escape, which any protobuf parser turns back.
    """
    return "".join(f"{_split_once(line)}\n" for line in str(graph_definition(graph, is_optimized)).splitlines())


def ge_proto_text(graph: GeGraph, detail: int, is_optimized: bool = False) -> str:
    """Text of a ModelDef with the graph, as `msdump.graph.ge.ge_proto_text` of graphs of MindSpore.

    detail   FULL, WITHOUT_DATA or TOPOLOGY
    """
    definition = graph_definition(graph, is_optimized)
    for op in definition.op:
        if detail == TOPOLOGY:
            del op.attr[:], op.input_desc[:], op.output_desc[:]
        elif detail == WITHOUT_DATA and op.type == CONST:
            del op.attr[:]
    if detail == TOPOLOGY:
        del definition.attr[:]
    return "".join(["graph {\n", *(f"  {line}\n" for line in str(definition).splitlines()), "}\n"])


def _split_once(line: str) -> str:
    name, separator, value = line.partition(_SEPARATOR)
    return name + separator + value.replace(_SEPARATOR, r"\072 ")


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


def _attr(key: str, value: object) -> Iterator[str]:
    yield "    attr {"
    yield f"        key: {json.dumps(key)}"
    yield "        value {"
    # The text of a message is plain ASCII, of which Python's literals are protobuf's as well.
    yield f"            s: {str(value)!r}"
    yield "        }"
    yield "    }"


_MAKERS = {TXT: graph_text, PBTXT: tensorboard_text}

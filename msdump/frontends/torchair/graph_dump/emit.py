"""Write a GE graph into a file of one of the types of `debug.graph_dump.type`."""

from __future__ import annotations

import weakref
from pathlib import Path

from torch import fx

from msdump.errors import ConfigError
from msdump.formats.paths.torchair import PBTXT, PY, TXT
from msdump.frontends.torchair.configs.compiler_config import CompilerConfig
from msdump.frontends.torchair.debug_save.safe_files import write_safe_text
from msdump.frontends.torchair.ge.graph import GeGraph
from msdump.frontends.torchair.graph_dump.files import new_graph_file
from msdump.frontends.torchair.graph_dump.python import python_text
from msdump.frontends.torchair.graph_dump.tensorboard import tensorboard_text
from msdump.frontends.torchair.graph_dump.text import graph_text

# Passes do not change the source: it says how the graph was built.   Source: TorchAir.
_sources: weakref.WeakKeyDictionary[GeGraph, str] = weakref.WeakKeyDictionary()
# What was printed last of a graph that is being compiled, and of which state.
_latest: weakref.WeakKeyDictionary[GeGraph, tuple[object, str]] = weakref.WeakKeyDictionary()
_MAKERS = {TXT: graph_text, PBTXT: tensorboard_text}


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


def write_fx_graph(module: fx.GraphModule, stage: str, graph_id: int, config: CompilerConfig) -> None:
    """Publish an FX graph as a graph dump has it in the modes without GE graphs.

    stage   ORIGINAL or OPTIMIZED of `formats.paths.torchair`
    Raises: WriteError.
    """
    path = new_graph_file(stage, graph_id, config)
    write_safe_text(path, module.print_readable(print_output=False))


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
    known, text = _latest.pop(graph, (None, ""))
    if is_optimized or known != state:
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
            tuple(before.name for before in op.controls),
            tuple(id(tensor.fake) for tensor in op.outputs),
        )
        for op in graph.ops
    ]

"""Write a GE graph into a file of one of the types of `debug.graph_dump.type`."""

from __future__ import annotations

import weakref
from pathlib import Path

from torch import fx

from msdump.errors import ConfigError
from msdump.formats.graph_dump_layout import PBTXT, PY, TXT
from msdump.frontends.torchair.configs.compiler_config import CompilerConfig
from msdump.frontends.torchair.debug_save.safe_files import write_safe_text
from msdump.frontends.torchair.ge.graph import GeGraph
from msdump.frontends.torchair.graph_dump.files import new_graph_file
from msdump.frontends.torchair.graph_dump.python import python_text
from msdump.frontends.torchair.graph_dump.tensorboard import tensorboard_text
from msdump.frontends.torchair.graph_dump.text import graph_text

# Passes do not change the source: it says how the graph was built.   Source: TorchAir.
_sources: weakref.WeakKeyDictionary[GeGraph, str] = weakref.WeakKeyDictionary()


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

    stage   ORIGINAL or OPTIMIZED of `graph_dump_layout`
    Raises: WriteError.
    """
    path = new_graph_file(stage, graph_id, config)
    write_safe_text(path, module.print_readable(print_output=False))


def ge_graph_text(graph: GeGraph, file_type: str, is_optimized: bool = False, is_view_lazy: bool = True) -> str:
    """What `write_ge_graph` writes."""
    if file_type == TXT:
        return graph_text(graph, is_optimized)
    if file_type == PBTXT:
        return tensorboard_text(graph, is_optimized)
    if file_type == PY:
        if graph not in _sources:
            _sources[graph] = python_text(graph, is_view_lazy)
        return _sources[graph]
    raise ConfigError(f"graph_dump.type: expected one of {TXT}, {PBTXT}, {PY}, got {file_type!r}.")

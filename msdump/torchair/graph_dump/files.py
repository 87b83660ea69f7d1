"""Files of a graph dump and of an FX summary: their names and folders, and those of one compilation."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from torch import fx

from msdump.config.environment import PROTO, ge_graph_settings
from msdump.dumpers.capture import Clock
from msdump.engine.ge_graph_files import GeGraphFiles, ge_graph_files
from msdump.errors import WriteError
from msdump.formats.paths.torchair import (
    OPTIMIZED,
    ORIGINAL,
    GraphDumpName,
    SummaryName,
    format_graph_dump_name,
    format_summary_name,
)
from msdump.graph.ge import BUILD, PRE_RUN_BEGIN
from msdump.process.sessions import note_left
from msdump.torchair.configs.compiler_config import CompilerConfig
from msdump.torchair.debug_save.safe_files import make_safe_dirs, write_safe_text
from msdump.torchair.ge.compile import OPTIMIZED as OPTIMIZED_STAGE
from msdump.torchair.ge.compile import ORIGINAL as ORIGINAL_STAGE
from msdump.torchair.ge.graph import GeGraph
from msdump.torchair.graph_dump.emit import ge_proto_text, write_ge_graph
from msdump.torchair.ranks import process_rank

log = logging.getLogger("msdump")

# One clock for the process: two graphs never get the same time.
_clock = Clock()


def new_graph_file(stage: str, graph_id: int, config: CompilerConfig) -> Path:
    """Path of the next graph file, in a folder that is there.

    stage   ORIGINAL or OPTIMIZED
    Raises: WriteError when the folder cannot be made, or is a symbolic link.
    """
    dump = config.debug.graph_dump
    _, rank = process_rank()
    name = GraphDumpName(stage, graph_id, rank, os.getpid(), _clock.next_us(), dump.type.value)
    return _folder(dump.path, "TorchAir's graph dump") / format_graph_dump_name(name)


def new_summary_file(config: CompilerConfig) -> Path:
    """Path of the next FX summary.   Raises: WriteError as above."""
    _, rank = process_rank()
    name = SummaryName(rank, os.getpid(), _clock.next_us())
    return _folder(config.debug.fx_summary._path, "TorchAir's FX summary") / format_summary_name(name)


def _folder(path: str, what: str) -> Path:
    folder = Path(path)
    make_safe_dirs(folder)
    note_left(what, folder)
    return folder


def write_fx_graph(module: fx.GraphModule, stage: str, graph_id: int, config: CompilerConfig) -> None:
    """Publish an FX graph as a graph dump has it in the modes without GE graphs.

    stage   ORIGINAL or OPTIMIZED of `formats.paths.torchair`
    Raises: WriteError.
    """
    path = new_graph_file(stage, graph_id, config)
    write_safe_text(path, module.print_readable(print_output=False))


Run = Callable[[list[Any]], Any]


class GraphDumpObserver:
    """Writes the files of `debug.graph_dump`; belongs to one compilation. What it wraps may be run by any thread.

    Raises: WriteError, at compilation or at the first call, when a file cannot be written.
    """

    def __init__(self, graph_id: int, config: CompilerConfig) -> None:
        self._graph_id = graph_id
        self._config = config
        self._optimized: GeGraph | None = None
        self._lock = threading.Lock()

    def fx_graph(self, name: str, module: fx.GraphModule) -> None:
        """Nothing: FX graphs are for the debug save."""

    def ge_graph(self, name: str, graph: GeGraph) -> None:
        """Write the original graph; keep the optimized one until it runs."""
        if name == ORIGINAL_STAGE:
            self._write(ORIGINAL, graph)
        elif name == OPTIMIZED_STAGE:
            self._optimized = graph

    def wrap(self, run: Run) -> Run:
        """The function, which writes the optimized graph before it runs for the first time.

        Source: TorchAir, which compiles its GE graph then. A graph that never runs as GE graph (`debug.run_eagerly`)
        has its original file only.
        """

        def run_and_write(args: list[object]) -> Any:
            if self._optimized is not None:
                self._write_optimized()
            return run(args)

        return run_and_write

    def _write_optimized(self) -> None:
        with self._lock:
            graph, self._optimized = self._optimized, None
        if graph is not None:
            self._write(OPTIMIZED, graph)

    def _write(self, stage: str, graph: GeGraph) -> None:
        path = new_graph_file(stage, self._graph_id, self._config)
        is_view_lazy = bool(self._config.experimental_config.enable_view_optimize)
        write_ge_graph(graph, path, self._config.debug.graph_dump.type.value, stage == OPTIMIZED, is_view_lazy)


def open_graph_dump(graph_id: int, config: CompilerConfig) -> GraphDumpObserver | None:
    """The observer of one compilation; None when `debug.graph_dump` is off."""
    return None if config.debug.graph_dump.type.value is None else GraphDumpObserver(graph_id, config)


class GeGraphObserver:
    """Writes what `DUMP_GE_GRAPH` asks for; belongs to one compilation. What cannot be written is logged."""

    def __init__(self, graph_id: int, files: GeGraphFiles) -> None:
        self._graph_id = graph_id
        self._files = files

    def fx_graph(self, name: str, module: fx.GraphModule) -> None:
        """Nothing: the graph engine does not see FX graphs."""

    def ge_graph(self, name: str, graph: GeGraph) -> None:
        """Write the graph before and after all passes."""
        stage = {ORIGINAL_STAGE: PRE_RUN_BEGIN, OPTIMIZED_STAGE: BUILD}.get(name)
        if stage is not None:
            text = partial(ge_proto_text, graph, self._files.settings.detail, stage == BUILD)
            try:
                self._files.write(self._graph_id, stage, {PROTO: text})
            except WriteError as error:
                log.error("DUMP_GE_GRAPH: %s", error)


def open_ge_graph(graph_id: int) -> GeGraphObserver | None:
    """As `open_graph_dump`, of `DUMP_GE_GRAPH`.   Raises: ConfigError as `ge_graph_settings`."""
    settings = ge_graph_settings(PRE_RUN_BEGIN, BUILD)
    return None if settings is None else GeGraphObserver(graph_id, ge_graph_files(settings))

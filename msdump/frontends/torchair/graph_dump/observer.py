"""The graph files of one compilation: the original graph at once, the optimized one when it is first run."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from torch import fx

from msdump.formats.paths.torchair import OPTIMIZED, ORIGINAL
from msdump.frontends.torchair.configs.compiler_config import CompilerConfig
from msdump.frontends.torchair.ge.compile import OPTIMIZED as OPTIMIZED_STAGE
from msdump.frontends.torchair.ge.compile import ORIGINAL as ORIGINAL_STAGE
from msdump.frontends.torchair.ge.graph import GeGraph
from msdump.frontends.torchair.graph_dump.emit import write_ge_graph
from msdump.frontends.torchair.graph_dump.files import new_graph_file

Run = Callable[[list[Any]], Any]


class GraphDumpObserver:
    """Writes what `debug.graph_dump` asks for; belongs to one compilation. What it wraps may be run by any thread.

    Raises: WriteError, at compilation or at the first call: who asked for a graph is told when there is none.
    """

    def __init__(self, graph_id: int, config: CompilerConfig) -> None:
        self._graph_id = graph_id
        self._config = config
        self._optimized: GeGraph | None = None
        self._lock = threading.Lock()

    def fx_graph(self, name: str, module: fx.GraphModule) -> None:
        """Nothing: FX graphs are for the debug save."""

    def ge_graph(self, name: str, graph: GeGraph) -> None:
        if name == ORIGINAL_STAGE:
            self._write(ORIGINAL, graph)
        elif name == OPTIMIZED_STAGE:
            self._optimized = graph

    def wrap(self, run: Run) -> Run:
        """The function, which writes the optimized graph before it runs for the first time.

        Source: TorchAir, which compiles its GE graph then. A graph that never runs as GE graph (`debug.run_eagerly`)
        has its original file only.
        """

        def run_and_write(args: list[Any]) -> Any:
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
    """The observer of one compilation; None when no graph dump is asked for."""
    return None if config.debug.graph_dump.type.value is None else GraphDumpObserver(graph_id, config)

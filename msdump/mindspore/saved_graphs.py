"""SavedGraphs: what a script or the environment wants to see of each compiled graph, whether it is dumped or not."""

from __future__ import annotations

import functools
import itertools
import logging
from dataclasses import dataclass
from pathlib import Path

from msdump.config.environment import ONNX, PROTO, GeGraphSettings, ge_graph_settings
from msdump.engine.ge_graph_files import GeGraphFiles, ge_graph_files
from msdump.errors import WriteError
from msdump.formats.atomic import make_dirs, write_file
from msdump.graph.ge import STAGES, ge_onnx_text, ge_proto_text
from msdump.graph.graph import Graph
from msdump.graph.ir import ir_text
from msdump.graph.listing import dot_text
from msdump.mindspore.context import get_context

log = logging.getLogger("msdump")

_LAST, _ALL, _PICTURES = 1, 2, 3
_FILE_MODE = 0o400
_numbers = itertools.count(1)


def write_ge_graph(graph: Graph, files: GeGraphFiles) -> list[Path]:
    """Write a compiled graph in each stage that is selected; the files.   Raises: WriteError."""
    written: list[Path] = []
    for stage in STAGES:
        emitters = {PROTO: ge_proto_text, ONNX: ge_onnx_text}
        texts = {name: functools.partial(emit, graph, files.settings.detail, stage) for name, emit in emitters.items()}
        written += files.write(graph.graph_id, stage, texts)
    return written


@dataclass(frozen=True)
class SavedGraphs:
    """The files of `set_context(save_graphs=...)` and `DUMP_GE_GRAPH`. What cannot be written is logged.

    level    0 none, 1 the graph that runs, 2 also the graph as traced, 3 also a picture of the graph that runs
    Source:  MindSpore, `save_graphs`, `trace_code_graph_{graph_id}_NNNN.ir`; CANN, `DUMP_GE_GRAPH`.
    """

    level: int
    folder: Path
    ge: GeGraphSettings | None

    @classmethod
    def from_settings(cls) -> SavedGraphs:
        """Raises: ConfigError for a wrong `DUMP_GE_GRAPH` or one of its companions."""
        ge = ge_graph_settings(STAGES[0], STAGES[-1])
        return cls(int(get_context("save_graphs")), Path(get_context("save_graphs_path")), ge)

    def save_traced(self, graph: Graph) -> None:
        """Write a graph as the script built it. Gives operators ids of the moment."""
        if self.level >= _ALL:
            graph.number()
            self._save(f"graph_build_{graph.graph_id}", "ir", ir_text(graph))

    def save_compiled(self, graph: Graph) -> None:
        """Write a graph that can run."""
        if self.level >= _LAST:
            self._save(f"trace_code_graph_{graph.graph_id}", "ir", ir_text(graph))
        if self.level >= _PICTURES:
            self._save(f"trace_code_graph_{graph.graph_id}", "dot", dot_text(graph))
        if self.ge is not None:
            try:
                write_ge_graph(graph, ge_graph_files(self.ge))
            except WriteError as error:
                log.error("DUMP_GE_GRAPH: %s", error)

    def _save(self, name: str, suffix: str, text: str) -> None:
        try:
            make_dirs(self.folder)
            write_file(self.folder / f"{name}_{next(_numbers):04d}.{suffix}", [text.encode()], _FILE_MODE, replace=True)
        except WriteError as error:
            log.error("save_graphs: %s", error)

"""GraphRecorder: the files that describe a graph: .ir, .pb and its execution order."""

from __future__ import annotations

from msdump.formats.atomic import make_dirs, write_file
from msdump.formats.layout import SyncLayout
from msdump.graph.emit_ir import ir_text
from msdump.graph.emit_order import order_csv_text
from msdump.graph.emit_pb import model_bytes
from msdump.graph.graph import Graph

_FILE_MODE = 0o400


class GraphRecorder:
    """Writes the description of each compiled graph, over that of an earlier run.

    Source: MindSpore sync dump tree.
    """

    def __init__(self, layout: SyncLayout) -> None:
        self._layout = layout

    def record(self, graph: Graph) -> None:
        """Raises: WriteError."""
        content = {
            self._layout.graph_file(graph.graph_id, "ir"): ir_text(graph).encode(),
            self._layout.graph_file(graph.graph_id, "pb"): model_bytes(graph),
            self._layout.order_file(graph.graph_id): order_csv_text(graph).encode(),
        }
        for path, data in content.items():
            make_dirs(path.parent)
            write_file(path, [data], _FILE_MODE, replace=True)

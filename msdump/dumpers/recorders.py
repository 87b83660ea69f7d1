"""Recorders: the files that describe a graph, beside a dump or without one."""

from __future__ import annotations

from collections.abc import Sequence

from msdump.dumpers.dumper import Dumper
from msdump.dumpers.tally import Tally
from msdump.formats.atomic import make_dirs, write_file
from msdump.formats.paths.sync import SyncPaths
from msdump.graph.graph import Graph
from msdump.graph.ir import ir_text
from msdump.graph.listing import order_csv_text
from msdump.graph.pb import model_bytes
from msdump.graph.run import FinishedStep
from msdump.tensors.records import OpInfo

_MODE = 0o400


class GraphRecorder:
    """Writes the description of each compiled graph, over that of an earlier run.

    Source: MindSpore sync dump tree.
    """

    def __init__(self, paths: SyncPaths) -> None:
        self._paths = paths

    def record(self, graph: Graph) -> None:
        """Raises: WriteError."""
        content = {
            self._paths.graph_file(graph.graph_id, "ir"): ir_text(graph).encode(),
            self._paths.graph_file(graph.graph_id, "pb"): model_bytes(graph),
            self._paths.order_file(graph.graph_id): order_csv_text(graph).encode(),
        }
        for path, data in content.items():
            make_dirs(path.parent)
            write_file(path, [data], _MODE, replace=True)


class GraphFilesDumper(Dumper):
    """Observer of compiled graphs, beside a dump whose own engine writes no files of them. It watches no operator."""

    def __init__(self, paths: SyncPaths, tally: Tally) -> None:
        super().__init__(tally)
        self._recorder = GraphRecorder(paths)
        # Open graphs that have operators which their files lack.
        self._grown: set[int] = set()

    def on_graph(self, graph: Graph) -> Sequence[int]:
        if not self._is_over() and not graph.is_open:
            with self._dumping():
                self._recorder.record(graph)
        # Operators of an open graph are announced one by one.
        return [] if graph.is_open else [0] * len(graph.kernels)

    def on_operator(self, graph: Graph, op: OpInfo) -> int:
        self._grown.add(graph.graph_id)
        return 0

    def on_iteration_begin(self, graph: Graph, iteration: int) -> bool:
        """The dump beside it counts the runs. Of open graphs the end is watched: they may have grown."""
        return graph.is_open and not self._is_over()

    def on_iteration_end(self, step: FinishedStep) -> None:
        if step.graph.graph_id in self._grown and not self._is_over():
            self._grown.discard(step.graph.graph_id)
            with self._dumping():
                self._recorder.record(step.graph)

    def _is_dumped(self, graph: Graph, iteration: int) -> bool:
        return False

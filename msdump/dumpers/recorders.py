"""Recorders: the files that describe a graph, beside a dump or without one."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

from msdump.config.environment import ONNX, PROTO, GeGraphSettings
from msdump.dumpers.dumper import Dumper
from msdump.dumpers.tally import Tally
from msdump.formats.atomic import make_dirs, write_file
from msdump.formats.paths.sync import SyncLayout
from msdump.graph.ge import STAGES, ge_onnx_text, ge_proto_text
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
            write_file(path, [data], _MODE, replace=True)


_GE_MODE = 0o600


class GeGraphRecorder:
    """Writes each compiled graph, one pair of files per stage, over those of an earlier run.

    The number in the names counts what this recorder wrote, from 00000.   Source: CANN, `DUMP_GE_GRAPH`.
    """

    def __init__(self, settings: GeGraphSettings) -> None:
        self._settings = settings
        self._numbers = itertools.count()

    def record(self, graph: Graph) -> list[Path]:
        """The files that were written.   Raises: WriteError."""
        written: list[Path] = []
        for stage in STAGES:
            if self._settings.wants(stage):
                written.extend(self._write(graph, stage, next(self._numbers)))
        return written

    def _write(self, graph: Graph, stage: str, number: int) -> list[Path]:
        make_dirs(self._settings.folder)
        written = []
        name = f"{number:05d}_graph_{graph.graph_id}_{stage}"
        for wanted, file_name, emit in (
            (PROTO, f"ge_proto_{name}.txt", ge_proto_text),
            (ONNX, f"ge_onnx_{name}.pbtxt", ge_onnx_text),
        ):
            if wanted in self._settings.formats:
                path = self._settings.folder / file_name
                write_file(path, [emit(graph, self._settings.detail, stage).encode()], _GE_MODE, replace=True)
                written.append(path)
        return written


class GraphFilesDumper(Dumper):
    """Observer of compiled graphs, beside a dump whose own engine writes no files of them. It watches no operator."""

    def __init__(self, layout: SyncLayout, tally: Tally) -> None:
        super().__init__(tally)
        self._recorder = GraphRecorder(layout)
        # Open graphs that have operators which their files lack.
        self._grown: set[int] = set()

    def on_graph(self, graph: Graph) -> Sequence[int]:
        if not self._is_over() and not graph.is_open:
            with self._dumping():
                self._recorder.record(graph)
        # Operators of an open graph are told one by one.
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

"""GeGraphRecorder: the files in which operator names of the graph engine are looked up."""

from __future__ import annotations

import itertools
from pathlib import Path

from msdump.config.ge_graphs import ONNX, PROTO, GeGraphSettings
from msdump.formats.atomic import make_dirs, write_file
from msdump.graph.emit_ge import STAGES, ge_onnx_text, ge_proto_text
from msdump.graph.graph import Graph

_FILE_MODE = 0o600


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
                write_file(path, [emit(graph, self._settings.detail, stage).encode()], _FILE_MODE, replace=True)
                written.append(path)
        return written

"""GraphFilesDumper: the files that describe each graph, beside a dump whose own engine writes none."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from msdump.dump.recorder import GraphRecorder
from msdump.dump.tally import Tally
from msdump.errors import MsdumpError
from msdump.events import OpEvent
from msdump.formats.layout import SyncLayout
from msdump.graph.graph import Graph
from msdump.graph.run import FinishedStep

log = logging.getLogger("msdump")


class GraphFilesDumper:
    """Observer of compiled graphs. It watches no operator.

    A failure to write stops the dump, not the training: it is logged once and kept in `tally.error`.
    """

    needs_all_values = False

    def __init__(self, layout: SyncLayout, tally: Tally) -> None:
        self._recorder = GraphRecorder(layout)
        self._tally = tally

    def on_graph(self, graph: Graph) -> Sequence[int]:
        if not self._tally.error:
            try:
                with self._tally.timed():
                    self._recorder.record(graph)
            except (MsdumpError, OSError, MemoryError) as error:
                self._tally.error = str(error) or type(error).__name__
                log.error("Dump stopped, training goes on: %s", self._tally.error)
        return [0] * len(graph.kernels)

    def on_iteration_begin(self, graph: Graph, iteration: int) -> bool:
        return False

    def before_op(self, event: OpEvent) -> None:
        """Nothing: no operator is watched."""

    def after_op(self, event: OpEvent) -> None:
        """Nothing: no operator is watched."""

    def on_iteration_end(self, step: FinishedStep) -> None:
        """Nothing: no iteration is watched."""

    def on_error(self, event: OpEvent, error: BaseException) -> None:
        """Nothing: no operator is watched."""

    def close(self) -> None:
        """Nothing is pending."""

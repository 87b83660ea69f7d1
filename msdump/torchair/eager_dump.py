"""TorchAir's eager data dump: the files of all runs of FX graphs, one folder for each run."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping
from typing import Any

from torch.fx import GraphModule, Node

from msdump.dumpers.capture import Clock
from msdump.dumpers.immediate import ImmediateDumper
from msdump.dumpers.limits import Footprint
from msdump.formats.paths.torchair import (
    INPUT,
    OUTPUT,
    SKIPPED_FILE,
    TorchairFileName,
    format_torchair_name,
    rank_dir,
    step_dir,
)
from msdump.formats.torchair import TorchairWriter, Unshown, torchair_size
from msdump.process import dry_run
from msdump.tensors.records import INPUT as READ
from msdump.tensors.records import TensorRecord
from msdump.torchair.eager_graph import EagerGraph, NodePlan, Slots
from msdump.torchair.file_dump import FolderDump, eager
from msdump.torchair.ranks import process_rank


class EagerDump:
    """The dump into one folder, of all graphs of this process that go there."""

    def __init__(self, root: str, clock: Clock) -> None:
        self._operands: dict[tuple[int, str], Slots] = {}
        self.files = FolderDump(
            root,
            eager,
            lambda *parts: TorchairWriter(parts[0], self._name, *parts[1:]),
            Footprint(torchair_size, _is_unshown, lambda record: (self._text(record), SKIPPED_FILE)),
            " and differ in their time stamps only",
            can_be_packed=True,
        )
        self.dumper = ImmediateDumper([self.files.writer], self.files.tally, clock)

    def add(self, graph_id: int, operands: Mapping[str, Slots]) -> None:
        """What the slots of the records of each operator are in the names of files."""
        self._operands.update(((graph_id, name), slots) for name, slots in operands.items())

    def _name(self, record: TensorRecord) -> TorchairFileName:
        inputs, outputs = self._operands[record.graph_id, record.op_name]
        io, operands = (INPUT, inputs) if record.io == READ else (OUTPUT, outputs)
        slot, element = operands[record.slot]
        return TorchairFileName(record.op_name, record.op_type, io, slot, element, record.timestamp_us)

    def _text(self, record: TensorRecord) -> str:
        return format_torchair_name(self._name(record))


def eager_dump(root: str, clock: Clock) -> EagerDump:
    """The one of this process.   Raises: ConfigError for a limit of the environment that cannot be read."""
    return _dumps.setdefault(root, EagerDump(root, clock)) if root not in _dumps else _dumps[root]


_dumps: dict[str, EagerDump] = {}


class DumpedFxGraph:
    """One compiled graph. Each call of `run` is one step with a folder of its own; any thread may call it.

    A step whose number was given keeps it when the model raises in the middle: its files never mix with another call's.
    """

    def __init__(self, module: GraphModule, plans: Mapping[Node, NodePlan], dump: EagerDump, graph_id: int) -> None:
        self._dump = dump
        self._graph_id = graph_id
        self._steps = itertools.count()
        self._graph = EagerGraph(module, plans, graph_id, [dump.dumper])
        dump.add(graph_id, self._graph.operand_paths)

    def run(self, args: list[object]) -> Any:
        """Run the graph; `args` is emptied."""
        step = next(self._steps)
        files, run_key = self._dump.files, (self._graph_id, step)
        dry_run.note_run(self._graph_id, eager)
        rank = rank_dir(files.root, *process_rank())
        if not files.enter(os.fspath(rank), self._graph.values):
            return self._graph.run_unobserved(args)
        files.runs.begin_run(*run_key, step_dir(rank, *run_key))
        try:
            return self._graph.run(step, args)
        finally:
            # Also after Ctrl-C, of which observers are not notified.
            self._dump.dumper.end_iteration(*run_key)
            files.runs.end_run(*run_key)


def _is_unshown(record: TensorRecord) -> bool:
    return isinstance(record.data, Unshown)

"""Folders of the asynchronous dump of MindSpore: one for the run, or one for each step."""

from __future__ import annotations

import datetime
import threading
from pathlib import Path

from msdump.config.plan import DUMP_INPUT, DUMP_OUTPUT, Plan
from msdump.config.selectors import FullNameSelector, OpTypeSelector
from msdump.formats.folders import FolderHolds, claim_dir
from msdump.formats.paths.acl import AclOperatorPaths, AclPaths, PlainPaths, format_time
from msdump.formats.sidecars import acl_json_path, initial_acl_json, step_acl_json, write_acl_json
from msdump.graph.graph import Graph
from msdump.tensors.records import TensorRecord


def claim_time(root: Path, device_id: int, holds: FolderHolds) -> str:
    """Name of a time folder in which no other dump has this device, whose folder is made and held.

    Another process, or a run before in the same second, would give its files the same names.
    Raises: WriteError.
    """
    moment = datetime.datetime.now()
    while not claim_dir(folder := root / format_time(moment) / str(device_id)):
        moment += datetime.timedelta(seconds=1)
    holds.add(folder)
    return format_time(moment)


def _model_name(graph_id: int) -> str:
    """The name that a graph has in its own files."""
    return f"kernel_graph_{graph_id}"


class RunFolders:
    """One time folder for the whole run.   Source: MindSpore, asynchronous dump in graph mode."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.holds = FolderHolds()
        path, device_id = plan.where.path, plan.where.device_id
        self._paths = PlainPaths(path, claim_time(path, device_id, self.holds), device_id)
        self.home = self._paths.device_dir
        # Another run has another time, and graphs of its own.
        self.graphs_home = self.home.parent

    def directory(self, record: TensorRecord) -> Path:
        return self._paths.data_dir(_model_name(record.graph_id), record.graph_id, record.iteration)

    def begin_step(self, graph: Graph, iteration: int) -> None:
        """Nothing: the folder of an iteration is made with its first file."""


class StepFolders:
    """A folder and a time for each step, and the JSON file that tells ACL about it.

    Source: MindSpore, dump through ACL; without model folders when operators are launched one by one (O0).
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.holds = FolderHolds()
        self._models = AclPaths(plan.where.path, plan.where.device_id)
        self._operators = AclOperatorPaths(plan.where.path, plan.where.device_id)
        self._json = acl_json_path(plan.where.path, plan.where.device_id)
        self._dynamic: dict[tuple[int, int], bool] = {}
        self._times: dict[int, str] = {}
        self._lock = threading.Lock()
        self.home = self.graphs_home = plan.where.path
        write_acl_json(self._json, initial_acl_json(plan.where.path))

    def directory(self, record: TensorRecord) -> Path:
        graph_id, step_id = record.graph_id, record.iteration
        time = self._time_of(step_id)
        if self.plan.how.jit_level == "O0":
            # An exception is dumped in a step that was not announced.
            is_dynamic = self._dynamic.get((graph_id, step_id), False)
            return self._operators.data_dir(step_id, time, step_id if is_dynamic else None)
        return self._models.data_dir(step_id, time, _model_name(graph_id), graph_id, step_id)

    def _time_of(self, step_id: int) -> str:
        """Made with the first file: a step without any, such as one that does not overflow, leaves no folder."""
        time = self._times.get(step_id)
        if time is None:
            with self._lock:
                time = self._times.get(step_id)
                if time is None:
                    root = self.plan.where.path / str(step_id)
                    time = self._times[step_id] = claim_time(root, self.plan.where.device_id, self.holds)
        return time

    def begin_step(self, graph: Graph, iteration: int) -> None:
        """Raises: WriteError."""
        plan = self.plan
        self._dynamic[graph.graph_id, iteration] = graph.is_dynamic
        dump_mode = {DUMP_INPUT: "input", DUMP_OUTPUT: "output"}.get(plan.operands.mask, "all")
        selectors = plan.which.selectors or ()
        layers = [rule.text for rule in selectors if isinstance(rule, FullNameSelector | OpTypeSelector)]
        folder = plan.where.path / str(iteration)
        write_acl_json(self._json, step_acl_json(folder, dump_mode, layers, plan.trigger.op_debug_mode))

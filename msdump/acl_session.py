"""AclSession: the dump of one acl.json, from the call that sets it to the one that ends it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msdump import measuring
from msdump.graph.run import FinishedStep, Observer
from msdump.records import OpEvent, OpInfo
from msdump.report import MODELS, Report, merged
from msdump.sessions import Session, begin, close_all

if TYPE_CHECKING:
    from msdump.acl_engine import AclDump
    from msdump.config.acl import Source
    from msdump.config.plan import Plan
    from msdump.dumpers.writer_pool import WriterPool
    from msdump.formats.acl_chunks import DumpChunk
    from msdump.graph.graph import Graph, Value

log = logging.getLogger("msdump")

Deliver = Callable[["DumpChunk"], None]


def plan_of(source: Source) -> Plan | None:
    """What an acl.json asks for, as `load_acl_config`; None when it asks for nothing.

    What is odd but no error goes to the log.   Raises: AclConfigError.
    """
    from msdump.config.acl import load_acl_config, plan_acl

    config = load_acl_config(source)
    for warning in config.warnings:
        log.warning(warning)
    return plan_acl(config)


class _Process:
    """What holds for all configurations that are set from now on."""

    deliver: Deliver | None = None
    settle: Callable[[], object] = staticmethod(lambda: None)


def deliver_to(deliver: Deliver | None) -> None:
    """Deliver chunks instead of writing files, for configurations that are set from now on; None ends that."""
    _Process.deliver = deliver


def settle_with(settle: Callable[[], object]) -> None:
    """Wait by this call for what streams still do, before dumps are closed."""
    _Process.settle = settle


def open_session(plan: Plan) -> AclSession:
    """Begin what a plan asks for."""
    return begin(AclSession(plan, _Process.deliver, _Process.settle))


class AclSession(Session):
    """What one plan dumps. Has an AclDump for each device that something ran on, made when it is needed first.

    root     folder of the dump; None: the plan's, or for an exception dump what the environment says
    settle   waits for what streams still do
    """

    has_threads = True

    def __init__(
        self,
        plan: Plan,
        deliver: Deliver | None = None,
        settle: Callable[[], object] = lambda: None,
        root: Path | None = None,
    ) -> None:
        super().__init__()
        self.plan = plan
        self.root = root or _root(plan)
        self._deliver = deliver
        self._settle = settle
        self._dump_by_device: dict[int, AclDump] = {}
        self._gates: list[_Gate] = []
        self._lock = threading.Lock()
        self._final: Report | None = None

    def observe_model(
        self, model_id: int, names: Sequence[str], originals: Mapping[str, tuple[str, ...]], device_id: int
    ) -> tuple[Observer, ...]:
        """Who watches a model that is loaded now; () when nothing of it is dumped."""
        return self._gated(self.dump(device_id).observe_model(model_id, names, originals))

    def observe_operators(self, device_id: int) -> tuple[Observer, ...]:
        """Who watches an operator that is called by itself; () when that is not asked for."""
        return self._gated(self.dump(device_id).observe_operators())

    def count_skipped(self, count_by_reason: Mapping[str, int], device_id: int) -> None:
        """Values of a model that no file can hold, for the report."""
        self.dump(device_id).count_skipped(count_by_reason)

    def wants_arena(self, device_id: int) -> bool:
        """True when models should keep all values in one block of memory."""
        return self.dump(device_id).wants_arena()

    def dump(self, device_id: int = 0) -> AclDump:
        """The dump of one device."""
        from msdump.acl_engine import AclDump

        self.note_use()
        with self._lock:
            if device_id not in self._dump_by_device:
                self._dump_by_device[device_id] = AclDump(self.plan, self.root, device_id, callback=self._deliver)
            return self._dump_by_device[device_id]

    @property
    def folder(self) -> str:
        return str(self.root)

    @property
    def is_used(self) -> bool:
        return bool(self._dump_by_device) or (self._final is not None and self._final.operators_seen > 0)

    @property
    def dumps(self) -> tuple[AclDump, ...]:
        """One for each device that something ran on."""
        return tuple(self._dump_by_device.values())

    @property
    def pools(self) -> tuple[WriterPool, ...]:
        return tuple(dump.pool for dump in self.dumps)

    def settle(self) -> None:
        self._settle()

    def report(self) -> Report:
        """Counts up to now, of all devices."""
        if self._final is not None:
            return self._final
        reports = [dump.report() for dump in self.dumps]
        return reports[0] if len(reports) == 1 else merged(self.folder, MODELS, reports)

    def _finish(self) -> None:
        for gate in self._gates:
            gate.is_open = False
        try:
            close_all(self.dumps)
        finally:
            # What the dumps hold of models is not to outlive them.
            self._final = self.report()
            self._dump_by_device, self._gates = {}, []

    def _gated(self, observers: Sequence[Observer]) -> tuple[Observer, ...]:
        gates = tuple(map(_Gate, observers))
        self._gates += gates
        return gates


def _root(plan: Plan) -> Path:
    from msdump.config.environment import AclEnvironment, exception_folder

    folder = plan.where.path
    if plan.trigger.exception:
        folder = exception_folder(AclEnvironment.from_os(), folder, Path.cwd())
    return measuring.redirected(folder)


class _Gate:
    """Lets calls through until the dump ends: models live longer than the dump that was in force for them."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self.needs_all_values = observer.needs_all_values
        self.is_open = True

    def on_graph(self, graph: Graph) -> Sequence[int]:
        return self._observer.on_graph(graph) if self.is_open else [0] * len(graph.op_infos())

    def on_operator(self, graph: Graph, op: OpInfo) -> int:
        return self._observer.on_operator(graph, op) if self.is_open else 0

    def on_parameter(self, graph: Graph, value: Value) -> None:
        self._observer.on_parameter(graph, value)

    def on_iteration_begin(self, graph: Graph, iteration: int) -> bool:
        return self.is_open and self._observer.on_iteration_begin(graph, iteration)

    def before_op(self, event: OpEvent) -> None:
        self._observer.before_op(event)

    def after_op(self, event: OpEvent) -> None:
        self._observer.after_op(event)

    def on_iteration_end(self, step: FinishedStep) -> None:
        self._observer.on_iteration_end(step)

    def on_error(self, event: OpEvent, error: BaseException) -> None:
        self._observer.on_error(event, error)

    def close(self) -> None:
        self._observer.close()

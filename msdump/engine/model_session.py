"""AclSession: the dump of one acl.json, from the call that sets it to the one that ends it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msdump.graph.run import Gate, Observer
from msdump.process import dry_run
from msdump.process.report import MODELS, Report, merged
from msdump.process.sessions import Session, begin, close_all

if TYPE_CHECKING:
    from msdump.config.acl import Source
    from msdump.config.plan import Plan
    from msdump.dumpers.writer_pool import WriterPool
    from msdump.engine.models import AclDump
    from msdump.engine.reloading import Reloader
    from msdump.formats.acl_chunks import DumpChunk

log = logging.getLogger("msdump")

Deliver = Callable[["DumpChunk"], None]


def plan_of(source: Source, current: Path | None = None) -> Plan | None:
    """What an acl.json asks for, as `load_acl_config`; None when it asks for nothing.

    current   as of `plan_acl`
    What is odd but no error goes to the log.   Raises: AclConfigError.
    """
    from msdump.config.acl import load_acl_config, plan_acl

    config = load_acl_config(source)
    for warning in config.warnings:
        log.warning(warning)
    return plan_acl(config, current)


class _Process:
    """State shared by all later configurations."""

    deliver: Deliver | None = None
    settle: Callable[[], object] = staticmethod(lambda: None)


def deliver_to(deliver: Deliver | None) -> None:
    """Deliver chunks instead of writing files, for configurations that are set from now on; None ends that."""
    _Process.deliver = deliver


def settle_with(settle: Callable[[], object]) -> None:
    """Wait by this call for what streams still do, before dumps are closed."""
    _Process.settle = settle


def open_session(plan: Plan) -> AclSession:
    """Begin what a plan asks for.   Raises: FolderError when no dump can begin in the folder."""
    session = AclSession(plan, _Process.deliver, _Process.settle)
    if _Process.deliver is None:
        from msdump.dumpers.limits import check_folder

        check_folder(session.root)
    begin(session)
    session.follow_file()
    return session


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
        self._gates: list[Gate] = []
        self._lock = threading.Lock()
        self._final: Report | None = None
        self._reloader: Reloader | None = None
        self._plan_of_gate: dict[Gate, Plan] = {}
        self._has_taken_operators = False

    def follow_file(self) -> None:
        """Read the file of the plan again when it changes. Models that are watched now, and later, follow it."""
        from msdump.engine.reloading import Reloader

        path, current = self.plan.source.given, Path.cwd()
        if path is not None:
            self._reloader = Reloader(self.plan.source, lambda: plan_of(path, current))

    def observe_model(
        self, model_id: int, names: Sequence[str], originals: Mapping[str, tuple[str, ...]], device_id: int = 0
    ) -> tuple[Observer, ...]:
        """Who watches a model that is loaded now; () when nothing of it is dumped."""
        return self._gated(device_id, lambda dump: dump.observe_model(model_id, names, originals))

    def takes_operators(self) -> bool:
        """Whether operators that are called by themselves are dumped, or were before the file changed."""
        if not self._has_taken_operators:
            self._has_changed()
            self._has_taken_operators = self.plan.which.takes_single_operators or self.plan.trigger.exception != ""
        return self._has_taken_operators

    def observe_operators(self, device_id: int) -> tuple[Observer, ...]:
        """Who watches an operator that is called by itself; () when that is not asked for."""
        return self._gated(device_id, lambda dump: dump.observe_operators())

    def count_skipped(self, count_by_reason: Mapping[str, int], device_id: int = 0) -> None:
        """Values of a model that no file can hold, for the report."""
        self.dump(device_id).count_skipped(count_by_reason)

    def count_unseen(self, count_by_type: Mapping[str, int], device_id: int = 0) -> None:
        """Operators of a model that no dump is shown, by the type of the operator that runs them, for the report."""
        self.dump(device_id).count_unseen(count_by_type)

    def wants_arena(self, device_id: int) -> bool:
        """True when models should keep all values in one block of memory."""
        return self.dump(device_id).wants_arena()

    def dump(self, device_id: int = 0) -> AclDump:
        """The dump of one device."""
        from msdump.engine.models import AclDump

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
            if self._reloader is not None:
                self._reloader.close()
        finally:
            # What the dumps hold of models is not to outlive them.
            self._final = self.report()
            self._dump_by_device, self._gates, self._plan_of_gate = {}, [], {}
            self._reloader = None

    def _gated(self, device_id: int, observe: Callable[[AclDump], Sequence[Observer]]) -> tuple[Observer, ...]:
        dump = self.dump(device_id)
        plan, observers = self.plan, observe(dump)
        if not observers and self._has_changed():
            plan, observers = self.plan, observe(dump)
        gates = tuple(Gate(observer, partial(self._renew, dump)) for observer in observers)
        self._gates += gates
        self._plan_of_gate |= dict.fromkeys(gates, plan)
        return gates

    def _renew(self, dump: AclDump, gate: Gate) -> None:
        """A model is about to run: where the file has changed, who watches it follows."""
        if self._reloader is None:
            return
        self._has_changed()
        plan = self._plan_of_gate.get(gate)
        if plan is not None and plan is not self.plan:
            self._plan_of_gate[gate] = self.plan
            gate.replace(dump.successor(gate.observer))

    def _has_changed(self) -> bool:
        """Look at the file; whether another plan is in force from now on."""
        if self._reloader is None or self.is_foreign:
            return False
        with self._lock:
            plan = None if any(dump.error for dump in self.dumps) else self._reloader.poll(self.plan)
            if plan is not None:
                log.warning("%s: read again, in force from the next run of each model.", plan.source.given)
                self.plan = plan
                for each in self._dump_by_device.values():
                    each.plan = plan
            return plan is not None


def _root(plan: Plan) -> Path:
    from msdump.config.environment import AclEnvironment, exception_folder

    folder = plan.where.path
    if plan.trigger.exception:
        folder = exception_folder(AclEnvironment.from_os(), folder, Path.cwd())
    return dry_run.redirected(folder)

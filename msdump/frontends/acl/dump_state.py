"""DumpState: the active dump, by the order of the calls on it.

init_dump -> set_dump (any number of times) -> finalize_dump, and again. A model takes the dump that is in force when
it is loaded. An exception dump that the environment asks for is in force from `acl.init` on.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from msdump.engine import opening
from msdump.engine.model_session import AclSession, Deliver, deliver_to, open_session, plan_of, settle_with
from msdump.frontends.acl import codes
from msdump.frontends.acl.calls import CallError
from msdump.process import sessions

if TYPE_CHECKING:
    from msdump.config.plan import Plan

log = logging.getLogger("msdump")

# What the documented order with a callback and without `set_dump` delivers.
_EVERYTHING = {"dump": {"dump_path": ".", "dump_list": [{}]}}


class DumpState:
    """The dumps of one process.   Source: ACL, `aclmdlInitDump`, `aclmdlSetDump`, `aclmdlFinalizeDump`.

    is_initialized   between `acl.init` and `acl.finalize`
    is_dump_on       between `init_dump` and `finalize_dump`
    settle           waits for what streams still do
    """

    def __init__(self, settle: Callable[[], object] = lambda: None) -> None:
        deliver_to(None)
        settle_with(settle)
        self.is_initialized = False
        self.was_finalized = False
        self.is_dump_on = False
        self.is_device_set = False
        self._deliver: Deliver | None = None
        self._configured: AclSession | None = None
        self._exception: AclSession | None = None
        self._is_exception_lasting = False
        self._data: AclSession | None = None
        self._opened: list[AclSession] = []
        self._lock = threading.RLock()

    # -- acl.init, acl.finalize -------------------------------------------------------------------

    def init(self, path: str | None) -> None:
        """Read the environment and an acl.json; "" and None are no file.

        Raises: CallError 100002; AclConfigError, and nothing has changed then.
        """
        with self._lock:
            if self.is_initialized:
                raise CallError(codes.REPEAT_INITIALIZE, "aclInit: it was called already", codes.WRONG_ORDER)
            plan = plan_of(path) if path else None
            self._obey_environment()
            if plan is not None and plan.trigger.exception:
                self._start_exception(plan, is_lasting=True)
            elif plan is not None:
                self._configured = self._open(plan)
            self.is_initialized = True

    def finalize(self) -> None:
        """End everything.   Raises: CallError 100001, 100037; DumpError when a dump is not complete."""
        with self._lock:
            if not self.is_initialized:
                if self.was_finalized:
                    raise CallError(codes.REPEAT_FINALIZE, "aclFinalize: it was called already", codes.WRONG_ORDER)
                raise CallError(codes.UNINITIALIZE, "aclFinalize: call acl.init first", codes.WRONG_ORDER)
            self.is_initialized = self.is_dump_on = self.is_device_set = self._is_exception_lasting = False
            self.was_finalized = True
            self._configured = self._exception = self._data = None
            self.close()

    # -- acl.mdl.*_dump ---------------------------------------------------------------------------

    def init_dump(self) -> None:
        """Raises: CallError 100001, 100044 when `acl.init` configured a dump, 100002."""
        with self._lock:
            self._check_initialized("aclmdlInitDump")
            if self._configured is not None:
                raise CallError(
                    codes.DUMP_ALREADY_RUN,
                    "aclmdlInitDump: the file that acl.init was given configures a dump already. Take its section "
                    "dump out, or do not call aclmdlInitDump",
                    codes.WRONG_ORDER,
                )
            if self.is_dump_on:
                raise CallError(
                    codes.REPEAT_INITIALIZE,
                    "aclmdlInitDump: it was called already. Call aclmdlFinalizeDump first",
                    codes.WRONG_ORDER,
                )
            if self._deliver is not None:
                self._data = self._open(plan_of(_EVERYTHING))
            self.is_dump_on = True

    def set_dump(self, path: str | None) -> None:
        """Put a configuration in force for models that are loaded from now on; the last one counts.

        Edges:  one that asks for nothing lets later models dump nothing.
        Raises: CallError 100001, 100045, 500000 for a detail dump after a device was set; AclConfigError.
        """
        with self._lock:
            self._check_dump_on("aclmdlSetDump")
            from msdump.config.environment import DETAIL

            plan = plan_of(path)
            if plan is not None and plan.trigger.exception:
                if plan.trigger.exception == DETAIL and self.is_device_set:
                    raise CallError(
                        codes.INTERNAL_ERROR,
                        f"aclmdlSetDump: dump_scene {plan.trigger.exception} must be set before aclrtSetDevice",
                        codes.WRONG_ORDER,
                    )
                self._data = None
                self._start_exception(plan, is_lasting=plan.trigger.exception == DETAIL)
                return
            self._data = self._open(plan)

    def finalize_dump(self) -> None:
        """End what `set_dump` began; what was loaded goes on without a dump. An exception dump of the environment
        and one of the detail scene stay.

        Raises: CallError 100001, 100045; DumpError, and the call may be made again then.
        """
        with self._lock:
            self._check_dump_on("aclmdlFinalizeDump")
            staying = {self._exception} if self._is_exception_lasting else set()
            ending = [dump for dump in self._opened if dump not in staying]
            if not self._is_exception_lasting:
                self._exception = None
            self._data = None
            sessions.close_all(ending)
            self._opened = [dump for dump in self._opened if dump not in ending]
            self.is_dump_on = False

    def register(self, deliver: Deliver | None) -> None:
        """Deliver chunks instead of writing files, for configurations that are set from now on; None ends that."""
        with self._lock:
            self._deliver = deliver
            deliver_to(deliver)

    # -- what others ask --------------------------------------------------------------------------

    def in_force(self) -> tuple[AclSession, ...]:
        """The dumps that a model takes which is loaded now, or an operator that is called now."""
        with self._lock:
            block = opening.models_in_block()
            data = self._data or self._configured if block is None else block[0]
            if block is None and data is None and self._exception is None and not self.is_dump_on:
                data = opening.models_by_default()
            return tuple(dump for dump in (self._exception, data) if dump is not None and not dump.has_ended)

    def obey_environment(self) -> None:
        """Put the exception dump in force that the environment asks for; for scripts that do not call `init`."""
        with self._lock:
            self._obey_environment()

    def close(self) -> None:
        """Finish every dump.   Raises: DumpError of the first that is not complete."""
        with self._lock:
            self._opened = []
        sessions.close_all(sessions.all_of(AclSession))

    # -- parts ------------------------------------------------------------------------------------

    def _check_initialized(self, function: str) -> None:
        if not self.is_initialized:
            raise CallError(codes.UNINITIALIZE, f"{function}: call acl.init first", codes.WRONG_ORDER)

    def _check_dump_on(self, function: str) -> None:
        self._check_initialized(function)
        if not self.is_dump_on:
            raise CallError(codes.DUMP_NOT_RUN, f"{function}: call aclmdlInitDump first", codes.WRONG_ORDER)

    def _obey_environment(self) -> None:
        from msdump.config.acl import plan_acl_exception
        from msdump.config.environment import AclEnvironment

        environment = AclEnvironment.from_os()
        for text in environment.warnings:
            log.warning(text)
        if environment.scene and self._exception is None:
            self._start_exception(plan_acl_exception(environment.scene), is_lasting=True)

    def _start_exception(self, plan: Plan, is_lasting: bool) -> None:
        if self._exception is not None:
            scene = plan.trigger.exception
            log.warning("dump_scene %s: an exception dump is on already, so this one is ignored.", scene)
            return
        self._exception, self._is_exception_lasting = self._open(plan), is_lasting

    def _open(self, plan: Plan | None) -> AclSession | None:
        if plan is None:
            return None
        dump = open_session(plan)
        self._opened.append(dump)
        return dump

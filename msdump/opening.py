"""From the environment and a configuration to the session that graphs of MindSpore and PyTorch share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from msdump import sessions

if TYPE_CHECKING:
    from msdump.config.plan import Plan
    from msdump.engine import GraphSession

_session: GraphSession | None = None
_is_decided = False


def open_mindspore(
    device_target: str, device_id: int, is_pynative: bool = False, jit_level: str = ""
) -> GraphSession | None:
    """The process's session for MindSpore Dump; None when Dump is off.

    The environment and the JSON are read once, at the first call; a call that raises decides nothing.
    Raises: ConfigError before anything is written; WriteError when the folder cannot be made.
    """
    from msdump.config.environment import Environment
    from msdump.config.mindspore import plan_mindspore

    return _open_once(lambda: plan_mindspore(Environment.from_os(), device_target, device_id, is_pynative, jit_level))


def open_torch(rank_id: int | None, device_id: int, categories: tuple[str, ...]) -> GraphSession | None:
    """The process's session for graphs of PyTorch; None when Dump is off.

    rank_id     None: what the environment says
    categories  columns of statistic.csv when the configuration chooses none
    Raises: as `open_mindspore`.
    """

    def plan_torch() -> Plan | None:
        from msdump.config.environment import Environment
        from msdump.config.mindspore import plan_mindspore

        environment = Environment.from_os()
        chosen = environment.device_id if environment.device_id is not None else device_id
        plan = plan_mindspore(environment, "CPU", chosen)
        if plan is None:
            return None
        return replace(
            plan,
            where=plan.where if rank_id is None else replace(plan.where, rank_id=rank_id),
            saved=replace(plan.saved, columns=plan.saved.columns or categories),
            how=replace(plan.how, has_graph_files=True),
        )

    return _open_once(plan_torch)


def _open_once(make_plan: Callable[[], Plan | None]) -> GraphSession | None:
    """Start what the plan selects, once per process, whichever thread compiles first."""
    global _session, _is_decided
    if not _is_decided:
        with sessions.lock:
            if not _is_decided:
                plan = make_plan()
                if plan is not None and plan.when.is_device_enabled:
                    from msdump.engine import start

                    _session = sessions.begin(start(plan))
                _is_decided = True
                if plan is None:
                    sessions.note_no_dump()
    return current()


def is_decided() -> bool:
    """Whether the environment was read already, so that `current` is the answer for this process."""
    return _is_decided


def current() -> GraphSession | None:
    """The session of this process, if a graph was compiled with Dump on."""
    if _session is not None and _session.is_foreign:
        sessions.warn_of_fork()
        return None
    return _session


def _forget() -> None:
    global _session, _is_decided
    _session, _is_decided = None, False


sessions.call_at_reset(_forget)

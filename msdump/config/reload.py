"""What of a configuration may change while the job runs, and what stays as it was when the job began."""

from __future__ import annotations

from dataclasses import dataclass, replace

from msdump.config.acl_rules import DUMP, WATCHER
from msdump.config.plan import OPERANDS, Plan
from msdump.config.recorder import RECORDER


@dataclass(frozen=True)
class Change:
    """A configuration that replaces another.   kept: keys that differ and stay as they were"""

    plan: Plan
    kept: tuple[str, ...]


def change(old: Plan, new: Plan) -> Change:
    """The old plan with the iterations, operators, operands, data and triggers of the new one.

    Where the new one is for the other engine, triggers, formats and layouts stay as well: each engine has its own.
    """
    is_acl = isinstance(new.source.value, dict) and DUMP in new.source.value
    if _scene(old) != _scene(new):
        # Each scene has files, and memory of models, of its own.
        return Change(replace(old, source=new.source), ("dump_scene",))
    pairs = {
        "dump_path" if is_acl else "path": (old.where.path, new.where.path),
        "net_name": (old.where.net_name, new.where.net_name),
        "e2e_dump_settings.enable": (old.how.engine, new.how.engine),
        "initial_iteration": (old.when.initial_iteration, new.when.initial_iteration),
        RECORDER: (old.recorder is None, new.recorder is None),
        "support_device": (old.when.is_device_enabled, new.when.is_device_enabled),
    }
    kept = tuple(key for key, (before, after) in pairs.items() if before != after)
    which, saved, trigger = new.which, new.saved, new.trigger
    if old.how.engine != new.how.engine:
        saved = replace(saved, file_format=old.saved.file_format, is_host_layout=old.saved.is_host_layout)
        trigger = old.trigger
        if trigger.op_debug_mode:
            which = old.which
    when = replace(old.when, iterations=new.when.iterations)
    plan = replace(old, when=when, which=which, operands=new.operands, saved=saved, trigger=trigger, source=new.source)
    return Change(plan, kept)


def _scene(plan: Plan) -> str:
    """Of ACL; "" for an ordinary dump and for triggers that may come and go."""
    exception = "" if plan.trigger.exception == OPERANDS else plan.trigger.exception
    return WATCHER if plan.trigger.is_watcher else exception

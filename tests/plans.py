"""Plans without a configuration file: the plain dump, but for the fields that a test names, whichever part has them."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from msdump.config.acl import parse_acl_config, plan_acl
from msdump.config.json_file import JsonFile
from msdump.config.plan import EXCEPTION_MODE, OPERANDS, How, OperandSelection, Plan, Saved, Trigger, When, Where
from msdump.config.selection import OperatorList, Which


def plain_plan(path: Path = Path("/nowhere"), **changes: Any) -> Plan:
    """Dumps everything in every iteration, asynchronously as on Ascend, in npy files; see `changed`."""
    where = Where(path, net_name="Net")
    source = JsonFile(path / "dump.json", b"{}", {})
    return changed(Plan(When(), Which(), OperandSelection(), Saved(), Trigger(), where, How(), source), **changes)


def changed(plan: Plan, **changes: Any) -> Plan:
    """The plan with other values; `selectors` and `op_debug_mode` stand for what the configuration makes of them."""
    if "selectors" in changes:
        selectors = changes.pop("selectors")
        plan = replace(plan, which=Which((OperatorList(selectors=selectors),)))
    if "op_debug_mode" in changes:
        mode = changes.pop("op_debug_mode")
        trigger = Trigger(exception=OPERANDS) if mode == EXCEPTION_MODE else Trigger(overflow=mode)
        plan = replace(plan, trigger=trigger)
    for part in fields(plan):
        value = getattr(plan, part.name)
        if value is None:
            continue
        names = {each.name for each in fields(value)} & changes.keys()
        plan = replace(plan, **{part.name: replace(value, **{name: changes.pop(name) for name in names})})
    assert not changes, f"no part of a Plan has {', '.join(changes)}"
    return plan


def acl_plan(current: Path | None = None, **keys: Any) -> Any:
    """The plan of an acl.json with these keys, into a folder that exists; None when it dumps nothing."""
    dump = {"dump_path": str(Path(__file__).parent), **keys}
    return plan_acl(parse_acl_config(JsonFile(Path("/acl.json"), b"text", {"dump": dump})), current)

"""What an acl.json will dump, in words, before anything runs."""

from __future__ import annotations

import sys
from pathlib import Path

from msdump.cli.main import NOTHING_DUMPED
from msdump.cli.printing import complain, print_table, say
from msdump.errors import ConfigError


def is_acl_json(path: str) -> bool:
    """True for a file with ACL's section and without MindSpore's; False also for one that cannot be read."""
    from msdump.config.acl_rules import DUMP
    from msdump.config.json_file import read_json_file
    from msdump.config.sections import COMMON

    try:
        content = read_json_file(path).value
    except ConfigError:
        return False
    return isinstance(content, dict) and DUMP in content and COMMON not in content


def check_acl_json(path: str) -> tuple[int, Path | None]:
    """Print what it asks for; the result is 0 and the folder of the dump, or 3 when nothing is dumped.

    Raises: AclConfigError.
    """
    from msdump.config.acl import load_acl_config, plan_acl
    from msdump.config.acl_rules import WATCHER

    config = load_acl_config(path)
    for text in config.warnings:
        complain(f"warning: {text}")
    plan = plan_acl(config)
    if plan is None:
        say("nothing is dumped")
        return NOTHING_DUMPED, None
    trigger, folder = plan.trigger, plan.where.path if plan.where.is_path_given else None
    kind = trigger.exception or (WATCHER if trigger.is_watcher else "overflow" if trigger.overflow else "operators")
    rows = [("kind", kind), ("folder", "chosen by the environment, or this one" if folder is None else str(folder))]
    if not trigger.op_debug_mode:
        models = ", ".join(dict.fromkeys(each.model_name or "every model" for each in plan.which.lists)) or "none"
        operands, columns = plan.operands, plan.saved.columns
        sides = [side for side, is_dumped in (("inputs", operands.inputs), ("outputs", operands.outputs)) if is_dumped]
        rows += [
            ("models", models),
            ("single operators", "yes" if plan.which.takes_single_operators else "no"),
            ("dumped", " and ".join(sides)),
            ("as", f"statistics: {', '.join(columns)}" if columns else "tensors"),
        ]
    if folder is not None:
        from msdump.dump.room import room_below, room_rows

        rows += room_rows(room_below(folder, is_async=True))
    print_table(("acl.json", path), rows, sys.stdout)
    return 0, folder

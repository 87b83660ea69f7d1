"""What an acl.json will dump, in words, before anything runs."""

from __future__ import annotations

import sys
from pathlib import Path

from msdump.cli.main import NOTHING_DUMPED
from msdump.cli.printing import complain, print_table, say
from msdump.errors import ConfigError


def is_acl_json(path: str) -> bool:
    """True for a file with ACL's section and without MindSpore's; False also for one that cannot be read."""
    from msdump.config.acl_sections import DUMP
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

    config = load_acl_config(path)
    for text in config.warnings:
        complain(f"warning: {text}")
    plan = plan_acl(config)
    if plan is None:
        say("nothing is dumped")
        return NOTHING_DUMPED, None
    kind = plan.scene or ("overflow" if plan.is_overflow else "operators")
    rows = [("kind", kind), ("folder", str(plan.path) if plan.path else "chosen by the environment, or this one")]
    if kind == "operators" or plan.is_watcher:
        models = ", ".join(dict.fromkeys(entry.model_name or "every model" for entry in plan.entries)) or "none"
        sides = [
            side for side, is_dumped in (("inputs", plan.dumps_input), ("outputs", plan.dumps_output)) if is_dumped
        ]
        rows += [
            ("models", models),
            ("single operators", "yes" if plan.is_single_op else "no"),
            ("dumped", " and ".join(sides)),
            ("as", f"statistics: {', '.join(plan.statistics)}" if plan.statistics else "tensors"),
        ]
    if plan.path is not None:
        from msdump.dump.room import room_below, room_rows

        rows += room_rows(room_below(plan.path, is_async=True))
    print_table(("acl.json", path), rows, sys.stdout)
    return 0, plan.path

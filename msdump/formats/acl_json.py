"""The JSON file that MindSpore hands to ACL before each step of a dump through ACL.

Source: MindSpore, `MS_ACL_DUMP_CFG_PATH`; `{path}/acl_dump_{device_id}.json`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msdump.formats.atomic import make_dirs, write_file

_MODE = 0o400
# A step that never comes: ACL is started before the first step that is asked for.
_NEVER = "2147483647"


def acl_json_path(root: Path, device_id: int) -> Path:
    return root / f"acl_dump_{device_id}.json"


def initial_acl_json(root: Path) -> str:
    """Text of the file before any step."""
    return _text({"dump": {"dump_path": str(root), "dump_step": _NEVER}})


def step_acl_json(folder: Path, dump_mode: str, layers: Sequence[str], op_debug_mode: int) -> str:
    """Text of the file for one step.

    folder     of the step, `{path}/{step_id}`
    dump_mode  "all", "input" or "output"
    layers     names that `kernels` lists; none: every operator
    Edges:     overflow detection (3) and the exception dump (4) have keys of their own, and stand alone: ACL refuses
               a scene beside `dump_op_switch`.
    """
    if op_debug_mode == 3:
        return _text({"dump": {"dump_path": str(folder), "dump_debug": "on"}})
    if op_debug_mode == 4:
        return _text({"dump": {"dump_path": str(folder), "dump_scene": "lite_exception"}})
    dump: dict[str, Any] = {
        "dump_list": [{"layer": list(layers)}] if layers else [],
        "dump_mode": dump_mode,
        "dump_op_switch": "on",
        "dump_path": str(folder),
    }
    return _text({"dump": dump})


def write_acl_json(path: Path, text: str) -> None:
    """Raises: WriteError."""
    make_dirs(path.parent)
    write_file(path, [text.encode()], _MODE, replace=True)


def _text(value: dict[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"))

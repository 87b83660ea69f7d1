"""Plans from the keys of an acl.json, and what a dump has left."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from msdump.config.acl import load_acl_config, plan_acl
from msdump.config.acl_plan import AclPlan
from msdump.engines.acl import AclDump
from msdump.events import Array
from msdump.formats.dump_dir import DumpDir

Place = tuple[int | None, str, str, int]


def make_plan(root: Path, **keys: Any) -> AclPlan:
    """As from a file; `dump_list` is every operator of every model unless it is given."""
    section = {"dump_path": str(root), "dump_list": [{}], **keys}
    path = root.parent / "acl.json"
    path.write_text(json.dumps({"dump": {key: value for key, value in section.items() if value is not None}}))
    plan = plan_acl(load_acl_config(path))
    assert plan is not None and plan.path is not None
    return plan


def make_dump(root: Path, **keys: Any) -> AclDump:
    root.mkdir(exist_ok=True)
    return AclDump(make_plan(root, **keys), root)


def tree(root: Path) -> list[str]:
    """Files with times and time stamps replaced."""
    names = (path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())
    return sorted(re.sub(r"\.\d{16}", ".STAMP", re.sub(r"^\d{14}/", "TIME/", name)) for name in names)


def tensors(root: Path) -> dict[Place, Array]:
    """Every tensor by (iteration, operator, io, slot), of models that share no operator; none may come twice."""
    found: dict[Place, Array] = {}
    dump = DumpDir.open(root, strict=True)
    for tensor in dump:
        place: Place = (tensor.file.place.data_index, tensor.file.op_name, tensor.io, tensor.slot)
        assert place not in found
        found[place] = tensor.load()
    assert not dump.damaged
    assert not dump.foreign
    return found

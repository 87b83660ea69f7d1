"""Dumps from the keys of an acl.json, and what they have left."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msdump.config.acl import load_acl_config, plan_acl
from msdump.config.plan import Plan
from msdump.engine.models import AclDump
from msdump.formats.dump_dir import DumpDir
from msdump.formats.paths.acl import safe_piece
from msdump.graph.graph import Graph
from msdump.graph.run import FinishedStep
from msdump.tensors.arrays import Array
from msdump.tensors.records import AFTER, BEFORE, OpEvent

Place = tuple[int | None, str, str, int]


LONG_SCOPE = "scope/" * 50 + "net"


def make_plan(root: Path, **keys: Any) -> Plan:
    """As from a file; `dump_list` is every operator of every model unless it is given."""
    section = {"dump_path": str(root), "dump_list": [{}], **keys}
    path = root.parent / "acl.json"
    path.write_text(json.dumps({"dump": {key: value for key, value in section.items() if value is not None}}))
    plan = plan_acl(load_acl_config(path))
    assert plan is not None
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
        place: Place = (tensor.file.levels.data_index, tensor.file.op_name, tensor.io, tensor.slot)
        assert place not in found
        found[place] = tensor.load()
    assert not dump.damaged
    assert not dump.foreign
    return found


class Witness:
    """Copies what every operator read, and what it left."""

    needs_all_values = False

    def __init__(self) -> None:
        self.found: dict[tuple[int, str, str, int], Array] = {}

    def on_graph(self, graph: Graph) -> Sequence[int]:
        return [BEFORE | AFTER] * len(graph.kernels)

    def on_iteration_begin(self, graph: Graph, iteration: int) -> bool:
        return True

    def before_op(self, event: OpEvent) -> None:
        self._keep(event, "input", event.inputs)

    def after_op(self, event: OpEvent) -> None:
        self._keep(event, "output", event.outputs)

    def on_iteration_end(self, step: FinishedStep) -> None: ...

    def on_error(self, event: OpEvent, error: BaseException) -> None: ...

    def close(self) -> None: ...

    def _keep(self, event: OpEvent, io: str, arrays: Sequence[Array]) -> None:
        for slot, array in enumerate(arrays):
            self.found[event.iteration, safe_piece(event.op.full_name), io, slot] = array.copy()

"""The configuration that dumps the tensors of one suspect around one iteration: the step from statistics to tensors.

from msdump.analysis.find.zoom import mindspore_config, plan_zoom
mindspore_config(plan_zoom("statistics", "Log-op2"), "/tmp/zoom")
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from msdump.analysis.find.look_up import find_operator
from msdump.analysis.steps import Operator, opened
from msdump.formats.dump_dir import DumpDir
from msdump.formats.dump_tensor import DumpedTensor
from msdump.formats.paths.parse import FX
from msdump.formats.selection import StepSelection

_DEVICES = list(range(8))
_NET_NAME = "Net"
# What file names write as `_`.
_UNSAFE = r"[_/\\. ]"


@dataclass(frozen=True, slots=True)
class Zoom:
    """Tensors to dump again.

    operator    the suspect, as the dump has it
    iterations  first and last one
    suspicious  the iteration that they lie around
    model       net name or model name; None where the folders do not tell it
    grammar      of the dump, see `formats.paths.parse`
    """

    operator: Operator
    iterations: tuple[int, int]
    suspicious: int
    model: str | None
    grammar: str

    @property
    def steps(self) -> str:
        """In the form of the configuration."""
        first, last = self.iterations
        return str(first) if first == last else f"{first}-{last}"


def plan_zoom(
    dump: DumpDir | str | os.PathLike[str],
    name: str,
    *,
    rank: int | Collection[int] | None = None,
    graph: int | Collection[int] | None = None,
    iteration: int | Collection[int] | None = None,
    around: int = 1,
) -> Zoom:
    """Which operator a name means, and the iterations to dump.

    iteration  where to look; the first in which a tensor of the operator is not finite counts, else the first one
    around     iterations to dump before and after that one

    Raises: ConfigError when no operator or several go by that name; FormatError when there is nothing at the path.
    """
    dump = opened(dump)
    selection = StepSelection(rank, graph, iteration)
    target = find_operator(dump, name, selection, takes_statistics=True, is_suspect=True)
    operator, suspicious = target.operator, target.key.iteration or 0
    tensor = next(iter(_tensors(operator)))
    levels = tensor.file.levels
    return Zoom(operator, (max(0, suspicious - around), suspicious + around), suspicious, levels.model, levels.grammar)


def _tensors(operator: Operator) -> list[DumpedTensor]:
    return [tensor for _, _, tensor in operator.all_tensors()]


def mindspore_config(zoom: Zoom, path: str) -> dict[str, Any]:
    """MINDSPORE_DUMP_CONFIG for MindSpore scripts and for PyTorch models with the backend msdump.

    path  new folder of the dump, absolute
    """
    return {
        "common_dump_settings": {
            "dump_mode": 1,
            "path": path,
            "net_name": zoom.model if zoom.grammar == "sync" and zoom.model else _NET_NAME,
            "iteration": zoom.steps,
            "saved_data": "tensor",
            "input_output": 0,
            "kernels": [_selector(zoom.operator)],
            "support_device": _DEVICES,
        },
        "e2e_dump_settings": {"enable": True, "trans_flag": True},
    }


def _selector(operator: Operator) -> str:
    """The full name; where the dump tells only how file names spell it, every name that they spell so."""
    if operator.full_name is not None:
        return operator.full_name
    spelled = "".join(_UNSAFE if letter == "_" else re.escape(letter) for letter in operator.op_name)
    return f"name-regex((.*/)?{spelled})"


def acl_config(zoom: Zoom, path: str) -> dict[str, Any]:
    """acl.json for a model that ACL runs.

    path  folder of the dump; it must be there when the model runs
    """
    names = [zoom.operator.label]
    if zoom.operator.full_name is None:
        # A file name spells these letters alike.
        names += [zoom.operator.label.replace("_", letter) for letter in "/."]
    entry: dict[str, Any] = {"layer": list(dict.fromkeys(names))}
    if zoom.model:
        entry = {"model_name": zoom.model, **entry}
    return {"dump": {"dump_path": path, "dump_list": [entry], "dump_mode": "all", "dump_step": zoom.steps}}


def torchair_lines(zoom: Zoom) -> str | None:
    """The setting of TorchAir's eager data dump, which scripts make themselves; None for other dumps."""
    if zoom.grammar != FX:
        return None
    return f"config.debug.data_dump.filter = lambda node: node if node.name == {zoom.operator.op_name!r} else None"

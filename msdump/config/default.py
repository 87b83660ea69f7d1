"""Configurations for those who have none: statistics of everything in every step, or tensors of chosen ones.

`msdump run`, `msdump.dump` and `msdump.watch` use them where nothing is configured, `msdump init` writes them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msdump.config.sections import COMMON, E2E, STATISTIC

FOLDER = "msdump_dump"
"""Where they go, in the current folder."""
BUDGET = "4G"
"""What such a dump may take of the disk, where the environment does not say."""
_MOST_DEVICES = 64


def graphs_config(
    folder: Path,
    iteration: str = "all",
    saved: str = STATISTIC,
    kernels: Sequence[str] = (),
    budget: str = "",
) -> dict[str, Any]:
    """What a MindSpore Dump JSON holds: the synchronous dump of operators of graphs, and of eager PyTorch.

    folder   absolute
    kernels  as the key of this name; none: all operators
    budget   such as "4G"; "": no limit
    """
    common: dict[str, Any] = {
        "dump_mode": 1 if kernels else 0,
        "path": str(folder),
        "net_name": "Net",
        "iteration": iteration,
        "saved_data": saved,
        "input_output": 0,
        "kernels": list(kernels),
        "support_device": list(range(_MOST_DEVICES)),
    }
    if budget:
        common["disk_budget"] = budget
    return {COMMON: common, E2E: {"enable": True, "trans_flag": True}}


def models_config(
    folder: str | Path, iteration: str = "all", saved: str = STATISTIC, layers: Sequence[str] = ()
) -> dict[str, Any]:
    """What an acl.json holds.   layers: names of operators; none: all operators"""
    one_list: dict[str, Any] = {"layer": list(layers)} if layers else {}
    dump = {
        "dump_path": str(folder),
        "dump_list": [one_list],
        "dump_op_switch": "off" if layers else "on",
        "dump_mode": "all",
        "dump_step": "" if iteration == "all" else iteration,
        "dump_data": "stats" if saved == STATISTIC else "tensor",
    }
    return {"dump": dump}


def file_text(config: dict[str, Any]) -> bytes:
    """The JSON file of a configuration, with lists of numbers in one line."""
    text = json.dumps(config, indent=4)
    return re.sub(r"\[\s+([\d,\s]+?)\s+\]", lambda match: f"[{' '.join(match[1].split())}]", text).encode() + b"\n"

"""One way to write a MindSpore configuration of a dump and to point this process at it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

# Iterations that odd_iterations names: more than any row takes rounds.
LAST = 2001


def odd_iterations() -> str:
    """Each second iteration, so that dumped and plain steps take turns."""
    return "|".join(str(number) for number in range(1, LAST, 2))


def write_config(folder: Path, iterations: str, is_sync: bool = True, name: str = "dump", **common: Any) -> Path:
    """A configuration file in `folder` whose dump goes to `folder/NAME`.   common: more of common_dump_settings"""
    settings = {
        "common_dump_settings": {
            "dump_mode": 0,
            "path": str(folder / name),
            "net_name": "Net",
            "iteration": iterations,
            "saved_data": "tensor",
            "input_output": 0,
            "kernels": [],
            "support_device": [0],
            "op_debug_mode": 0,
            **common,
        },
        "e2e_dump_settings": {"enable": is_sync, "trans_flag": True},
    }
    path = folder / f"{name}.json"
    path.write_text(json.dumps(settings))
    return path


def configure(folder: Path, iterations: str, is_sync: bool = True, **common: Any) -> Path:
    """Let this process dump into `folder/dump`."""
    path = write_config(folder, iterations, is_sync, **common)
    os.environ["MINDSPORE_DUMP_CONFIG"] = str(path)
    return path


def statistic_columns(*without: str) -> list[str]:
    """Every column of statistic.csv but these."""
    from msdump.config.sections import STATISTIC_CATEGORIES

    return [category for category in STATISTIC_CATEGORIES if category not in without]

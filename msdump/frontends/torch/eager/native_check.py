"""Whether a build of msdump-native works: a process of its own loads it, and compares it with a dispatch mode."""

from __future__ import annotations

import csv
import os
import tempfile
from pathlib import Path

import torch

import msdump
from msdump.config.environment import NATIVE
from msdump.frontends.torch.eager import native_builds
from msdump.frontends.torch.eager.native import why_not_native

_STATISTICS = ("max", "min", "avg", "l2norm")
# Of the one operator whose row is compared, numbers that both sum up in one order.
_OPERATOR = "addmm"


def why_it_fails(folder: Path) -> str:
    """Why the build in a folder does not do what it is for; "" where it does. The process imports it from there."""
    native_builds.offer(folder, is_first=True)
    why = why_not_native()
    if why:
        return why
    rows = []
    for value in ("1", "0"):
        os.environ[NATIVE] = value
        with tempfile.TemporaryDirectory() as name:
            rows.append(_row(Path(name)))
    native, mode = rows
    return "" if native == mode and native else f"expected the row {mode} of a dispatch mode, got {native}"


def _row(folder: Path) -> list[str]:
    """Numbers of the output of one operator of a small program, as they are in the file of a dump."""
    torch.manual_seed(0)
    net, data = torch.nn.Linear(7, 5), torch.randn(3, 7)
    config = {
        "common_dump_settings": {
            "op_debug_mode": 0, "dump_mode": 0, "path": os.fspath(folder), "net_name": "Net", "iteration": "all",
            "saved_data": "statistic", "input_output": 0, "kernels": [], "support_device": [0],
            "statistic_category": list(_STATISTICS),
        },
        "e2e_dump_settings": {"enable": True, "trans_flag": True},
    }  # fmt: skip
    with msdump.watch(config=config) as watch:
        net(data).relu().sum().backward()
        watch.step()
    for file in sorted(folder.rglob("statistic.csv")):
        with open(file, encoding="utf-8", newline="") as lines:
            for row in csv.DictReader(lines):
                if _OPERATOR in row["Op Type"] and row["IO"] == "output":
                    return list(row.values())[-len(_STATISTICS) :]
    return []


def main(folder: str) -> int:
    """Print why the build does not work, if it does not; the exit status of the process."""
    why = why_it_fails(Path(folder))
    if why:
        print(why)
    return int(bool(why))

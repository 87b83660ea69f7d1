"""A configured process, and what a run left on disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from msdump.engine import opening
from msdump.formats.npy_reader import read_npy
from msdump.formats.paths.sync import parse_data_file_name
from msdump.formats.statistic_csv import read_statistic_csv
from msdump.formats.statistic_row import StatisticRow
from msdump.process.report import Report


def configure(folder: Path, patch: pytest.MonkeyPatch, *, is_sync: bool = True, **common: Any) -> Path:
    """Let this process dump everything, but for the settings that are given; the folder of the dump."""
    root = folder / "dump"
    settings = {
        "common_dump_settings": {
            "dump_mode": 0,
            "path": str(root),
            "net_name": "Net",
            "iteration": "all",
            "saved_data": "tensor",
            "input_output": 0,
            "kernels": [],
            "support_device": [0],
            **({} if is_sync or "op_debug_mode" in common else {"file_format": "npy"}),
            **common,
        },
        "e2e_dump_settings": {"enable": is_sync, "trans_flag": True},
    }
    path = folder / "data_dump.json"
    path.write_text(json.dumps(settings))
    patch.setenv("MINDSPORE_DUMP_CONFIG", str(path))
    return root


def close() -> Report:
    """End the dump of this process."""
    session = opening.current()
    assert session is not None
    session.close()
    return session.report()


def tensors(folder: Path) -> dict[tuple[str, str, int], Any]:
    """(op name, input or output, slot) -> array, of the data files of one folder."""
    found = {}
    for path in sorted(folder.glob("*.npy")):
        name = parse_data_file_name(path.name)
        assert name is not None, path.name
        found[name.op_name, name.io, name.slot] = read_npy(path)
    return found


def one(folder: Path, op_type: str, io: str = "output", slot: int = 0) -> Any:
    """The array of the only operator of a type in a folder."""
    (array,) = [a for (name, side, at), a in tensors(folder).items() if (side, at) == (io, slot) and op_type in name]
    return array


def rows(folder: Path) -> list[StatisticRow]:
    return read_statistic_csv(folder / "statistic.csv")

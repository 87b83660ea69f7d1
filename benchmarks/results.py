"""Results: one for each line of each row, and results.json, which keeps the last one of each."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).with_name("results.json")
_PACKAGES = ("numpy", "numba", "torch", "onnxruntime")


@dataclass(frozen=True)
class Result:
    """What the rounds of one line gave.

    median, least, greatest  of the values of all rounds
    spread                   distance of the quartiles over the median
    is_settled               whether the rounds agree
    best                     value of the shortest times of all rounds, which other programs lengthened least
    is_met, is_met_at_best   whether the median and the best value reach the aim; None without an aim
    seconds                  medians of the times that the value is a ratio of
    load                     of the machine when the row began
    """

    row: str
    line: str
    section: str
    what: str
    against: str
    aim: str
    unit: str
    median: float
    best: float
    least: float
    greatest: float
    spread: float
    is_settled: bool
    is_met: bool | None
    is_met_at_best: bool | None
    rounds: int
    seconds: list[float]
    note: str
    load: float


def machine() -> dict[str, Any]:
    """What the numbers of a run depend on."""
    versions = {}
    for name in _PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(memory / 1e9),
        "machine": platform.machine(),
        "python": platform.python_version(),
        **versions,
    }


def read_results(path: Path) -> dict[str, Any]:
    """The document of results.json; empty where there is none."""
    if not path.is_file():
        return {"machine": machine(), "results": []}
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


def merged(path: Path, results: Sequence[dict[str, Any]], names: Sequence[str]) -> dict[str, Any]:
    """Write results over those of the same rows in a file; rows that are no more go away."""
    measured = {result["row"] for result in results}
    kept = [
        result for result in read_results(path)["results"] if result["row"] not in measured and result["row"] in names
    ]
    ordered = sorted([*kept, *results], key=lambda one: names.index(one["row"]))
    document = {"machine": machine(), "results": ordered}
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return document

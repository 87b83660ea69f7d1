"""Metrics of the user's own: `algorithm/alg_{Name}.py` with `compare(mine, golden, args) -> (value, message)`.

Source: CANN, msaccucmp compare, `-c`.
"""

from __future__ import annotations

import importlib.util
import os
import re
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msdump.analysis.exit_codes import AnalysisError, ExitCode
from msdump.analysis.metrics import METRICS
from msdump.events import Array

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
Compare = Callable[[Array, Array, Mapping[str, Any]], tuple[str, str]]


def chosen_metrics(text: str, script_folder: str | None) -> dict[str, Compare | None]:
    """Metrics of `-alg` in their order: names or numbers with commas, or "all"; None for those that are built in.

    Raises: AnalysisError for one that is neither built in nor a script, and for a script that anybody may change.
    """
    if text == "all":
        return dict.fromkeys(METRICS)
    found: dict[str, Compare | None] = {}
    for part in (part.strip() for part in text.split(",")):
        if part.isdecimal() and int(part) < len(METRICS):
            found[METRICS[int(part)]] = None
        elif part in METRICS:
            found[part] = None
        else:
            found[part] = _load(part, script_folder)
    return found


def _load(name: str, script_folder: str | None) -> Compare:
    path = None if script_folder is None else Path(script_folder, "algorithm", f"alg_{name}.py")
    if path is None or not _NAME.fullmatch(name) or not path.is_file():
        raise AnalysisError(
            ExitCode.INVALID_ALGORITHM, f'-alg: expected "all", 0 to 9, or names of {list(METRICS)}, got "{name}".'
        )
    if os.stat(path).st_mode & stat.S_IWOTH:
        raise AnalysisError(ExitCode.DANGER_FILE, f"{path}: expected a script that not everybody may change.")
    spec = importlib.util.spec_from_file_location(f"msdump_custom_{name}", path)
    if spec is None or spec.loader is None:
        raise AnalysisError(ExitCode.INVALID_ALGORITHM, f"{path}: expected a Python script.")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise AnalysisError(ExitCode.INVALID_ALGORITHM, f"{path}: expected to import it, got: {error!r}.") from error
    compare: Compare | None = getattr(module, "compare", None)
    if not callable(compare):
        raise AnalysisError(ExitCode.INVALID_ALGORITHM, f"{path}: expected a function compare, got none.")
    return compare


def run_custom(compare: Compare, mine: Array, golden: Array, args: Mapping[str, Any]) -> tuple[str, str]:
    """(cell, note) of a metric of the user's.   Edges: a raise or anything but two texts is NaN with a note."""
    try:
        result = compare(mine, golden, args)
    except Exception as error:  # noqa: BLE001  the user's code may raise anything, and other rows go on
        return "NaN", f"It raised {error!r}."
    if isinstance(result, tuple) and len(result) == 2 and all(isinstance(part, str) for part in result):
        return result
    return "NaN", f"It returned {result!r}, not two texts."


def metric_arguments(text: str | None) -> dict[str, dict[str, str]]:
    """`Name:key=value,key=value;Name2:...` by name; numbers stand for names.   Raises: AnalysisError."""
    found: dict[str, dict[str, str]] = {}
    for part in (text or "").split(";"):
        if not part.strip():
            continue
        name, colon, pairs = part.partition(":")
        values = [pair.partition("=") for pair in pairs.split(",") if pair]
        if not colon or not all(equals and key for key, equals, _ in values):
            raise AnalysisError(
                ExitCode.INVALID_PARAM, f'-a: expected "Name:key=value,key=value;Name2:...", got "{text}".'
            )
        name = name.strip()
        if name.isdecimal() and int(name) < len(METRICS):
            name = METRICS[int(name)]
        found[name] = {key.strip(): value.strip() for key, _, value in values}
    return found

"""Metrics of the user's own: `algorithm/alg_{Name}.py` with `compare(mine, golden, args) -> (value, message)`.

Source: CANN, msaccucmp compare, `-c`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msdump.analysis.convert.target_format import load_function
from msdump.analysis.distance.metrics import METRICS
from msdump.analysis.exit_codes import AnalysisError, ExitCode
from msdump.tensors.arrays import Array

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
Compare = Callable[[Array, Array, Mapping[str, Any]], tuple[str, str]]


def chosen_metrics(
    text: str, script_folder: str | None, warn: Callable[[str], None] = lambda text: None
) -> dict[str, Compare | None]:
    """Metrics of `-alg` in their order: names or numbers with commas, or "all"; None for those that are built in.

    Edges:   a name that is neither built in nor a script is left out and handed to `warn`.
    Raises:  AnalysisError when no metric is left, for a folder that is not there, and for a script that does not load
             or that others may change.
    """
    if not text:
        raise AnalysisError(ExitCode.INVALID_PARAM, "-alg: expected a metric, got an empty text.")
    if script_folder is not None and not os.path.isdir(script_folder):
        raise AnalysisError(ExitCode.INVALID_PATH, f"-c: expected a folder with scripts, got {script_folder}.")
    if text.lower() == "all":
        return dict.fromkeys(METRICS)
    chosen: dict[str, Compare | None] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        if part.isdecimal() and int(part) < len(METRICS):
            chosen[METRICS[int(part)]] = None
        elif part in METRICS:
            chosen[part] = None
        elif (path := _script(part, script_folder)) is not None:
            chosen[part] = load_function(path, "compare", "mine, golden, args", ExitCode.INVALID_ALGORITHM)
        else:
            warn(f'-alg: expected "all", 0 to 9, or names of {list(METRICS)}, got "{part}". It is left out.')
    if not chosen:
        raise AnalysisError(
            ExitCode.INVALID_ALGORITHM, f'-alg: expected "all", 0 to 9, or names of {list(METRICS)}, got "{text}".'
        )
    return chosen


def _script(name: str, script_folder: str | None) -> Path | None:
    """File of a metric of the user's; None when there is none."""
    path = None if script_folder is None else Path(script_folder, "algorithm", f"alg_{name}.py")
    return path if path is not None and _NAME.fullmatch(name) and path.is_file() else None


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
    arguments: dict[str, dict[str, str]] = {}
    for part in filter(None, (text or "").split(";")):
        name, *pairs = part.split(":")
        name = name.strip()
        values = [[word.strip() for word in pair.split("=")] for pair in ",".join(pairs).split(",") if pair.strip()]
        if not name or len(pairs) != 1 or not all(len(words) == 2 and all(words) for words in values):
            raise AnalysisError(
                ExitCode.INVALID_PARAM, f'-a: expected "Name:key=value,key=value;Name2:...", got "{text}".'
            )
        if name.isdecimal() and int(name) < len(METRICS):
            name = METRICS[int(name)]
        arguments.setdefault(name, {}).update((key, value) for key, value in values)
    return arguments

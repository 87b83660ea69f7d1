"""steps.json: how the iterations of a dump and the steps of optimizers go together.

One file for each rank, `rank_N/.dump_metadata/steps.json`; docs/formats/steps.md describes it.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from msdump.errors import FormatError
from msdump.formats.atomic import make_dirs, write_file
from msdump.storage.files import read_file
from msdump.storage.plain import unreadable

STEPS_FILE = "steps.json"
VERSION = 1
_MODE = 0o400
_MOST = 1 << 53
_MAX_OPTIMIZERS = 10_000
_MAX_NAME = 200
# What a sentence names one by one.
_MAX_NAMED = 4


@dataclass(frozen=True, slots=True)
class OptimizerSteps:
    """The steps of one optimizer.

    name         of its class
    steps        how many it made, at least one; one that a scaler of the loss has skipped counts
    first, last  in which iterations it made its first and last one, counted from 0 over those that train
    """

    name: str
    steps: int
    first: int
    last: int

    @property
    def iterations_per_step(self) -> float:
        """From one step to the next; of a single step the iterations up to it."""
        return (self.last - self.first) / (self.steps - 1) if self.steps > 1 else self.last + 1.0


@dataclass(frozen=True, slots=True)
class TrainingSteps:
    """All that were seen, whether they were dumped or not.   iterations: how many train, with a backward pass"""

    iterations: int
    optimizers: tuple[OptimizerSteps, ...]

    @property
    def is_even(self) -> bool:
        """Whether each iteration is one step of each optimizer."""
        return all(optimizer.iterations_per_step == 1 for optimizer in self.optimizers)

    @property
    def text(self) -> str:
        """A sentence without its end; "" where iterations are steps."""
        if self.is_even:
            return ""
        alike = Counter((each.name, f"{each.iterations_per_step:.3g}") for each in self.optimizers)
        parts = [
            f"{ratio} for each step of {name if count == 1 else f'each of {count} optimizers {name}'}"
            for (name, ratio), count in alike.items()
        ]
        more = f" and {len(parts) - _MAX_NAMED} more" if len(parts) > _MAX_NAMED else ""
        return f"iterations per optimizer step: {', '.join(parts[:_MAX_NAMED])}{more}"


def write_steps(directory: str | os.PathLike[str], steps: TrainingSteps) -> None:
    """Write the file of a rank, over an earlier one.   Raises: WriteError."""
    make_dirs(directory)
    text = json.dumps({"version": VERSION, **asdict(steps)}, indent=1) + "\n"
    write_file(Path(directory) / STEPS_FILE, [text.encode()], _MODE, replace=True)


def read_steps(path: str | os.PathLike[str]) -> TrainingSteps:
    """The file of a rank.   Raises: FormatError for one that is damaged, of a later version, or cannot be read."""
    where = os.fspath(path)
    try:
        content = json.loads(read_file(path))
    except FormatError:
        raise
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{where}: expected JSON, got something else: {error}.") from error
    except OSError as error:
        raise unreadable(path, error) from error
    if not isinstance(content, dict) or content.get("version") != VERSION:
        got = content.get("version") if isinstance(content, dict) else type(content).__name__
        raise FormatError(
            f"{where}: expected an object of version {VERSION}, got {str(got)[:80]}. "
            "Read it with the msdump that wrote it."
        )
    rows = content.get("optimizers")
    if not isinstance(rows, list) or len(rows) > _MAX_OPTIMIZERS:
        raise FormatError(f"{where}, optimizers: expected a list of at most {_MAX_OPTIMIZERS}, got {str(rows)[:80]}.")
    iterations = _number(content, "iterations", where)
    return TrainingSteps(
        iterations, tuple(_optimizer(row, f"{where}, optimizers[{at}]") for at, row in enumerate(rows))
    )


def _optimizer(row: Any, where: str) -> OptimizerSteps:
    if not isinstance(row, dict) or not isinstance(row.get("name"), str) or len(row["name"]) > _MAX_NAME:
        raise FormatError(f"{where}: expected an object with a name, got {str(row)[:80]}.")
    steps, first, last = (_number(row, key, where) for key in ("steps", "first", "last"))
    if not steps or first > last:
        raise FormatError(f"{where}: expected a step, and the first not after the last, got {str(row)[:80]}.")
    return OptimizerSteps(row["name"], steps, first, last)


def _number(row: Mapping[str, Any], key: str, where: str) -> int:
    value = row.get(key)
    if type(value) is not int or not 0 <= value <= _MOST:
        raise FormatError(f"{where}, {key}: expected an integer from 0 to {_MOST}, got {str(value)[:80]}.")
    return value

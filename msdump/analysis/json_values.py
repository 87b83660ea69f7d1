"""JSON output of commands: an envelope, and one form for a step, an operator, a line, a tensor, a damaged file.

The forms are described in docs/json.md; those that the data of the viewer have as well are the same there.
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from enum import Enum
from operator import attrgetter
from typing import Any

from msdump._version import __version__
from msdump.analysis.steps import Operator, Slot, StepKey, operator_id
from msdump.errors import FormatError
from msdump.formats.dump_tensor import DumpedTensor
from msdump.formats.statistic_row import StatisticRow
from msdump.graph.types import SourceLine
from msdump.statistics.stats import Statistics
from msdump.tables.frames import utf8_text

# Raised when a key goes away or changes its meaning; a new key does not change it.
SCHEMA = 2
# Of a brief document: elements of its lists, and of lists inside of those.
BRIEF, BRIEF_INNER = 10, 3
_NUMBER_NAMES = ("max", "min", "avg", "l2norm", "count", "nan", "negative_inf", "positive_inf", "zero")
_numbers_of = attrgetter(*_NUMBER_NAMES)
Value = dict[str, Any]


def json_text(command: str, content: Mapping[str, Any], indent: int | None = 1, is_brief: bool = False) -> str:
    """The document of one command: its content behind schema, version and name; ends with a line end.

    content   its key "omitted" has, by the paths of lists, what was left out of them already; these are not cut again
    is_brief  cut lists that are longer than `BRIEF`; "omitted" says by how much

    Edges: numbers that are not finite are "nan", "inf", "-inf"; bytes of names that are not UTF-8 are `\\xff`; what
           JSON has no form for is its text.
    """
    # By name: `msdump` offers functions of modules that import this one.
    omitted = Counter(content.get("omitted", {}))
    whole = frozenset(omitted)
    content = {key: _cut(value, key, BRIEF, omitted, whole) if is_brief else value for key, value in content.items()}
    document = {"schema": SCHEMA, "msdump": __version__, "command": command, **content, "omitted": +omitted}
    return json.dumps(_plain(document), indent=indent, allow_nan=False) + "\n"


def _cut(value: Any, path: str, most: int, omitted: Counter[str], whole: Collection[str]) -> Any:
    """The value with its lists cut to `most` elements; those of numbers, as shapes are, and those of a few stay."""
    if isinstance(value, Mapping):
        return {key: _cut(item, f"{path}.{key}", most, omitted, whole) for key, item in value.items()}
    if not isinstance(value, (list, tuple)):
        return value
    is_plain = all(item is None or isinstance(item, (int, float, str)) for item in value)
    if is_plain and (len(value) <= BRIEF or not any(isinstance(item, str) for item in value)):
        return value
    most = len(value) if path in whole else most
    if len(value) > most:
        omitted[path] += len(value) - most
    return [_cut(item, path, BRIEF_INNER, omitted, whole) for item in value[:most]]


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return _plain(value.value)
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, Mapping):
        return {utf8_text(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in value]
    return utf8_text(value)


def step_value(step: StepKey) -> list[int | None]:
    """[rank, graph, iteration]; None where the folders do not tell it."""
    return list(step)


def operator_value(operator: Operator) -> Value:
    return {"operator": operator.label, "op_type": operator.op_type}


def location_value(step: StepKey, operator: Operator) -> Value:
    """An operator of a step; its id is what commands take as OP."""
    return {"id": operator_id(step, operator), "step": step_value(step), **operator_value(operator)}


def line_value(line: SourceLine | None) -> list[Any] | None:
    """[path, number, code]."""
    return None if line is None else [line.path, line.line, line.code.strip()]


def damaged_values(damaged: Iterable[tuple[str | os.PathLike[str], FormatError]]) -> list[list[str]]:
    """[file, what is wrong] of each."""
    return [[os.fspath(path), str(error)] for path, error in damaged]


def tensor_value(
    tensor: DumpedTensor,
    numbers: Statistics | StatisticRow | None,
    *,
    io: str | None = None,
    slot: Slot | None = None,
    shape: tuple[int, ...] | None = None,
) -> Value:
    """A tensor and its statistics, which are all None where there are none.

    io, slot  at the operator, where they are not those of the file
    shape     of what was measured, where it is not that of the file
    """
    values = (None,) * len(_NUMBER_NAMES) if numbers is None else _numbers_of(numbers)
    return {
        "io": io or tensor.io,
        "slot": tensor.slot_text if slot is None else str(slot),
        "dtype": tensor.true_dtype,
        "shape": list(tensor.shape if shape is None else shape),
        "size_bytes": tensor.size_bytes,
        "file": tensor.path,
        **dict(zip(_NUMBER_NAMES, values, strict=True)),
    }

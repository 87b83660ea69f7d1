"""The json that ATC makes of an offline model: which original operator each output of a fused operator stands for.

Read are `graph[].op[]` with `name`, `type`, `input` ("op:index") and, in `output_desc[].attr`, `_datadump_origin_name`,
`_datadump_origin_output_index` and `_datadump_origin_format`; in `attr`, `_datadump_original_op_names`.
Source: CANN, msaccucmp compare, `-f`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from msdump.analysis.exit_codes import AnalysisError, ExitCode

_MAX_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class FusedOutput:
    """An output and the original output that it stands for; format and shape are those of the original or None."""

    origin_name: str
    origin_index: int
    origin_format: str | None
    origin_shape: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class FusedOperator:
    """One operator of the model. `inputs` are (operator, output), None for a control edge."""

    sequence: int
    name: str
    op_type: str
    inputs: tuple[tuple[str, int] | None, ...]
    outputs: tuple[FusedOutput, ...]
    original_names: tuple[str, ...]


def read_fusion_json(path: str | os.PathLike[str]) -> list[FusedOperator]:
    """Operators in the order of the file, counted from 1.   Raises: AnalysisError with the original's code."""
    where = os.fspath(path)
    try:
        if os.path.getsize(path) > _MAX_BYTES:
            raise AnalysisError(ExitCode.FILE_TOO_LARGE, f"{where}: expected at most {_MAX_BYTES} bytes.")
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
    except OSError as error:
        raise AnalysisError(ExitCode.OPEN_FILE, f"{where}: expected a json file, got: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise AnalysisError(ExitCode.PARSER_JSON_FILE, f"{where}: expected json, got: {error}.") from error
    graphs = content.get("graph") if isinstance(content, dict) else None
    if not isinstance(graphs, list) or not graphs:
        raise AnalysisError(ExitCode.INVALID_JSON_FILE, f'{where}: expected a list "graph", got none. Is it from ATC?')
    found: list[FusedOperator] = []
    for graph in graphs:
        for op in _list(_object(graph, where).get("op")):
            found.append(_operator(_object(op, where), len(found) + 1, where))
    return found


def _object(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise AnalysisError(ExitCode.INVALID_JSON_FILE, f"{where}: expected an object, got {str(value)[:80]}.")
    return value


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _attrs(op: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes by key; each is {"key": ..., "value": {"s": ...}}."""
    return {
        str(item.get("key")): item.get("value")
        for item in _list(op.get("attr"))
        if isinstance(item, dict) and isinstance(item.get("value"), dict)
    }


def _operator(op: Mapping[str, Any], sequence: int, where: str) -> FusedOperator:
    name = op.get("name")
    if not isinstance(name, str) or not name:
        raise AnalysisError(ExitCode.INVALID_JSON_FILE, f"{where}: expected a name for op {sequence}, got {name!r}.")
    names = _attrs(op).get("_datadump_original_op_names", {}).get("list", {})
    originals = tuple(str(item) for item in _list(names.get("s") if isinstance(names, dict) else None))
    outputs = tuple(
        _output(_object(item, where), name, index) for index, item in enumerate(_list(op.get("output_desc")))
    )
    return FusedOperator(
        sequence, name, str(op.get("type", "")), tuple(map(_edge, _list(op.get("input")))), outputs, originals
    )


def _output(item: Mapping[str, Any], name: str, index: int) -> FusedOutput:
    attrs = _attrs(item)
    origin = attrs.get("_datadump_origin_name", {}).get("s")
    number = attrs.get("_datadump_origin_output_index", {}).get("i")
    origin_format = attrs.get("_datadump_origin_format", {}).get("s") or attrs.get("origin_format", {}).get("s")
    shape = attrs.get("origin_shape", {}).get("list", {})
    sizes = _list(shape.get("i")) if isinstance(shape, dict) else []
    return FusedOutput(
        origin if isinstance(origin, str) and origin else name,
        number if isinstance(number, int) else index,
        origin_format if isinstance(origin_format, str) else None,
        tuple(sizes) if sizes and all(isinstance(size, int) for size in sizes) else None,
    )


def _edge(text: Any) -> tuple[str, int] | None:
    name, colon, index = str(text).rpartition(":")
    return (name, int(index)) if colon and index.isdecimal() else None

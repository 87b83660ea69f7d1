"""The json that ATC makes of an offline model: which original operator each output of a fused operator stands for.

Read are `graph[].op[]` with `name`, `type`, `id`, `input` ("op:index"); in `attr`, `_datadump_original_op_names`,
`_L1_fusion_sub_graph_no` and `_datadump_is_multiop`; in `output_desc[].attr`, `_datadump_origin_name`,
`_datadump_origin_output_index`, `_datadump_origin_format` or `origin_format`, and `origin_shape`.
Source: CANN, msaccucmp compare, `-f`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from msdump.analysis.exit_codes import AnalysisError, ExitCode
from msdump.errors import FormatError
from msdump.storage.plain import read_plain

_MAX_BYTES = 1 << 30
_CONTROL_EDGE = ":-1"
_MAX_DIGITS = 9  # of the number of an output; Python refuses to read some thousand digits


@dataclass(frozen=True, slots=True)
class FusedOutput:
    """An output and the original output that it stands for.

    origin_name     "" where the output stands for none
    origin_index    None for the same number as the output's own
    origin_format, origin_shape   of the original output; None where the file does not tell them
    """

    origin_name: str
    origin_index: int | None
    origin_format: str | None
    origin_shape: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class FusedOperator:
    """One operator of the model.

    sequence   `id` of the operator; its position in the file, counted from 1, where it has none
    inputs     (operator, output) without control edges, None where the text is neither
    l1_group   number of the L1 fusion; "" outside of one
    """

    sequence: int
    name: str
    op_type: str
    inputs: tuple[tuple[str, int] | None, ...]
    outputs: tuple[FusedOutput, ...]
    original_names: tuple[str, ...]
    l1_group: str = ""
    is_multi: bool = False

    @property
    def group(self) -> tuple[str, ...]:
        """Equal for operators that stand for the same original operators."""
        if self.l1_group:
            return ("l1", self.l1_group)
        return ("op", *(self.original_names if any(self.original_names) else (self.name,)))

    @property
    def is_inner(self) -> bool:
        """True for a part of a fusion that stands for no original output."""
        return self.is_multi and not any(output.origin_name for output in self.outputs)


def groups_of(operators: Sequence[FusedOperator]) -> list[list[FusedOperator]]:
    """Operators that stand for the same original operators, together, in the order of the file.

    Edges:   of two operators of one name in a group the first counts.
    """
    groups: dict[tuple[str, ...], dict[str, FusedOperator]] = {}
    for operator in operators:
        groups.setdefault(operator.group, {}).setdefault(operator.name, operator)
    return [list(group.values()) for group in groups.values()]


def read_fusion_json(path: str | os.PathLike[str]) -> list[FusedOperator]:
    """Operators in the order of the file.   Raises: AnalysisError with msaccucmp's code."""
    where = os.fspath(path)
    try:
        if os.path.getsize(path) > _MAX_BYTES:
            raise AnalysisError(ExitCode.FILE_TOO_LARGE, f"{where}: expected at most {_MAX_BYTES} bytes.")
        content = json.loads(read_plain(path, _MAX_BYTES))
    except OSError as error:
        raise AnalysisError(ExitCode.OPEN_FILE, f"{where}: expected a json file, got: {error.strerror}.") from error
    except FormatError as error:
        raise AnalysisError(ExitCode.OPEN_FILE, str(error)) from error
    except (ValueError, RecursionError) as error:
        raise AnalysisError(ExitCode.PARSER_JSON_FILE, f"{where}: expected json, got: {error}.") from error
    graphs = content.get("graph") if isinstance(content, dict) else None
    if not isinstance(graphs, list) or not graphs:
        raise AnalysisError(ExitCode.PARSER_JSON_FILE, f'{where}: expected a list "graph", got none. Is it from ATC?')
    operators: list[FusedOperator] = []
    for graph in graphs:
        for op in _list(_object(graph, where).get("op")):
            operators.append(_operator(_object(op, where), len(operators) + 1, where))
    return _with_renamed(operators)


def _with_renamed(operators: Sequence[FusedOperator]) -> list[FusedOperator]:
    """An operator that alone stands for one original operator: its nameless outputs stand for that one's."""
    counts: dict[tuple[str, ...], int] = {}
    for operator in operators:
        counts[operator.group] = counts.get(operator.group, 0) + 1
    return [
        _named(operator, operator.original_names[0])
        if counts[operator.group] == 1 and len(operator.original_names) == 1 and operator.original_names[0]
        else operator
        for operator in operators
    ]


def _named(operator: FusedOperator, name: str) -> FusedOperator:
    outputs = operator.outputs or (FusedOutput("", None, None, None),)
    return replace(
        operator,
        outputs=tuple(output if output.origin_name else replace(output, origin_name=name) for output in outputs),
    )


def _object(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise AnalysisError(ExitCode.PARSER_JSON_FILE, f"{where}: expected an object, got {str(value)[:80]}.")
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
        raise AnalysisError(ExitCode.PARSER_JSON_FILE, f"{where}: expected a name for op {sequence}, got {name!r}.")
    attrs = _attrs(op)
    names = attrs.get("_datadump_original_op_names", {}).get("list")
    group = attrs.get("_L1_fusion_sub_graph_no", {}).get("s")
    outputs = tuple(_output(_object(item, where), index) for index, item in enumerate(_list(op.get("output_desc"))))
    edges = [str(text) for text in _list(op.get("input"))]
    number = op.get("id")
    operator = FusedOperator(
        number if isinstance(number, int) else sequence,
        name,
        str(op.get("type", "")),
        tuple(_edge(text) for text in edges if text and not text.endswith(_CONTROL_EDGE)),
        outputs,
        tuple(str(item) for item in _list(names.get("s"))) if isinstance(names, dict) else (name,),
        group if isinstance(group, str) else "",
        attrs.get("_datadump_is_multiop", {}).get("b") is True,
    )
    return operator if isinstance(names, dict) else _named(operator, name)


def _output(item: Mapping[str, Any], index: int) -> FusedOutput:
    attrs = _attrs(item)
    origin = attrs.get("_datadump_origin_name", {}).get("s")
    number = attrs.get("_datadump_origin_output_index", {}).get("i")
    origin_format = attrs.get("_datadump_origin_format", {}).get("s") or attrs.get("origin_format", {}).get("s")
    shape = attrs.get("origin_shape", {}).get("list", {})
    sizes = _list(shape.get("i")) if isinstance(shape, dict) else []
    return FusedOutput(
        origin if isinstance(origin, str) else "",
        number if isinstance(number, int) else index,
        origin_format if isinstance(origin_format, str) else None,
        tuple(sizes) if sizes and all(isinstance(size, int) for size in sizes) else None,
    )


def _edge(text: str) -> tuple[str, int] | None:
    name, colon, index = text.rpartition(":")
    return (name, int(index)) if colon and index.isdecimal() and len(index) <= _MAX_DIGITS else None

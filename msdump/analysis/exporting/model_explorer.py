"""Graphs and data of their nodes for Model Explorer: graph.json, one file for each overlay, and with a golden dump its
graph and the mapping that lets both panes move together.

Source: the JSON that Model Explorer 0.1.34 reads: its graph and node data builders and its sync navigation.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any

from msdump.analysis.compare.result import Comparison
from msdump.analysis.exporting import Written, write_folder
from msdump.analysis.overview.contents import Contents, ExportedOperator
from msdump.analysis.overview.health import Health
from msdump.analysis.stat.rows import TensorStatistics
from msdump.analysis.steps import Operator, StepKey
from msdump.tables.printable import printable
from msdump.tensors.records import INPUT, OUTPUT

_MAX_NODES = 50_000
_MAX_TEXT = 1000
# All values that no operator makes have a namespace of their own: hundreds of them hide the operators.
_PARAMETERS = "parameters"
_COLORS = {
    Health.MADE_HERE: "#c62828",
    Health.CAME_IN: "#ef9a9a",
    Health.DIFFERS: "#ffb74d",
    Health.SUSPICIOUS: "#fff59d",
    Health.OK: "#c8e6c9",
    Health.UNSET: "#eeeeee",
    Health.NOT_MEASURED: "#eeeeee",
}
_GRADIENT = [{"stop": 0, "bgColor": "#ffffff"}, {"stop": 1, "bgColor": "#ef6c00"}]
_Steps = list[tuple[StepKey, list[ExportedOperator]]]


def export(contents: Contents, to: str, path: str) -> Written:
    """Write the files below a folder.   Raises: as `Contents`; WriteError."""
    steps, notes = _steps(contents)
    files = {"graph.json": _graphs("dump", contents, steps)}
    for name, value_of in _OVERLAYS.items():
        files[f"{name}.json"] = _overlay(steps, value_of)
    comparison, golden = contents.comparison, contents.golden_contents
    if comparison is not None and golden is not None:
        golden_steps, more = _steps(golden)
        notes += more
        files["golden.json"] = _graphs("golden", golden, golden_steps)
        files["error.json"] = _overlay(steps, lambda operator: _number(_errors(contents, operator)))
        files["mapping.json"] = _mapping(comparison, steps, golden_steps)
    return write_folder(path, {name: _json(value) for name, value in files.items()}, notes)


def _json(value: Any) -> bytes:
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


def _steps(contents: Contents) -> tuple[_Steps, list[str]]:
    """Operators by step, as many steps as a browser can show."""
    groups = [(step, list(group)) for step, group in groupby(contents.operators, key=lambda operator: operator.step)]
    shown: _Steps = []
    count = 0
    for step, operators in groups:
        count += len(operators)
        if shown and count > _MAX_NODES:
            break
        shown.append((step, operators))
    left_out = len(groups) - len(shown)
    text = f"{contents.dump.path}: the last {left_out} of {len(groups)} graphs are left out; select with --iteration."
    return shown, [text] if left_out else []


# -- nodes ---------------------------------------------------------------------------------------------------------


def _graphs(label: str, contents: Contents, steps: _Steps) -> dict[str, Any]:
    graphs = [{"id": str(step), "nodes": list(_nodes(contents, operators))} for step, operators in steps]
    return {"label": label, "graphs": graphs}


def _nodes(contents: Contents, operators: list[ExportedOperator]) -> Iterator[dict[str, Any]]:
    edges = _Edges(operators)
    for operator in operators:
        if operator.operator.is_parameter:
            edges.outside.pop(operator.operator.op_name, None)
        yield {
            "id": _id(operator),
            "label": _text(operator.operator.op_name if operator.operator.is_parameter else operator.operator.op_type),
            "namespace": _namespace(operator.operator),
            "attrs": _attributes(operator),
            "incomingEdges": [] if operator.operator.is_parameter else list(edges.of(operator)),
            "inputsMetadata": [_metadata(contents, row) for row in operator.tensors if row.tensor.io == INPUT],
            "outputsMetadata": [_metadata(contents, row) for row in operator.tensors if row.tensor.io == OUTPUT],
        }
    for name, node_id in edges.outside.items():
        yield {"id": node_id, "label": _text(name), "namespace": _PARAMETERS, "attrs": [], "incomingEdges": []}


def _id(operator: ExportedOperator) -> str:
    if operator.operator.is_parameter:
        return f"parameter {_text(operator.operator.op_name)}"
    return f"operator {operator.number}"


def _namespace(operator: Operator) -> str:
    if operator.is_parameter:
        return _PARAMETERS
    return "/".join(_text(scope) or "_" for scope in operator.label.split("/")[:-1])


class _Edges:
    """Where the inputs of the operators of one step come from.

    outside  id of the node of each value that no operator makes, by its name
    """

    def __init__(self, operators: list[ExportedOperator]) -> None:
        self.outside: dict[str, str] = {}
        self._by_name = {operator.node.full_name: _id(operator) for operator in operators if operator.node is not None}
        # Without a graph file, tensors that are the same bytes on the disk tell.
        self._makers: dict[tuple[object, ...], tuple[str, str]] = {}

    def of(self, operator: ExportedOperator) -> Iterator[dict[str, str]]:
        origins = () if operator.node is None else operator.node.inputs
        for slot, origin in enumerate(origins):
            if origin is None or origin.is_constant:
                continue
            if origin.slot is None:
                node_id = self.outside.setdefault(origin.name, f"parameter {_text(origin.name)}")
                yield _edge(node_id, "0", str(slot))
            elif origin.name in self._by_name:
                yield _edge(self._by_name[origin.name], str(origin.slot), str(slot))
        if operator.node is None:
            yield from self._by_bytes(operator)

    def _by_bytes(self, operator: ExportedOperator) -> Iterator[dict[str, str]]:
        for row in operator.tensors:
            maker = self._makers.get(row.bytes_key) if row.tensor.io == INPUT else None
            if maker is not None:
                yield _edge(*maker, row.tensor.slot_text)
        for row in operator.tensors:
            if row.tensor.io == OUTPUT:
                self._makers[row.bytes_key] = _id(operator), row.tensor.slot_text


def _edge(source: str, output: str, target: str) -> dict[str, str]:
    return {"sourceNodeId": source, "sourceNodeOutputId": output, "targetNodeInputId": target}


def _attributes(operator: ExportedOperator) -> list[dict[str, str]]:
    line = operator.line
    pairs = {
        "name": operator.operator.label,
        "health": operator.health.value,
        "source": "" if line is None else f"{line}  {line.code.strip()}",
    }
    attributes = {} if operator.node is None or operator.node.attrs is None else operator.node.attrs
    return [_pair(key, value) for key, value in (*pairs.items(), *sorted(attributes.items())) if value != ""]


def _metadata(contents: Contents, row: TensorStatistics) -> dict[str, Any]:
    names = ("max", "min", "avg", "l2norm", "nan", "negative_inf", "positive_inf", "zero")
    numbers = [(name, getattr(row.numbers, name)) for name in names]
    pairs = [
        ("shape", f"{row.tensor.true_dtype}{list(row.shape)}"),
        ("health", contents.health.of(row).value),
        *((name, f"{value:g}") for name, value in numbers if value is not None),
    ]
    return {"id": row.tensor.slot_text, "attrs": [_pair(key, value) for key, value in pairs]}


def _pair(key: str, value: object) -> dict[str, str]:
    return {"key": _text(key), "value": _text(str(value))}


def _text(text: str) -> str:
    return printable(text[:_MAX_TEXT])


# -- overlays ------------------------------------------------------------------------------------------------------


def _overlay(steps: _Steps, value_of: Callable[[ExportedOperator], dict[str, Any] | None]) -> dict[str, Any]:
    """Data of nodes, by graph. Numbers that are not finite are on no scale and are left out."""
    graphs = {}
    for step, operators in steps:
        values = {_id(operator): value for operator in operators if (value := value_of(operator)) is not None}
        is_colored = any("bgColor" in value for value in values.values())
        graphs[str(step)] = {"results": values, **({} if is_colored else {"gradient": _GRADIENT})}
    return graphs


def _health(operator: ExportedOperator) -> dict[str, Any]:
    return {"value": operator.health.value, "bgColor": _COLORS[operator.health]}


def _largest(operator: ExportedOperator) -> dict[str, Any] | None:
    """Largest absolute value of the outputs."""
    rows = [row.numbers for row in operator.tensors if row.tensor.io == OUTPUT]
    return _number(abs(value) for row in rows for value in (row.max, row.min) if value is not None)


def _not_finite(operator: ExportedOperator) -> dict[str, Any] | None:
    """NaN and Inf of the outputs."""
    counts = [
        sum(number or 0 for number in (row.numbers.nan, row.numbers.negative_inf, row.numbers.positive_inf))
        for row in operator.tensors
        if row.tensor.io == OUTPUT
    ]
    return _number([float(sum(counts))])


def _bytes(operator: ExportedOperator) -> dict[str, Any] | None:
    return _number([float(sum(row.tensor.size_bytes for row in operator.tensors))])


def _errors(contents: Contents, operator: ExportedOperator) -> Iterable[float]:
    errors = (contents.health.error(row) for row in operator.tensors if row.tensor.io == OUTPUT)
    return [error for error in errors if error is not None]


def _number(values: Iterable[float]) -> dict[str, Any] | None:
    largest = max((float(value) for value in values if math.isfinite(value)), default=None)
    return None if largest is None else {"value": largest}


_OVERLAYS: dict[str, Callable[[ExportedOperator], dict[str, Any] | None]] = {
    "health": _health,
    "largest": _largest,
    "not_finite": _not_finite,
    "bytes": _bytes,
}


def _mapping(comparison: Comparison, mine: _Steps, golden: _Steps) -> dict[str, Any]:
    """Which nodes belong together. One mapping serves all steps, in which an operator has the same number."""
    ids, golden_ids = _ids_by_label(mine), _ids_by_label(golden)
    entries = {}
    for result in comparison.operators:
        left, right = _parts_ids(result.pair.mine, ids), _parts_ids(result.pair.golden, golden_ids)
        if left and right:
            entries[left] = right
    return {
        "type": "sync_navigation",
        "mappingEntries": [{"leftNodeIds": left, "rightNodeIds": right} for left, right in entries.items()],
        "disableMappingFallback": True,
        "showDiffHighlights": True,
    }


def _ids_by_label(steps: _Steps) -> dict[str, str]:
    ids: dict[str, str] = {}
    for _, operators in steps:
        for operator in operators:
            ids.setdefault(operator.operator.label, _id(operator))
    return ids


def _parts_ids(operator: Operator, ids: dict[str, str]) -> tuple[str, ...]:
    parts = operator.parts or (operator,)
    return tuple(ids[part.label] for part in parts if part.label in ids)

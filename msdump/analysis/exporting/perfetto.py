"""A timeline for Perfetto, in the JSON of Chrome's trace viewer: operators in execution order, and counters.

Source: "Trace Event Format" of Chromium's catapult project, which Perfetto reads.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from msdump._version import __version__
from msdump.analysis.exporting import Written, write_text
from msdump.analysis.overview.contents import Contents, ExportedOperator
from msdump.analysis.steps import StepKey
from msdump.tables.frames import utf8_text
from msdump.tables.printable import printable
from msdump.tensors.records import OUTPUT

# Of operators: with their counters about 400 MB, which is what a browser can hold.
MOST_OPERATORS = 500_000
_NOTE = "Times are those at which the files were named, in microseconds, not those that the operators took."
_Event = dict[str, Any]


def export(contents: Contents, to: str, path: str) -> Written:
    """Write the trace.   Raises: as `Contents`; ConfigError; WriteError."""
    operators = [operator for operator in contents.operators if not operator.operator.is_parameter]
    notes = [_NOTE]
    if len(operators) > MOST_OPERATORS:
        notes.append(f"Left out: the last {len(operators) - MOST_OPERATORS} of {len(operators)} operators.")
        operators = operators[:MOST_OPERATORS]
    events = [*_names(operators), *_events(operators)]
    about = {"msdump": __version__, "dump": _text(contents.dump.path.name), "times": _NOTE}
    document = {"traceEvents": events, "displayTimeUnit": "ms", "otherData": about}
    return write_text(path, json.dumps(document, allow_nan=False, separators=(",", ":")), notes)


def _names(operators: Iterable[ExportedOperator]) -> Iterator[_Event]:
    tracks = {
        (_rank(operator.step), _graph(operator.step), operator.tensors[0].tensor.file.levels.model)
        for operator in operators
    }
    for rank in sorted({rank for rank, _, _ in tracks}):
        yield {"ph": "M", "pid": rank, "tid": 0, "name": "process_name", "args": {"name": f"rank {rank}"}}
    for rank, graph, model in sorted(tracks, key=lambda track: (track[0], track[1], track[2] or "")):
        name = f"graph {graph}{f' {_text(model)}' if model else ''}"
        yield {"ph": "M", "pid": rank, "tid": graph, "name": "thread_name", "args": {"name": name}}


def _events(operators: list[ExportedOperator]) -> Iterator[_Event]:
    """A slice for each operator, that ends where the next one of its step begins, and counters at its beginning."""
    times = [time for operator in operators if (time := _time(operator)) is not None]
    zero = min(times, default=0)
    last: dict[tuple[int, int], int] = {}
    for key, group in groupby(operators, key=lambda operator: operator.step):
        rank, graph = _rank(key), _graph(key)
        step = list(group)
        starts: list[int] = []
        # Files of one operator may be named in any order; slices of one track may not go back.
        now = last.get((rank, graph), 0)
        for one in step:
            time = _time(one)
            now = max(now + bool(starts), now if time is None else time - zero)
            starts.append(now)
        last[rank, graph] = now + 2
        for one, start, end in zip(step, starts, [*starts[1:], now + 1], strict=True):
            yield {
                "ph": "X", "pid": rank, "tid": graph, "ts": start, "dur": max(1, end - start),
                "name": _text(one.operator.op_name), "cat": _text(one.operator.op_type), "args": _arguments(one),
            }  # fmt: skip
            for name, value in _counters(one):
                yield {"ph": "C", "pid": rank, "tid": graph, "ts": start, "name": name, "args": {name: value}}


def _arguments(one: ExportedOperator) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        "name": _text(one.operator.label),
        "iteration": -1 if one.step.iteration is None else one.step.iteration,
        "health": one.health.value,
    }
    if one.line is not None:
        arguments["line"] = _text(f"{one.line.path}:{one.line.line} {one.line.code.strip()}")
    for row in one.tensors:
        numbers = row.numbers
        text = f"{row.tensor.true_dtype} {row.shape}, max {numbers.max}, min {numbers.min}, nan {numbers.nan}"
        arguments[f"{row.tensor.io} {_text(row.tensor.slot_text)}"] = text
    return arguments


def _counters(one: ExportedOperator) -> Iterator[tuple[str, float]]:
    yield "bytes", sum(row.tensor.size_bytes or 0 for row in one.tensors)
    outputs = [row.numbers for row in one.tensors if row.tensor.io == OUTPUT]
    bad = [count for row in outputs for count in (row.nan, row.negative_inf, row.positive_inf) if count is not None]
    if bad:
        yield "NaN and Inf", sum(bad)
    largest = [abs(value) for row in outputs for value in (row.max, row.min) if value is not None]
    finite = [float(value) for value in largest if math.isfinite(value)]
    if finite:
        yield "largest", max(finite)


def _time(one: ExportedOperator) -> int | None:
    return min((row.tensor.timestamp_us for row in one.tensors if row.tensor.timestamp_us is not None), default=None)


def _rank(key: StepKey) -> int:
    return key.rank_id or 0


def _graph(key: StepKey) -> int:
    return key.graph_id or 0


def _text(text: object) -> str:
    return printable(utf8_text(text))

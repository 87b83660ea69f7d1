"""Files of msprobe: `step{N}/rank{R}` with dump.json, stack.json and construct.json.

An operator becomes a call of a function, `Primitive.{type}.{number}.forward`, and its scopes the modules around it. Its
own name is the first line of its stack. `msprobe graph_visualize`, `compare` and `data2db` read them.

Source: mindstudio-probe 26.2: the names that its readers understand, and files that it wrote.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from typing import Any

from msdump.analysis.exporting import Written, write_folder
from msdump.analysis.overview.contents import Contents, ExportedOperator
from msdump.analysis.stat.rows import TensorStatistics
from msdump.formats.msprobe_json import (
    CONSTRUCT_FILE,
    MSPROBE_FILE,
    STACK_FILE,
    as_json,
    dump_content,
    stack_content,
)
from msdump.formats.paths.parse import MSPROBE
from msdump.formats.statistic_row import StatisticRow
from msdump.graph.types import SourceLine
from msdump.statistics.stats import Statistics
from msdump.tables.printable import printable
from msdump.tensors.records import INPUT, OUTPUT

_GRADIENTS = "Gradients"
# Scopes that stand for no module of the script.
_NO_MODULE = re.compile(r"Gradients|Default|grad\w+-(?:expand|meta)")
_NO_NAME = re.compile(r"\W+")
_MAX_NAME = 200
# Inputs that are missing in between keep the others' numbers, but no number in an untrusted file makes a long list.
_MAX_GAP = 64


def export(contents: Contents, to: str, path: str) -> Written:
    """Write the folders.   Raises: as `Contents`; WriteError."""
    steps: dict[tuple[int, int], _Step] = defaultdict(_Step)
    left_out = 0
    for operator in contents.operators:
        if operator.operator.is_parameter:
            left_out += 1
        else:
            steps[operator.step.iteration or 0, operator.step.rank_id or 0].add(operator)
    files = {
        f"step{iteration}/rank{rank}/{name}": data
        for (iteration, rank), step in steps.items()
        for name, data in step.files().items()
    }
    note = f"{left_out} parameters, as they are after their step, have no place in files of msprobe and are left out."
    return write_folder(path, files, [note] if left_out else [])


class _Step:
    """One step of one rank. Graphs of an iteration follow each other."""

    def __init__(self) -> None:
        self._records: dict[str, dict[str, Any]] = {}
        self._parents: dict[str, str | None] = {}
        self._names_by_stack: dict[tuple[str, ...], list[str]] = {}
        self._counts: defaultdict[str, int] = defaultdict(int)

    def add(self, operator: ExportedOperator) -> None:
        stage = "backward" if operator.operator.label.startswith(f"{_GRADIENTS}/") else "forward"
        name = self._name(operator, stage)
        self._records[name] = _record(operator, stage)
        self._parents[name] = None if _is_record(operator) else self._module(operator.operator.label, stage)
        self._names_by_stack.setdefault(_stack(operator), []).append(name)

    def _name(self, operator: ExportedOperator, stage: str) -> str:
        if _is_record(operator):
            return operator.operator.op_name
        op_type = _part(operator.operator.op_type)
        number = self._counts[op_type]
        self._counts[op_type] += 1
        return f"Primitive.{op_type}.{number}.{stage}"

    def _module(self, label: str, stage: str) -> str | None:
        """The innermost module around an operator, all of whose modules stand in construct.json before it."""
        scopes = [scope for scope in label.split("/")[:-1] if not _NO_MODULE.fullmatch(scope)]
        path: list[str] = []
        parent = None
        for scope in scopes:
            own_name, _, class_name = scope.rpartition("-")
            path.append(_part(own_name or class_name))
            name = f"Module.{'.'.join(path)}.{_part(class_name)}.{stage}.0"
            self._parents.setdefault(name, parent)
            parent = name
        return parent

    def files(self) -> dict[str, bytes]:
        return {
            MSPROBE_FILE: as_json(dump_content("statistics", "mix", None, self._records)),
            STACK_FILE: as_json(stack_content(self._names_by_stack)),
            CONSTRUCT_FILE: as_json(self._parents),
        }


def _is_record(operator: ExportedOperator) -> bool:
    """Whether the dump is one of msprobe, whose names these are."""
    return operator.tensors[0].tensor.file.levels.grammar == MSPROBE


def _part(text: str) -> str:
    """A part of a name, which ends at the next point."""
    return _NO_NAME.sub("_", text)[:_MAX_NAME] or "_"


def _record(operator: ExportedOperator, stage: str) -> dict[str, Any]:
    inputs, outputs = (_tensors(operator, io) for io in (INPUT, OUTPUT))
    if stage == "backward":
        return {"input": inputs, "output": outputs}
    return {"input_args": inputs, "input_kwargs": {}, "output": outputs}


def _tensors(operator: ExportedOperator, io: str) -> list[dict[str, Any] | None]:
    values: list[dict[str, Any] | None] = []
    for row in operator.tensors:
        if row.tensor.io == io:
            values += [None] * min(_MAX_GAP, row.tensor.slot - len(values))
            values.append(_tensor(row))
    return values


def _tensor(row: TensorStatistics) -> dict[str, Any]:
    largest, smallest, mean, norm = _numbers(row.numbers)
    return {
        "type": "torch.Tensor",
        "dtype": f"torch.{row.tensor.true_dtype}",
        "shape": list(row.shape),
        "Max": largest,
        "Min": smallest,
        "Mean": mean,
        "Norm": norm,
        "requires_grad": False,
    }


def _numbers(numbers: Statistics | StatisticRow) -> tuple[float | None, float | None, float | None, float | None]:
    """Max, Min, Mean and Norm over all elements, as PyTorch has them; ours leave out what is not finite."""
    if numbers.holds_nan:
        return math.nan, math.nan, math.nan, math.nan
    largest, smallest, mean, norm = numbers.max, numbers.min, numbers.avg, numbers.l2norm
    if numbers.positive_inf:
        largest, mean = math.inf, math.inf
        smallest = math.inf if smallest is None else smallest
    if numbers.negative_inf:
        smallest, mean = -math.inf, math.nan if numbers.positive_inf else -math.inf
        largest = -math.inf if largest is None else largest
    return largest, smallest, mean, norm


def _stack(operator: ExportedOperator) -> tuple[str, ...]:
    """Innermost frame first, as msprobe has it."""
    source: tuple[SourceLine, ...] = () if operator.node is None else operator.node.source
    frames = [f"File {line.path}, line {line.line}, \n {line.code.strip()}" for line in reversed(source)]
    return tuple(printable(text, "\n") for text in (f"operator {operator.operator.label}", *frames))

"""The golden side of a step, row by row beside the answer for the step: names, attributes, lines and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from msdump.analysis.compare.result import IDENTICAL, StepResult, TensorResult
from msdump.analysis.graph_info import GraphNode
from msdump.analysis.overview.contents import Contents, ExportedOperator
from msdump.analysis.stat.rows import TensorStatistics
from msdump.analysis.steps import StepKey
from msdump.errors import NothingFoundError
from msdump.formats.dump_tensor import DumpedTensor
from msdump.graph.types import SourceLine
from msdump.tables.messages import translations
from msdump.viewing.answer_parts import NUMBERS, Answer, attributes, line, number, table, tolerance_of

_TensorName = tuple[str, str, int]
_OPERATORS = ("name", "type", "attrs", "line")
_TENSORS = ("status", "reason", "error", "tolerance", "dtype", "shape", "file", *NUMBERS, "exponents")


class GoldenSide:
    """Answers about the golden dump of some contents that have one. One thread.

    Its tensors are measured when the first answer is made; of tensors that are identical the answers hold no numbers,
    as those of mine are theirs.
    """

    def __init__(self, contents: Contents) -> None:
        self._contents = contents

    def answer(self, step: StepResult, operators: Sequence[ExportedOperator]) -> Answer:
        """One row for each operator and each tensor of the step, None in all columns where there is no partner.

        operators  of the step, in the order of its answer
        Raises:    as `tensor_statistics`.
        """
        lines: dict[SourceLine, int] = {}
        pairs = {result.pair.mine.label: result for result in step.operators}
        operator_rows: list[tuple[Any, ...]] = []
        tensor_rows: list[tuple[Any, ...]] = []
        for operator in operators:
            result = pairs.get(operator.operator.label)
            if result is None:
                operator_rows.append((None,) * len(_OPERATORS))
            else:
                golden, node = result.pair.golden, self._nodes.get((step.golden, result.pair.golden.label))
                own = None if node is None else node.own_line
                operator_rows.append(
                    (golden.label, golden.op_type, attributes(node),
                     None if own is None else lines.setdefault(own, len(lines)))
                )  # fmt: skip
            tensors = {} if result is None else {_name_of(one.mine): one for one in result.tensors}
            tensor_rows += [self._tensor(tensors.get(_name_of(row.tensor))) for row in operator.tensors]
        tensors_of_step = table(_TENSORS, tensor_rows)
        return {
            "operators": table(_OPERATORS, operator_rows),
            "tensors": tensors_of_step,
            "words": translations(tensors_of_step["reason"]),
            "lines": [line(one) for one in lines],
        }

    def _tensor(self, result: TensorResult | None) -> tuple[Any, ...]:
        if result is None:
            return (None,) * len(_TENSORS)
        golden = result.golden
        comparison = self._contents.comparison
        tolerance = None if comparison is None else tolerance_of(comparison, result)
        row = None if result.status == IDENTICAL else self._rows.get(_name_of(golden))
        exponents = None if row is None else row.exponents
        return (
            result.status, result.reason, number(result.error), tolerance, golden.true_dtype,
            list(golden.original_shape or golden.shape) if row is None else list(row.shape),
            golden.path.rpartition("/")[2],
            *(None if row is None else number(getattr(row.numbers, name)) for name in NUMBERS),
            None if exponents is None else [exponents.first, list(exponents.positive), list(exponents.negative)],
        )  # fmt: skip

    @cached_property
    def _all_rows(self) -> Sequence[TensorStatistics]:
        comparison, golden = self._contents.comparison, self._contents.golden_contents
        if golden is None or comparison is None or comparison.hashes is not None:
            return ()  # a log of hashes has no numbers
        try:
            return golden.statistics.rows
        except NothingFoundError:
            return ()

    @cached_property
    def _rows(self) -> dict[_TensorName, TensorStatistics]:
        return {_name_of(row.tensor): row for row in self._all_rows}

    @cached_property
    def _nodes(self) -> dict[tuple[StepKey, str], GraphNode | None]:
        return {(row.step, row.operator.label): row.node for row in self._all_rows if row.operator is not None}


def _name_of(tensor: DumpedTensor) -> _TensorName:
    return tensor.path, tensor.where, tensor.offset

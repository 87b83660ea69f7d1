"""Health of each tensor of a dump, as one word."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum

from msdump.analysis.compare.result import DIFFERS, Comparison
from msdump.analysis.find.nan import MADE, UNKNOWN, NonFiniteReport
from msdump.analysis.stat.rows import TensorStatistics
from msdump.analysis.steps import Operator, Slot, StepKey
from msdump.graph.traits import makes_one_value
from msdump.tensors import dtypes
from msdump.tensors.records import INPUT, OUTPUT


class Health(Enum):
    """From worst to best; the value is what tables say."""

    MADE_HERE = "not finite made here"
    CAME_IN = "not finite came in"
    DIFFERS = "differs"
    SUSPICIOUS = "suspicious"
    OK = "ok"
    UNSET = "not written yet"
    NOT_MEASURED = "not measured"

    @property
    def rank(self) -> int:
        """0 for the worst."""
        return list(Health).index(self)


_Name = tuple[StepKey, str, str]
_Tensor = tuple[StepKey, str, str, Slot]


class HealthOfDump:
    """Health of the tensors of one dump, from what was found in it. An expected Inf is harmless."""

    def __init__(self, report: NonFiniteReport, comparison: Comparison | None) -> None:
        self._makers: set[_Name] = set()
        self._readers: set[_Name] = set()
        self._parameters: set[tuple[StepKey, str]] = set()
        for result in (*report.nan, *report.inf):
            first = self._makers if result.how in (MADE, UNKNOWN) else self._readers
            first.add(_name(result.step, result.operator))
            self._makers.update(_name(result.step, operator) for operator in result.also_made)
            self._readers.update(_name(result.step, operator) for operator in (*result.infected, *result.stopped))
            self._parameters.update((result.step, name) for name in result.parameters)
        self._unset = report.unset
        self._errors: Mapping[_Tensor, float | None] = {}
        self._different: set[_Tensor] = set()
        if comparison is not None:
            results = [
                ((operator.step, operator.pair.mine.label, tensor.io, tensor.slot), tensor)
                for operator in comparison.operators
                for tensor in operator.tensors
            ]
            self._errors = {key: tensor.error for key, tensor in results}
            self._different = {key for key, tensor in results if tensor.status == DIFFERS}

    def of(self, row: TensorStatistics) -> Health:
        """The worst that is true of a tensor; what `empty` returns is neither good nor bad."""
        if tensor_of(row) in self._unset:
            return Health.UNSET
        if _is_not_finite(row):
            cause = self._cause(row)
            if cause is not None:
                return cause
        if tensor_of(row) in self._different:
            return Health.DIFFERS
        if row.numbers.max is None or row.numbers.min is None:
            return Health.NOT_MEASURED
        return Health.SUSPICIOUS if is_suspicious(row) else Health.OK

    def error(self, row: TensorStatistics) -> float | None:
        """Relative error against the golden dump; None where it was not compared."""
        return self._errors.get(tensor_of(row))

    def _cause(self, row: TensorStatistics) -> Health | None:
        operator = row.operator
        if operator is None:
            return None
        if operator.is_parameter:
            return Health.CAME_IN if (row.step, operator.op_name) in self._parameters else None
        name = _name(row.step, operator)
        if name in self._makers and row.tensor.io == OUTPUT:
            return Health.MADE_HERE
        return Health.CAME_IN if name in self._makers or name in self._readers else None


def is_suspicious(row: TensorStatistics) -> bool:
    """All zero or all alike, with more than one element; or within a factor of two of the largest value of the dtype.

    Edges: integers and bools may be all alike, and so may inputs and parameters, which begin as zeros and ones, and
           what an operator like `zeros` or `fill` has made.
    """
    numbers, dtype = row.numbers, dtypes.BY_NAME.get(row.tensor.true_dtype)
    if dtype is None or not dtype.is_float or numbers.max is None or numbers.min is None:
        return False
    operator = row.operator
    is_given = operator is not None and (operator.is_parameter or makes_one_value(operator.op_type))
    is_made = row.tensor.io != INPUT and not is_given
    if is_made and (numbers.count or 0) > 1 and numbers.max == numbers.min:
        return True
    largest = max(abs(numbers.max), abs(numbers.min))
    return math.isfinite(largest) and dtype.bits >= 8 and largest > float(dtypes.float_limits(dtype.numpy).max) / 2


def tensor_of(row: TensorStatistics) -> _Tensor:
    """Which tensor a row is about."""
    tensor = row.tensor
    label = row.operator.label if row.operator is not None else tensor.op_name
    return row.step, label, tensor.io, Slot(tensor.slot, tensor.part or 0, tensor.keyword or "")


def _name(step: StepKey, operator: Operator) -> _Name:
    return step, operator.op_type, operator.label


def _is_not_finite(row: TensorStatistics) -> bool:
    numbers = row.numbers
    if any((numbers.nan, numbers.negative_inf, numbers.positive_inf)):
        return True
    # Files of msprobe count nothing, but their extremes tell.
    return any(value is not None and not math.isfinite(value) for value in (numbers.max, numbers.min))

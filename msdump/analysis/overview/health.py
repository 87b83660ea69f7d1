"""Health of each tensor of a dump, as one word."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import Enum
from functools import cached_property

from msdump.analysis.compare.result import DIFFERS, Comparison
from msdump.analysis.find.nan import MADE, UNKNOWN, NonFiniteReport
from msdump.analysis.stat.rows import TensorStatistics
from msdump.analysis.steps import Operator, Slot, StepKey
from msdump.operators.traits import makes_one_value
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
    """Health of the tensors of one dump, from what was found in it. An expected Inf is harmless.

    rows      gives all rows of the dump; asked for once, and only when an output is all alike
    outvoted  tensors in which the other ranks outvote one, as `JobReport.outvoted`
    """

    def __init__(
        self,
        report: NonFiniteReport,
        comparison: Comparison | None,
        rows: Callable[[], Sequence[TensorStatistics]],
        outvoted: Collection[tuple[int | None, int | None, str, str | None, str | None]] = (),
    ) -> None:
        self._rows = rows
        self._outvoted = frozenset(outvoted)
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
        if row.is_unset or tensor_of(row) in self._unset:
            return Health.UNSET
        if _is_not_finite(row):
            cause = self._cause(row)
            if cause is not None:
                return cause
        if tensor_of(row) in self._different or (self._outvoted and self._is_outvoted(row)):
            return Health.DIFFERS
        if row.numbers.max is None or row.numbers.min is None:
            return Health.NOT_MEASURED
        if is_all_alike(row) and tensor_of(row)[:2] not in self._fed_alike:
            return Health.SUSPICIOUS
        return Health.SUSPICIOUS if is_near_limit(row) else Health.OK

    def error(self, row: TensorStatistics) -> float | None:
        """Relative error against the golden dump; None where it was not compared."""
        return self._errors.get(tensor_of(row))

    def _is_outvoted(self, row: TensorStatistics) -> bool:
        step, label, io, slot = tensor_of(row)
        at = step.rank_id, step.iteration, label
        return not self._outvoted.isdisjoint(((*at, io, str(slot)), (*at, None, None)))

    @cached_property
    def _fed_alike(self) -> set[tuple[StepKey, str]]:
        """Operators of which each input is all alike, so that nothing else can come out: `expand` of one value."""
        is_alike: dict[tuple[StepKey, str], bool] = {}
        for row in self._rows():
            if row.tensor.io == INPUT and row.operator is not None:
                name, numbers = (row.step, row.operator.label), row.numbers
                is_alike[name] = is_alike.get(name, True) and numbers.max is not None and numbers.max == numbers.min
        return {name for name, alike in is_alike.items() if alike}

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


def is_all_alike(row: TensorStatistics) -> bool:
    """Whether an output has more than one element and all are equal, zero or not.

    Edges: False for integers and bools, for parameters, which begin as zeros and ones, and for what an operator like
           `zeros` or `fill` has made.
    """
    numbers, operator = row.numbers, row.operator
    if not _is_float(row) or numbers.max is None or row.tensor.io == INPUT:
        return False
    if operator is not None and (operator.is_parameter or makes_one_value(operator.op_type)):
        return False
    return (numbers.count or 0) > 1 and numbers.max == numbers.min


def is_near_limit(row: TensorStatistics) -> bool:
    """Whether the largest magnitude is within a factor of two of the largest value of the dtype, of 8 bits or more."""
    numbers, dtype = row.numbers, dtypes.BY_NAME.get(row.tensor.true_dtype)
    if dtype is None or not _is_float(row) or numbers.max is None or numbers.min is None or dtype.bits < 8:
        return False
    largest = max(abs(numbers.max), abs(numbers.min))
    return math.isfinite(largest) and largest > float(dtypes.float_limits(dtype.numpy).max) / 2


def _is_float(row: TensorStatistics) -> bool:
    dtype = dtypes.BY_NAME.get(row.tensor.true_dtype)
    return dtype is not None and dtype.is_float


def tensor_of(row: TensorStatistics) -> _Tensor:
    """Which tensor a row is about."""
    tensor = row.tensor
    label = row.operator.label if row.operator is not None else tensor.op_name
    return row.step, label, tensor.io, Slot(tensor.slot, tensor.part or 0, tensor.keyword or "")


def _name(step: StepKey, operator: Operator) -> _Name:
    return step, operator.op_type, operator.label


def _is_not_finite(row: TensorStatistics) -> bool:
    return bool(row.numbers.holds_nan or row.numbers.holds_inf)

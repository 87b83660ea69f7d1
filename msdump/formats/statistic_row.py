"""A row of a file of statistics, and what each form of file tells about NaN and Inf."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from msdump.tensors import dtypes

_COUNTS = ("nan", "negative_inf", "positive_inf")


@dataclass(frozen=True, slots=True)
class StatisticForm:
    """What files of one form say of the tensors of each dtype.

    measured   dtypes whose values they describe; of others there is at most the number of elements
    counted    dtypes whose NaN and Inf they count, where those columns were chosen
    finite_by  statistics that are finite only where every element is: NaN and Inf take part in them
    titles     of statistics, as the files have them
    """

    measured: frozenset[str] = frozenset()
    counted: frozenset[str] = frozenset()
    finite_by: tuple[str, ...] = ()
    titles: Mapping[str, str] = field(default_factory=dict)

    def telling(self, dtype: str) -> list[str]:
        """Titles of the columns that tell whether a tensor holds NaN and Inf."""
        names = (*(_COUNTS if dtype in self.counted else ()), *self.finite_by)
        return [self.titles[name] for name in names if name in self.titles]


_NO_FORM = StatisticForm()


@dataclass(frozen=True, slots=True)
class StatisticRow:
    """One row. Numbers have the digits of the file; None for what a row or its file does not have."""

    op_type: str
    op_name: str
    task_id: int
    stream_id: int
    timestamp_us: int
    io: str
    slot: int
    size_bytes: int
    dtype: str
    shape: tuple[int, ...]
    max: float | None = None
    min: float | None = None
    avg: float | None = None
    l2norm: float | None = None
    count: int | None = None
    negative: int | None = None
    positive: int | None = None
    zero: int | None = None
    nan: int | None = None
    negative_inf: int | None = None
    positive_inf: int | None = None
    md5: str | None = None
    form: StatisticForm = _NO_FORM

    @property
    def holds_nan(self) -> bool | None:
        """Whether an element is NaN; None where the row does not tell."""
        if self.nan is not None:
            return self.nan > 0
        if self._is_always_finite:
            return False
        told = {"max": self.max, "min": self.min, "avg": self.avg, "l2norm": self.l2norm}
        if math.inf in (self.max, self.min) and -math.inf in (self.max, self.min):
            del told["avg"]  # the mean of both infinities is NaN, too
        known = {name: value for name, value in told.items() if value is not None}
        if any(map(math.isnan, known.values())):
            return True
        return None if known.keys().isdisjoint(self.form.finite_by) else False

    @property
    def holds_inf(self) -> bool | None:
        """Whether an element is Inf; None where the row does not tell."""
        counts = self.negative_inf, self.positive_inf
        if any(counts):
            return True
        if None not in counts or self._is_always_finite:
            return False
        telling = [getattr(self, name) for name in self.form.finite_by]
        values = [value for value in (self.max, self.min, *telling) if value is not None]
        if any(map(math.isinf, values)):
            return True
        return False if any(value is not None and math.isfinite(value) for value in telling) else None

    @property
    def is_told(self) -> bool:
        """Whether the row tells that all elements are finite, or that one is not."""
        nan, inf = self.holds_nan, self.holds_inf
        return bool(nan or inf) or None not in (nan, inf)

    @property
    def _is_always_finite(self) -> bool:
        """Whether the dtype has no NaN and no Inf, or the tensor no elements."""
        row = dtypes.BY_NAME.get(self.dtype)
        return (row is not None and not row.may_be_non_finite) or self.count == 0 or 0 in self.shape

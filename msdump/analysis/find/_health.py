"""How many NaN and Inf each tensor of a dump holds, and its largest finite value: from tensors or from statistics."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from msdump.analysis._payload import Key, Progress, in_runs, key_of, loaded_each
from msdump.analysis.measurements import Measurements, is_as_stored
from msdump.errors import DtypeError, FormatError
from msdump.formats.dump_tensor import DumpedTensor
from msdump.formats.statistic_row import StatisticRow
from msdump.statistics.batches import measure_each
from msdump.statistics.kernels import SMALL_BYTES
from msdump.statistics.stats import Statistics, has_non_finite, statistics
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array
from msdump.tensors.makers import maker

Damaged = list[tuple[str, FormatError]]


@dataclass(frozen=True, slots=True)
class NonFiniteCounts:
    """What is not finite in a tensor; of complex numbers either part counts.

    nan, negative_inf, positive_inf   counts; None where only their presence is known
    largest   absolute value of the finite elements; None where there are none or they have no order
    is_counted  False: the counts are 1 where there are some
    numbers   statistics that they were taken from, where there are some
    """

    nan: int | None = 0
    negative_inf: int | None = 0
    positive_inf: int | None = 0
    largest: float | None = None
    is_counted: bool = True
    numbers: Statistics | StatisticRow | None = field(default=None, compare=False, repr=False)

    @property
    def inf(self) -> int | None:
        if self.negative_inf is None or self.positive_inf is None:
            return None
        return self.negative_inf + self.positive_inf

    @property
    def has_nan(self) -> bool:
        """Also where it may be an Inf instead."""
        return self.nan != 0

    @property
    def has_inf(self) -> bool:
        return bool(self.inf)

    @property
    def is_bad(self) -> bool:
        return self.has_nan or self.has_inf


_made_health = maker(NonFiniteCounts)
_FINE = NonFiniteCounts()
_NOT_FINITE = NonFiniteCounts(None, None, None)


class HealthTable:
    """Non-finite counts by tensor; equal bytes on disk share an entry. An unreadable tensor counts as finite.

    untold  by dtype: how many tensors have statistics of a form that tells nothing of the values of that dtype
    """

    def __init__(self) -> None:
        self._by_key: dict[Key, NonFiniteCounts] = {}
        self._has_bad: bool | None = None  # None: to be computed again
        self.untold: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._by_key)

    def of(self, tensor: DumpedTensor) -> NonFiniteCounts:
        return self._by_key.get(key_of(tensor), _FINE)

    def numbers(self, tensor: DumpedTensor) -> Statistics | StatisticRow | None:
        """Statistics of a tensor; None where they were not needed."""
        return self.of(tensor).numbers

    @property
    def has_bad(self) -> bool:
        """Whether any tensor holds a value that is not finite."""
        if self._has_bad is None:
            self._has_bad = any(health.is_bad for health in self._by_key.values())
        return self._has_bad

    def add_rows(
        self, row_of: Callable[[DumpedTensor], StatisticRow], tensors: Iterable[DumpedTensor], damaged: Damaged
    ) -> None:
        """Take counts from statistics; a file without the columns that tell of NaN and Inf goes to `damaged`."""
        self._has_bad = None
        reported: set[str] = set()
        for tensor in tensors:
            row = row_of(tensor)
            self._by_key[key_of(tensor)] = _of_row(row)
            if row.is_told:
                continue
            if row.dtype not in row.form.measured:
                self.untold[row.dtype] += 1
            elif tensor.path not in reported:
                reported.add(tensor.path)
                columns = " or ".join(f'"{title}"' for title in row.form.telling(row.dtype))
                text = f"expected numbers in a column that tells of NaN and Inf ({columns}), got none"
                damaged.append((tensor.path, FormatError(f"{tensor.path}: {text} for {row.dtype}.")))

    def add_tensors(
        self,
        tensors: Iterable[DumpedTensor],
        damaged: Damaged,
        thread_count: int | None = None,
        progress: Progress | None = None,
        measurements: Measurements | None = None,
    ) -> None:
        """Measure each distinct tensor once, on all cores; what cannot be read goes to `damaged`.

        measurements  of others who read the same bytes
        """
        self._has_bad = None
        distinct = {key_of(tensor): tensor for tensor in tensors}
        problems: dict[Key, FormatError] = {}
        sizes = {key: tensor.size_bytes for key, tensor in distinct.items()}
        measure = _measured if measurements is None else partial(_known_of, measurements)
        for key, result in in_runs(measure, distinct, sizes, thread_count, progress):
            if isinstance(result, FormatError):
                problems[key] = result
            else:
                self._by_key[key] = result
        damaged += [(tensor.path, problems[key]) for key, tensor in distinct.items() if key in problems]


# Those that can hold a bad value.
_ABLE = frozenset(row.name for row in dtypes.TABLE if row.may_be_non_finite)
# Floats with NaN and Inf, whose statistics say all.
_PLAIN = frozenset(row.name for row in dtypes.TABLE if row.kind == dtypes.FLOAT and row.bits > 8)


def _measured(tensors: Sequence[DumpedTensor]) -> list[NonFiniteCounts | FormatError]:
    """Plain floats together, the others one by one; what cannot hold a bad value is not read."""
    row_numbers = [row_number for row_number, tensor in enumerate(tensors) if tensor.dtype in _ABLE]
    arrays, problems = loaded_each([tensors[row_number] for row_number in row_numbers], is_raw=True)
    results: list[NonFiniteCounts | FormatError] = [_FINE] * len(tensors)
    for number, problem in problems.items():
        results[row_numbers[number]] = problem
    plain: dict[int, Array] = {}
    names = []
    for number, array in arrays.items():
        name = dtypes.dtype_from_numpy(array.dtype).name
        if name in _PLAIN:
            plain[row_numbers[number]] = array
            names.append(name)
        else:
            results[row_numbers[number]] = count_non_finite(array)
    for row_number, numbers in zip(plain, measure_each(list(plain.values()), names), strict=True):
        assert isinstance(numbers, Statistics)  # plain floats have an order
        results[row_number] = _of_numbers(numbers)
    return results


def _known_of(measurements: Measurements, tensors: Sequence[DumpedTensor]) -> list[NonFiniteCounts | FormatError]:
    return [_known(measurements, tensor) for tensor in tensors]


def _of_numbers(numbers: Statistics) -> NonFiniteCounts:
    largest = _largest(numbers.max, numbers.min)
    return _made_health(numbers.nan, numbers.negative_inf, numbers.positive_inf, largest, True, numbers)


def _known(measurements: Measurements, tensor: DumpedTensor) -> NonFiniteCounts | FormatError:
    """From a measurement, where that says all; else from the file, which may not be read for a rough look."""
    if tensor.dtype not in _ABLE:
        return _FINE
    row, result = dtypes.BY_NAME[tensor.dtype], measurements.of(tensor)
    if result is None:
        return _FINE
    if isinstance(result, FormatError) or row.kind != dtypes.FLOAT or row.bits <= 8 or not is_as_stored(tensor):
        return _measured([tensor])[0]
    return _of_numbers(result.numbers)


def health_of(tensor: DumpedTensor, plain_bytes: int) -> NonFiniteCounts:
    """Of one tensor, without a table; what cannot be read counts as finite.   plain_bytes: as of `statistics`"""
    if tensor.dtype not in _ABLE:
        return _FINE
    try:
        return count_non_finite(tensor.load(), plain_bytes)
    except (FormatError, OSError):
        return _FINE


def count_non_finite(array: Array, plain_bytes: int = SMALL_BYTES) -> NonFiniteCounts:
    """How many elements are NaN, +Inf and -Inf."""
    row = dtypes.dtype_from_numpy(array.dtype)
    if row.kind == dtypes.COMPLEX:
        parts = np.ascontiguousarray(array).reshape(-1)
        array = parts.view(parts.real.dtype)
        row = dtypes.dtype_from_numpy(array.dtype)
    try:
        numbers = statistics(array, row.name, plain_bytes=plain_bytes)
    except DtypeError:
        return _NOT_FINITE if has_non_finite(array, row.name) else _FINE
    largest = _largest(numbers.max, numbers.min)
    if row.bits <= 8 and has_non_finite(array, row.name):
        values = np.arange(1 << row.bits, dtype=np.uint8).view(array.dtype).astype(np.float32)
        if not np.isinf(values).any():
            # A dtype without Inf saturates at its largest value.
            wide, top = array.astype(np.float32), float(np.nanmax(values))
            return NonFiniteCounts(numbers.nan, int((wide == -top).sum()), int((wide == top).sum()), largest)
    return _of_numbers(numbers)


def _of_row(row: StatisticRow) -> NonFiniteCounts:
    """Counts where the row has all of them, else what it tells by other numbers."""
    largest = _largest(row.max, row.min)
    if row.nan is not None and row.negative_inf is not None and row.positive_inf is not None:
        return _made_health(row.nan, row.negative_inf, row.positive_inf, largest, True, row)
    extremes = row.max, row.min
    negative = row.negative_inf or int(-math.inf in extremes)
    positive = row.positive_inf or int(math.inf in extremes)
    # A norm tells no sign.
    positive = positive or int(bool(row.holds_inf) and not negative)
    return NonFiniteCounts(row.nan or int(bool(row.holds_nan)), negative, positive, largest, False, row)


def _largest(largest: float | int | None, smallest: float | int | None) -> float | None:
    """The largest magnitude of both, as far as they are finite; None where neither is."""
    if largest is not None and smallest is not None and math.isfinite(largest - smallest):
        return max(abs(float(largest)), abs(float(smallest)))  # all tensors of a healthy dump come this way
    finite = [abs(float(value)) for value in (largest, smallest) if value is not None and math.isfinite(value)]
    return max(finite, default=None)

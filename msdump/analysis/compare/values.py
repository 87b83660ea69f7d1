"""Which tensors of two dumps hold the same numbers, whatever the operators are called that made them.

A tensor is told by its numbers in their order (`value`), so that a view of it is the same value; of two dumps by a
few figures that rounding hardly changes, then element by element, in the order of one of them or with its axes
exchanged, as frameworks lay out weights and images in their own ways.
"""

from __future__ import annotations

import itertools
import math
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from operator import attrgetter

import numpy as np

from msdump.analysis.distance.bounds import Bounds, bounds_of, real_dtype, reason_to_differ
from msdump.analysis.distance.metrics import FILL, PairMetrics, beside_fill, compare_arrays
from msdump.errors import FormatError
from msdump.formats.dump_tensor import DumpedTensor
from msdump.formats.statistic_row import StatisticRow
from msdump.tensors.arrays import Array

Value = tuple[int, int, str, float, float]
_MAX_RECENT = 1 << 12
_SMALL_BYTES = 1 << 16
# Numbers that many tensors have: a mask of two values, zeros, ones. They tell nothing about who made them.
_FEW_WHOLE = 2
_SAMPLE = 4096
_BLOCK = 1 << 20  # elements that are looked at at once
_OF_MASKS = ((0, 0), (1, 1), (0, 1))
_MAX_CANDIDATES = 12
_MAX_LOOKS = 64  # values of nearly one length whose other figures are looked at
_TINY = 1e-30
_MAX_AXES = 5
_NEAR = 0.1  # matrices that are further apart than this in either order tell nothing of their order
# A float32 with so few digits was written by somebody: a learning rate of 0.5, a factor of 2.
_LOW_BITS = 0xFFFF


@dataclass(frozen=True, slots=True)
class Figures:
    """What is known of the numbers of one tensor, all as float64.

    value     equal for tensors with the same numbers in the same order
    is_plain  whether it tells nothing: all elements are equal, a handful of whole numbers, one number of few digits
    is_noise  plain, because it is no more than the rounding of what it is a sum of
    has_elements  whether its numbers can be read; False: these figures are all that there is
    factor    by which the numbers of the tensor are multiplied to be these
    """

    tensor: DumpedTensor
    value: Value
    size: int
    dtype: str
    total: float
    absolute: float
    length: float
    lowest: float
    largest: float
    is_plain: bool
    is_noise: bool = False
    has_elements: bool = True
    factor: float = 1.0

    @property
    def is_float(self) -> bool:
        return self.dtype.startswith(("float", "bfloat"))

    def of_tensor(self, tensor: DumpedTensor) -> Figures:
        """Those of another tensor with the same bytes."""
        return Figures(
            tensor, self.value, self.size, self.dtype, self.total, self.absolute, self.length, self.lowest,
            self.largest, self.is_plain, self.is_noise, self.has_elements, self.factor,
        )  # fmt: skip

    def scaled(self, factor: float) -> Figures:
        """Of the same numbers, multiplied by a positive factor."""
        size, checksum, dtype, total, length = self.value
        value = size, checksum, dtype, factor * total, factor * length
        return replace(
            self, value=value, total=factor * self.total, absolute=factor * self.absolute, length=factor * self.length,
            lowest=factor * self.lowest, largest=factor * self.largest, factor=factor * self.factor,
        )  # fmt: skip


_numbers_of = attrgetter("length", "total", "absolute", "lowest", "largest")


@dataclass(frozen=True, slots=True)
class Likeness:
    """Two tensors that agree, or nearly so.

    axes     order of mine's axes in which they do, or of golden's where `is_of_golden`; () for the order as it is
    metrics  None where all bits are equal
    reason   why they do not agree in that order either
    factor   by which mine's numbers are multiplied to agree, as gradients of a loss that is scaled up
    """

    axes: tuple[int, ...] = ()
    is_of_golden: bool = False
    metrics: PairMetrics | None = None
    reason: str = ""
    factor: float = 1.0


def figures_of(tensor: DumpedTensor) -> Figures | None:
    """Figures of a tensor; None where it cannot be read, is empty or holds no numbers."""
    try:
        array = tensor.load_host()
    except (FormatError, OSError):
        return None
    if array.dtype.kind == "c":
        array = np.ascontiguousarray(array).reshape(-1).view(array.real.dtype)
    if array.size == 0 or array.dtype.kind not in "fiubV":
        return None
    flat = np.ascontiguousarray(array).reshape(-1)
    data = flat.view(np.uint8).data
    # Most values are read by others than made them: figures of the same bytes are taken over.
    checksum = zlib.crc32(data)
    more = hash(bytes(data)) if data.nbytes <= _SMALL_BYTES else zlib.adler32(data)
    key = flat.size, checksum, more, flat.dtype.str, tensor.true_dtype
    known = _recent.get(key)
    if known is None:
        known = _figures(tensor, array, flat, checksum)
        if len(_recent) >= _MAX_RECENT:
            _recent.clear()
        if known is not None:
            _recent[key] = known
        return known
    return known if known.tensor is tensor else known.of_tensor(tensor)


def _figures(tensor: DumpedTensor, array: Array, flat: Array, checksum: int) -> Figures | None:
    lowest, largest, total, absolute, square, count = math.inf, -math.inf, 0.0, 0.0, 0.0, 0
    is_mask = True
    with np.errstate(all="ignore"):
        for start in range(0, flat.size, _BLOCK):
            numbers = flat[start : start + _BLOCK].astype(np.float64)
            if not np.isfinite(numbers).all():
                numbers = numbers[np.isfinite(numbers)]
                if numbers.size == 0:
                    continue
            count += numbers.size
            lowest, largest = min(lowest, float(numbers.min())), max(largest, float(numbers.max()))
            is_mask = is_mask and (lowest, largest) in _OF_MASKS and bool(np.all((numbers == 0) | (numbers == 1)))
            total, absolute = total + float(numbers.sum()), absolute + float(np.abs(numbers).sum())
            square += float(np.square(numbers).sum())
    if count == 0:
        return None
    length = math.sqrt(square)
    # Among many tensors of one size a checksum of 32 bits alone would meet another one by chance.
    value = flat.size, checksum, flat.dtype.str, total, length
    return Figures(
        tensor,
        value,
        flat.size,
        real_dtype(array, tensor.true_dtype),
        total,
        absolute,
        length,
        lowest,
        largest,
        _is_whole_plain(flat) if flat.dtype.kind in "iub" else _is_plain(count, lowest, largest, is_mask),
    )


def _is_whole_plain(flat: Array) -> bool:
    return np.unique(flat[:_SAMPLE]).size <= _FEW_WHOLE


def _is_plain(count: int, lowest: float, largest: float, is_mask: bool) -> bool:
    if count > 1:
        return lowest == largest or (is_mask and (lowest, largest) == (0, 1))
    return not int(np.float32(lowest).view(np.uint32)) & _LOW_BITS


def figures_of_row(tensor: DumpedTensor, row: StatisticRow) -> Figures | None:
    """Figures of a tensor of which there are statistics alone; None where they lack extremes, mean or norm.

    Edges: a sum of magnitudes is in no table; it is NaN, which agrees with all.
    """
    numbers = row.max, row.min, row.avg, row.l2norm
    size = math.prod(tensor.shape)
    if any(number is None or not math.isfinite(number) for number in numbers) or size == 0:
        return None
    largest, lowest, mean, length = (float(number or 0.0) for number in numbers)
    value = size, zlib.crc32(repr((*numbers, row.md5)).encode()), row.dtype, mean * size, length
    is_whole = "int" in row.dtype or row.dtype == "bool"
    if size == 1:
        is_plain = is_whole or not int(np.float32(largest).view(np.uint32)) & _LOW_BITS
    else:
        is_plain = largest - lowest <= (_FEW_WHOLE - 1 if is_whole else 0)
    return Figures(
        tensor, value, size, row.dtype, mean * size, math.nan, length, lowest, largest, is_plain, has_elements=False
    )


def likeness_of(mine: DumpedTensor, golden: DumpedTensor, tolerance: float | None = None) -> Likeness | None:
    """How two tensors of one size agree; None where they do not, or cannot be read."""
    x, y = figures_of(mine), figures_of(golden)
    return None if x is None or y is None else _likeness(x, y, tolerance)


# Figures of the last tensors, by what tells their bytes.
_recent: dict[tuple[int, int, int, str, str], Figures] = {}


class Matches:
    """Which values of mine are which of golden. Answers are kept; one thread."""

    def __init__(self, golden: Iterable[Figures], tolerance: float | None = None) -> None:
        self._tolerance = tolerance
        # By size, then by dtype: how near two lengths must be depends on the dtypes.
        self._listed: dict[int, dict[str, list[Figures]]] = {}
        self._values: set[Value] = set()
        for figures in golden:
            if not figures.is_plain and figures.value not in self._values:
                self._values.add(figures.value)
                self._listed.setdefault(figures.size, {}).setdefault(figures.dtype, []).append(figures)
        self._lengths: dict[tuple[int, str], list[float]] = {}
        self._numbers: dict[tuple[int, str], Array] = {}  # `_numbers_of` each, in the order of their lengths
        for size, dtypes in self._listed.items():
            for dtype, listed in dtypes.items():
                listed.sort(key=lambda figures: figures.length)
                self._lengths[size, dtype] = [figures.length for figures in listed]
                self._numbers[size, dtype] = np.array([_numbers_of(figures) for figures in listed])
        self._known: dict[Value, tuple[Value, ...]] = {}
        self._alike: dict[tuple[Value, Value], Likeness | None] = {}

    def of(self, mine: Figures) -> tuple[Value, ...]:
        """Values of golden that agree with one of mine, the nearest first; () for a plain one."""
        if mine.is_plain:
            return ()
        if mine.value not in self._known:
            candidates = self._candidates(mine)
            if mine.value in self._values:
                # Others that are near are other values, but for those with its numbers in another order or dtype.
                ends = mine.lowest, mine.largest
                candidates = [one for one in candidates if (one.lowest, one.largest) == ends]
            self._known[mine.value] = tuple(one.value for one in candidates if self.likeness(mine, one) is not None)
        return self._known[mine.value]

    def likeness(self, mine: Figures, golden: Figures) -> Likeness | None:
        """How two tensors of one size agree; None where they do not."""
        key = mine.value, golden.value
        if key not in self._alike:
            self._alike[key] = _likeness(mine, golden, self._tolerance)
        return self._alike[key]

    def apart(self, mine: Figures, golden: Figures) -> Likeness | None:
        """How far two values of one size are apart, in the order as it is; None where they cannot be read."""
        if not (mine.has_elements and golden.has_elements):
            return None
        try:
            x, y = mine.tensor.load_host(), golden.tensor.load_host()
        except (FormatError, OSError):
            return None
        metrics = compare_arrays(_scaled(x, mine.factor).reshape(-1), y.reshape(-1), False)
        bounds = bounds_of(mine.dtype, golden.dtype, self._tolerance)
        return Likeness((), False, metrics, reason_to_differ(metrics, bounds), mine.factor)

    def nearest(self, mine: Figures, golden: Figures) -> Likeness | None:
        """Of two matrices that do not agree: that they are nearly the same once one is transposed; else None."""
        if not (mine.has_elements and golden.has_elements):
            return None
        try:
            x, y = mine.tensor.load_host(), golden.tensor.load_host()
        except (FormatError, OSError):
            return None
        if x.ndim != 2 or y.ndim != 2 or x.shape != y.shape[::-1]:
            return None
        bounds = bounds_of(mine.dtype, golden.dtype, self._tolerance)
        turned = compare_arrays(x, np.ascontiguousarray(y.T), False)
        if turned.mismatched or not turned.relative_error < _NEAR:
            return None
        return Likeness((1, 0), True, turned, reason_to_differ(turned, bounds))

    def _candidates(self, mine: Figures) -> list[Figures]:
        """Values that may agree, the nearest first; of many those whose length is nearest."""
        fitting: list[Figures] = []
        for dtype, listed in self._listed.get(mine.size, {}).items():
            lengths = self._lengths[mine.size, dtype]
            # A little wider than the bounds, which refer to the length of golden.
            share = 2 * bounds_of(mine.dtype, dtype, self._tolerance).relative
            first = bisect_left(lengths, (1 - share) * mine.length - _TINY)
            last = bisect_right(lengths, (1 + share) * mine.length + _TINY)
            if last - first > _MAX_LOOKS:
                middle = bisect_left(lengths, mine.length)
                first, last = max(first, middle - _MAX_LOOKS // 2), min(last, middle + _MAX_LOOKS // 2)
            if last > first:
                may = _may_agree(mine, dtype, self._numbers[mine.size, dtype][first:last], self._tolerance)
                fitting += itertools.compress(listed[first:last], may)
        fitting.sort(key=lambda golden: abs(golden.length - mine.length) + abs(golden.total - mine.total))
        return fitting[:_MAX_CANDIDATES]


def _may_agree(mine: Figures, dtype: str, golden: Array, tolerance: float | None) -> list[bool]:
    """Whether values of golden may agree with one of mine, by their figures alone.

    golden  float64 [values, 5]: `_numbers_of` values of one dtype and of mine's size
    """
    bounds = bounds_of(mine.dtype, dtype, tolerance)
    if bounds.relative == 0.0 and {mine.dtype, dtype} & {"float32", "float64"}:
        return [False] * len(golden)  # a number of one side is a whole number of the other by chance
    length, total, absolute, lowest, largest = golden.T
    top = np.maximum(np.abs(lowest), np.abs(largest)).clip(max(abs(mine.lowest), abs(mine.largest)))
    slack = bounds.relative * math.sqrt(mine.size) * length
    may = (
        (np.abs(mine.length - length) <= bounds.relative * length)
        & (np.abs(mine.total - total) <= slack)
        & ~(np.abs(mine.absolute - absolute) > slack)
        & (np.abs(mine.lowest - lowest) <= bounds.worst * top)
        & (np.abs(mine.largest - largest) <= bounds.worst * top)
    )
    found: list[bool] = may.tolist()
    return found


def _likeness(mine: Figures, golden: Figures, tolerance: float | None) -> Likeness | None:
    found = _likeness_of_numbers(mine, golden, tolerance)
    return found if found is None or mine.factor == 1 else replace(found, factor=mine.factor)


def _likeness_of_numbers(mine: Figures, golden: Figures, tolerance: float | None) -> Likeness | None:
    if mine.value == golden.value:
        return Likeness()
    if not (mine.has_elements and golden.has_elements):
        (may,) = _may_agree(mine, golden.dtype, np.array([_numbers_of(golden)]), tolerance)
        return Likeness() if may else None
    try:
        x, y = mine.tensor.load_host(), golden.tensor.load_host()
    except (FormatError, OSError):
        return None
    if mine.factor != 1:
        x = _scaled(x, mine.factor)
    bounds = bounds_of(mine.dtype, golden.dtype, tolerance)
    top = max(abs(golden.lowest), abs(golden.largest))
    for axes, is_of_golden in _orders(x, y):
        left, right = x, y
        if axes and is_of_golden:
            right = np.ascontiguousarray(y.transpose(axes))
        elif axes:
            left = np.ascontiguousarray(x.transpose(axes))
        if axes and not _divides_alike(left.shape, right.shape):
            continue
        a, b = left.reshape(-1), right.reshape(-1)
        if not _begins_alike(a, b, bounds.worst * top):
            continue
        if np.array_equal(a, b):
            return Likeness(axes, is_of_golden)
        if not axes and a.dtype == b.dtype == np.float32 and a.size <= _BLOCK:
            if _is_near(a, b, bounds, top):
                return Likeness()
            continue
        metrics = compare_arrays(a, b, False)
        if not reason_to_differ(metrics, bounds):
            return Likeness(axes, is_of_golden, metrics)
    return None


def _scaled(array: Array, factor: float) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):  # memory that nobody wrote
        return array.astype(np.float32) * np.float32(factor)


def is_row_of(array: Array, figures: Figures, tolerance: float | None) -> bool:
    """Whether a part of a tensor holds the numbers of another one, in their order.   Edges: False where it is gone."""
    try:
        other = figures.tensor.load_host()
    except (FormatError, OSError):
        return False
    bounds = bounds_of(figures.dtype, figures.dtype, tolerance)
    a, b = np.ascontiguousarray(array).reshape(-1), np.ascontiguousarray(other).reshape(-1)
    top = max(abs(figures.lowest), abs(figures.largest))
    if a.size != b.size or not _begins_alike(a, b, bounds.worst * top):
        return False
    return bool(np.array_equal(a, b)) or not reason_to_differ(compare_arrays(a, b, False), bounds)


def _orders(x: Array, y: Array) -> Iterator[tuple[tuple[int, ...], bool]]:
    """Orders of the axes of one side in which two arrays may agree: as they are, then exchanged."""
    yield (), False
    for array, is_of_golden in ((y, True), (x, False)):
        long = [axis for axis, length in enumerate(array.shape) if length > 1]
        if len(long) >= 2 and array.ndim <= _MAX_AXES:
            for axes in itertools.permutations(range(array.ndim)):
                if [axis for axis in axes if axis in long] != long:
                    yield axes, is_of_golden


def _divides_alike(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether one shape is the other with neighbouring axes put together: other readings of memory are no layouts."""
    bounds = [
        set(itertools.accumulate((length for length in shape if length > 1), int.__mul__)) for shape in (one, other)
    ]
    return bounds[0] <= bounds[1] or bounds[1] <= bounds[0]


def _is_near(a: Array, b: Array, bounds: Bounds, top: float) -> bool:
    """Whether two arrays of one dtype agree, as `reason_to_differ` has it, without all metrics.

    Edges: NaN and Inf must be the same in the same places.
    """
    kept = beside_fill(a, b) if top > FILL else None
    if kept is not None:
        a, b = a[kept], b[kept]
        top = float(np.abs(b).max())
    with np.errstate(invalid="ignore"):
        distance = a.astype(np.float64) - b
    finite = np.isfinite(distance)
    if not finite.all():
        if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
            return False
        distance, b = distance[finite], b[finite]
    length = float(np.linalg.norm(b.astype(np.float64)))
    return float(np.linalg.norm(distance)) <= bounds.relative * length and bool(
        np.abs(distance).max(initial=0.0) <= bounds.worst * top
    )


def _begins_alike(a: Array, b: Array, slack: float) -> bool:
    """Whether the first elements agree, which few wrong orders do."""
    with np.errstate(all="ignore"):
        distance = np.abs(a[:32].astype(np.float64) - b[:32].astype(np.float64))
    return bool((~(distance > slack)).all())

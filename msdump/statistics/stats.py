"""Statistics of one tensor in one pass over its bytes: what statistic.csv and every comparison start from.

Large tensors run through numba, small ones through numpy, so that
a script with small tensors never waits for a compiler; both fill the same partial results, one row per chunk, which
makes the result independent of the number of threads.
"""

from __future__ import annotations

import math
import struct
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from msdump.errors import DtypeError
from msdump.process.termination import in_thread
from msdump.statistics.kernels import (
    CHUNK,
    SMALL_BYTES,
    byte_search,
    compiled_search,
    compiled_segments,
    largest_of_byte_float,
    plain_search,
    row_kernel,
)
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array
from msdump.tensors.c_order import in_c_order
from msdump.tensors.float_bits import FLOATS, values_of_keys

_REAL = (dtypes.FLOAT, dtypes.INT, dtypes.UINT, dtypes.BOOL)
# Dtypes that `statistics` takes.
REAL_DTYPES = frozenset(row.name for row in dtypes.TABLE if row.kind in _REAL)
LEAST_SQUARES = 1e-280  # a smaller sum of squares of float64 has lost digits
_THREADED_BYTES = 4 << 20  # from here on a second thread earns its start


@dataclass(frozen=True, slots=True)
class Statistics:
    """What is known about the values of one tensor.

    max, min, avg  over the finite values; None when there are none; -0.0 is reported as 0
    l2norm         square root of the sum of squares over all values: any NaN -> NaN, else any Inf -> Inf
    count          all elements
    negative, positive   finite values below and above zero
    zero           +0 and -0
    size_bytes     bytes of the tensor in memory
    """

    max: float | int | None
    min: float | int | None
    avg: float | None
    l2norm: float
    count: int
    negative: int
    positive: int
    zero: int
    nan: int
    negative_inf: int
    positive_inf: int
    size_bytes: int

    @property
    def holds_nan(self) -> bool:
        return self.nan > 0

    @property
    def holds_inf(self) -> bool:
        return self.negative_inf > 0 or self.positive_inf > 0


@dataclass(frozen=True)
class StatisticCategory:
    """One value of `statistic_category`.

    title      of its column in statistic.csv
    attribute  of `Statistics` and of a row that is read; "md5" is that of a row alone
    acl_title  of its column in the csv files of ACL; None where they have none
    acl_name   in `dump_stats`; None where it cannot be chosen
    """

    name: str
    title: str
    attribute: str
    acl_title: str | None = None
    acl_name: str | None = None

    @property
    def is_count(self) -> bool:
        return self.name.endswith("count")


# In the order of the columns.   Source: MindSpore dump guide; CANN, `dump_stats`.
STATISTIC_CATEGORIES = (
    StatisticCategory("max", "Max Value", "max", "Max Value", "Max"),
    StatisticCategory("min", "Min Value", "min", "Min Value", "Min"),
    StatisticCategory("avg", "Avg Value", "avg", "Avg Value", "Avg"),
    StatisticCategory("count", "Count", "count", "Count"),
    StatisticCategory("negative zero count", "Negative Zero Count", "negative"),
    StatisticCategory("positive zero count", "Positive Zero Count", "positive"),
    StatisticCategory("nan count", "NaN Count", "nan", "Nan Count", "Nan"),
    StatisticCategory("negative inf count", "Negative Inf Count", "negative_inf", "Negative Inf Count", "Negative Inf"),
    StatisticCategory("positive inf count", "Positive Inf Count", "positive_inf", "Positive Inf Count", "Positive Inf"),
    StatisticCategory("zero count", "Zero Count", "zero"),
    StatisticCategory("md5", "MD5", "md5"),
    StatisticCategory("l2norm", "L2Norm Value", "l2norm", "l2norm", "L2norm"),
)


@dataclass(frozen=True, slots=True)
class _Totals:
    """Merged partial results. `top` and `low` mean nothing when no value is finite."""

    top: float | int
    low: float | int
    sum: float
    squares: float
    negative: int
    zero: int
    nan: int
    negative_inf: int
    positive_inf: int


def statistics(array: Array, dtype_name: str, thread_count: int = 1, plain_bytes: int = SMALL_BYTES) -> Statistics:
    """All statistics of a tensor.

    plain_bytes   tensors up to this size do without the compiler, whose import takes a second; more than the default
                  is for a process that looks at a few tensors and ends

    Shapes:  any, 0-d and empty included; strides and byte order do not matter.
    Dtypes:  all real dtypes of the table; sums are accumulated in float64.
    Edges:   empty -> max, min, avg None, l2norm 0.0; the result does not depend on `thread_count`.
    Raises:  DtypeError for complex, hifloat8 and strings, or when the array is not of `dtype_name`.
    Source:  MindSpore dump guide, statistic.csv; "Negative Zero Count" counts values below zero.
    """
    row = dtypes.dtype(dtype_name)
    if row.kind not in _REAL:
        raise DtypeError(f"statistics: expected a real dtype, got {row.name}, which has no order.")
    if array.dtype != row.numpy and array.dtype.newbyteorder("=") != row.numpy:
        raise DtypeError(f"statistics: expected an array of {row.name}, got one of {array.dtype}.")
    if isinstance(array, MeasuredArray):
        if array.numbers is None:
            raise DtypeError("statistics: expected numbers or values of a tensor, got neither.")
        return array.numbers()
    flat = _flat(array)
    with np.errstate(all="ignore"):
        return _finish(totals_of(flat, row, thread_count, plain_bytes), flat, row)


# Dtypes whose small tensors can be measured together. In float64 the order of the additions would be seen.
_JOINED = ("float32", "float16", "bfloat16")


def can_be_joined(array: Array, dtype_name: str) -> bool:
    """Whether `joined_statistics` takes the tensor."""
    return 0 < array.size <= CHUNK and dtype_name in _JOINED and not isinstance(array, MeasuredArray)


def joined_statistics(arrays: Sequence[Array], dtype_name: str) -> list[Statistics]:
    """`statistics` of tensors that `can_be_joined`, all of one dtype, in one call of compiled code.

    Raises: as `statistics`, which measures them one by one where there is no compiler.
    """
    row = dtypes.dtype(dtype_name)
    kernel = compiled_segments(dtype_name)
    if kernel is None or any(array.dtype != row.numpy for array in arrays):
        return [statistics(array, dtype_name) for array in arrays]
    key = FLOATS[dtype_name].key
    flats = [_flat(array) for array in arrays]
    starts = np.zeros(len(flats) + 1, np.int64)
    np.cumsum([flat.size for flat in flats], out=starts[1:])
    joined = np.concatenate([flat.view(key) for flat in flats])
    extremes, sums = np.empty((len(flats), 2), key), np.empty((len(flats), 2), np.float64)
    counts = np.empty((len(flats), 5), np.int64)
    kernel(joined.view(row.numpy), starts, extremes, sums, counts)
    ends = values_of_keys(extremes, row.numpy)
    parts = zip(flats, ends.tolist(), sums.tolist(), counts.tolist(), strict=True)
    return [
        _finish(_Totals(top, low, total, squares, *numbers), flat, row)
        for flat, (top, low), (total, squares), numbers in parts
    ]


class MeasuredArray(np.ndarray[Any, np.dtype[Any]]):
    """Shape and dtype of a tensor that stays where it is; only its statistics come.

    `statistics` evaluates `numbers` when it is called, not earlier. It has no data: its bytes must not be read.
    """

    numbers: Callable[[], Statistics] | None

    def __new__(cls, shape: tuple[int, ...], dtype: Any, numbers: Callable[[], Statistics] | None) -> MeasuredArray:
        self = super().__new__(cls, shape, dtype, _NO_VALUES, 0, (0,) * len(shape))
        self.numbers = numbers
        return self

    def __array_finalize__(self, source: object) -> None:
        # Another shape of the same elements has the same statistics; a part of them has none.
        is_whole = isinstance(source, MeasuredArray) and source.size == self.size
        self.numbers = source.numbers if isinstance(source, MeasuredArray) and is_whole else None


_NO_VALUES = bytes(16)


def is_large_and_real(shape: tuple[int, ...], dtype_name: str) -> bool:
    """True for a tensor that has statistics and whose copy costs more than they do."""
    row = dtypes.dtype(dtype_name)
    return row.kind in _REAL and math.prod(shape) * row.itemsize > SMALL_BYTES


def measured_now(array: Array, dtype_name: str) -> Array:
    """The statistics of an array in its place; an array without elements as it is.   Raises: as `statistics`."""
    if not array.size:
        return array
    numbers = statistics(array, dtype_name)
    return MeasuredArray(array.shape, array.dtype, lambda: numbers)


def has_non_finite(array: Array, dtype_name: str) -> bool:
    """True when a value is NaN or Inf, or is the largest one of a dtype that saturates instead.

    Shapes:  any; the first such value ends the search.
    Dtypes:  all of the table; integers, bools and strings never hold one; of complex numbers either part.
    Edges:   empty -> False; 0x6E and 0xEE of HiFloat8 and the largest value of a float without Inf count.
    Source:  MindSpore dump guide, `op_debug_mode`: what an operator that overflows leaves behind.
    """
    row = dtypes.dtype(dtype_name)
    if not row.may_be_non_finite or not array.size:
        return False
    if isinstance(array, MeasuredArray):
        numbers = statistics(array, dtype_name)
        return bool(numbers.nan or numbers.negative_inf or numbers.positive_inf) or _is_saturated(numbers, row)
    flat = _flat(array)
    if row.kind == dtypes.COMPLEX:
        flat = flat.view(np.float32 if row.name == "complex64" else np.float64)
    if row.itemsize == 1:
        return byte_search(flat.view(np.uint8), row)
    name = dtypes.dtype_from_numpy(flat.dtype).name
    search = None if flat.nbytes <= SMALL_BYTES else compiled_search(name)
    return bool(search(flat.view(FLOATS[name].unsigned))) if search else plain_search(flat, name)


def _is_saturated(numbers: Statistics, row: dtypes.Dtype) -> bool:
    """True when the largest value of a float of a byte is there, which stands for whatever is above."""
    if row.itemsize > 1 or numbers.max is None or numbers.min is None:
        return False
    top = largest_of_byte_float(row)
    return numbers.max >= top or numbers.min <= -top


def has_nan(array: Array, dtype_name: str) -> bool:
    """True when a value is NaN, and where a dtype does not tell NaN from Inf. Shapes: any."""
    if isinstance(array, MeasuredArray):
        return statistics(array, dtype_name).nan > 0
    return dtypes.dtype(dtype_name).kind == dtypes.OTHER or bool(np.isnan(array).any())


def raw_bytes(array: Array) -> memoryview:
    """The elements in C order, little-endian; a view when the array is already in that order.

    Raises: DtypeError for a MeasuredArray, which has none.
    """
    if isinstance(array, MeasuredArray):
        raise DtypeError("bytes: expected the values of a tensor, got its statistics. Ask for tensors as well.")
    plain = in_c_order(array)
    if not is_little_endian(plain.dtype):
        plain = plain.astype(plain.dtype.newbyteorder("<"))
    return plain.reshape(-1).view(np.uint8).data


def is_little_endian(dtype: np.dtype[Any]) -> bool:
    order = dtype.byteorder
    return order in "<|" or (order == "=" and sys.byteorder == "little")


def _flat(array: Array) -> Array:
    """One contiguous axis of native, aligned elements, in memory order: no copy of a transposed array."""
    flags = array.flags
    if flags.c_contiguous and flags.aligned and array.dtype.isnative:
        return array.reshape(-1)
    flat = array.ravel(order="K")
    if not flat.dtype.isnative:
        flat = flat.astype(flat.dtype.newbyteorder("="))
    return np.require(flat, requirements=["C", "A"])


def _finish(totals: _Totals, flat: Array, row: dtypes.Dtype) -> Statistics:
    count = int(flat.size)
    finite = count - totals.nan - totals.negative_inf - totals.positive_inf
    top, low, average = totals.top, totals.low, None
    if finite:
        average, norm = _average_and_norm(totals, flat, finite)
    else:
        norm = 0.0
    if totals.nan:
        norm = math.nan
    elif totals.negative_inf or totals.positive_inf:
        norm = math.inf
    return Statistics(
        max=top if finite else None,
        min=low if finite else None,
        avg=average,
        l2norm=norm,
        count=count,
        negative=totals.negative,
        positive=finite - totals.negative - totals.zero,
        zero=totals.zero,
        nan=totals.nan,
        negative_inf=totals.negative_inf,
        positive_inf=totals.positive_inf,
        size_bytes=count * row.itemsize,
    )


def _average_and_norm(totals: _Totals, flat: Array, finite: int) -> tuple[float, float]:
    """Mean and root of the squares; float64 values near the ends of their range are scaled and summed again."""
    average, norm = totals.sum / finite + 0.0, math.sqrt(totals.squares)
    largest = float(max(abs(totals.top), abs(totals.low)))
    if flat.dtype == np.float64 and largest and not (math.isfinite(totals.squares) and totals.squares > LEAST_SQUARES):
        scaled = np.where(np.isfinite(flat), flat, 0.0) / largest
        average = float(scaled.sum()) / finite * largest + 0.0
        norm = math.sqrt(float(np.square(scaled).sum())) * largest
    return average, norm


def totals_of(flat: Array, row: dtypes.Dtype, thread_count: int, plain_bytes: int) -> _Totals:
    """What one pass over the elements counts and adds up."""
    if row.kind == dtypes.BOOL:
        return _bool_totals(flat)
    if row.is_float and row.itemsize == 1:
        return _byte_float_totals(flat, row)
    return _row_totals(flat, row, thread_count, plain_bytes)


def _bool_totals(flat: Array) -> _Totals:
    ones = int(np.count_nonzero(flat))
    size = int(flat.size)
    return _Totals(int(ones > 0), int(ones == size), float(ones), float(ones), 0, size - ones, 0, 0, 0)


def _byte_float_totals(flat: Array, row: dtypes.Dtype) -> _Totals:
    """8-bit floats have 256 values: how often each occurs says everything."""
    bytes_ = flat.view(np.uint8)
    times = np.zeros(256, np.int64)
    for start in range(0, flat.size, CHUNK):
        times += np.bincount(bytes_[start : start + CHUNK], minlength=256)
    used = np.flatnonzero(times)
    times, values = times[used], used.astype(np.uint8).view(row.numpy).astype(np.float64)
    is_finite = np.isfinite(values)
    nan = int(times[np.isnan(values)].sum())
    negative_inf, positive_inf = int(times[values == -np.inf].sum()), int(times[values == np.inf].sum())
    times, values = times[is_finite], values[is_finite]
    negative, zero = int(times[values < 0].sum()), int(times[values == 0].sum())
    top, low = (float(values.max()) + 0.0, float(values.min()) + 0.0) if values.size else (0.0, 0.0)
    total, squares = float((times * values).sum()), float((times * np.square(values)).sum())
    return _Totals(top, low, total, squares, negative, zero, nan, negative_inf, positive_inf)


def _row_totals(flat: Array, row: dtypes.Dtype, thread_count: int, plain_bytes: int) -> _Totals:
    """Fill one row of partial results per chunk, then merge the rows in their order."""
    if row.bits < 8:
        flat = flat.astype(np.int8 if row.kind == dtypes.INT else np.uint8)
    name = row.name if row.is_float else flat.dtype.name
    kernel = row_kernel(name, flat.nbytes <= plain_bytes)
    row_count = -(-flat.size // CHUNK)
    extremes = np.empty((row_count, 2), FLOATS[name].key if row.is_float else flat.dtype)
    sums = np.empty((row_count, 2), np.float64)
    counts = np.empty((row_count, 5), np.int64)

    def work(first: int, last: int) -> None:
        rows = slice(first, last)
        kernel(flat[first * CHUNK : last * CHUNK], extremes[rows], sums[rows], counts[rows])

    in_threads(work, row_count, thread_count if flat.nbytes >= _THREADED_BYTES else 1)
    return _merge(extremes, sums, counts, row)


def in_threads(work: Callable[[int, int], None], row_count: int, thread_count: int) -> None:
    """Call `work(first, last)` on consecutive shares of the rows."""
    thread_count = min(thread_count, row_count)
    if thread_count <= 1:
        work(0, row_count)
        return
    edges = [row_count * share // thread_count for share in range(thread_count + 1)]
    with ThreadPoolExecutor(thread_count - 1) as pool:
        others = [in_thread(pool, work, edges[share], edges[share + 1]) for share in range(1, thread_count)]
        work(edges[0], edges[1])
        for future in others:
            future.result()


def _merge(extremes: Array, sums: Array, counts: Array, row: dtypes.Dtype) -> _Totals:
    if not len(extremes):
        return _Totals(0, 0, 0.0, 0.0, 0, 0, 0, 0, 0)
    if len(extremes) > 1:
        top, low = int(extremes[:, 0].max()), int(extremes[:, 1].min())
        sums, counts = sums.sum(axis=0), counts.sum(axis=0)
    else:
        # Most tensors are small: no call of numpy's that can be spared.
        (top, low), sums, counts = extremes[0].tolist(), sums[0], counts[0]
    ends: tuple[float | int, float | int] = (top, low)
    if row.is_float:
        ends = _from_key(top, row), _from_key(low, row)
    total, squares = sums.tolist()
    return _Totals(*ends, total, squares, *counts.tolist())


# Dtypes of 2, 4 and 8 bytes: how struct reads their keys and what those stand for.
_UNPACK = {
    "float16": (struct.Struct("<h"), struct.Struct("<e")),
    "float32": (struct.Struct("<i"), struct.Struct("<f")),
    "float64": (struct.Struct("<q"), struct.Struct("<d")),
}


def _from_key(key: int, row: dtypes.Dtype) -> float:
    """The float that sorts as this key; 0.0 for both zeros."""
    bits = key if key >= 0 else key ^ ((1 << (row.bits - 1)) - 1)
    if row.name == "bfloat16":
        bits, (integer, number) = bits << 16, _UNPACK["float32"]
    else:
        integer, number = _UNPACK[row.name]
    return float(number.unpack(integer.pack(bits))[0]) + 0.0

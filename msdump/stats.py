"""Statistics of one tensor in one pass over its bytes: what statistic.csv and every comparison start from.

Floats are ordered through their bits: compilers vectorise the maximum of integers, not that of floats. 16-bit
floats are widened block by block, never as a whole. Large tensors run through numba, small ones through numpy, so that
a script with small tensors never waits for a compiler; both fill the same partial results, one row per chunk, which
makes the result independent of the number of threads.
"""

from __future__ import annotations

import functools
import hashlib
import math
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from msdump import dtypes
from msdump.errors import DtypeError
from msdump.events import Array

_CHUNK = 1 << 16  # elements per row of partial results
_BLOCK = 2048  # elements that a kernel visits twice; they stay in the first-level cache
_SEARCH_BLOCK = 8192  # elements between two looks at whether the search is over
_SMALL_BYTES = 64 << 10  # up to here numpy is as good as the import of a compiler
_THREADED_BYTES = 4 << 20  # from here on a second thread earns its start

# Fills (extremes, sums, counts), one row per chunk of `values`.
_RowKernel = Callable[[Array, Array, Array, Array], None]


@dataclass(frozen=True, slots=True)
class Statistics:
    """What is known about the values of one tensor.

    max, min, avg  over the finite values; None when there are none; -0.0 is said as 0
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


def statistics(array: Array, dtype_name: str, thread_count: int = 1) -> Statistics:
    """All statistics of a tensor.

    Shapes:  any, 0-d and empty included; strides and byte order do not matter.
    Dtypes:  all real dtypes of the table; sums are accumulated in float64.
    Edges:   empty -> max, min, avg None, l2norm 0.0; the result does not depend on `thread_count`.
    Raises:  DtypeError for complex, hifloat8 and strings, or when the array is not of `dtype_name`.
    Source:  MindSpore dump guide, statistic.csv; "Negative Zero Count" counts values below zero.
    """
    row = dtypes.dtype(dtype_name)
    if row.kind not in (dtypes.FLOAT, dtypes.INT, dtypes.UINT, dtypes.BOOL):
        raise DtypeError(f"statistics: expected a real dtype, got {row.name}, which has no order.")
    if array.dtype.newbyteorder("=") != row.numpy:
        raise DtypeError(f"statistics: expected an array of {row.name}, got one of {array.dtype}.")
    if isinstance(array, MeasuredArray):
        if array.numbers is None:
            raise DtypeError("statistics: expected numbers or values of a tensor, got neither.")
        return array.numbers()
    flat = _flat(array)
    with np.errstate(all="ignore"):
        return _finish(_totals(flat, row, thread_count), flat, row)


class MeasuredArray(np.ndarray[Any, np.dtype[Any]]):
    """Shape and dtype of a tensor that stays where it is; only its statistics come.

    `statistics` gives what `numbers` says, which is asked no sooner. It has no values: nobody may read its bytes.
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


def has_non_finite(array: Array, dtype_name: str) -> bool:
    """True when a value is NaN or Inf, or is the largest one of a dtype that saturates instead.

    Shapes:  any; the first such value ends the search.
    Dtypes:  all of the table; integers, bools and strings never hold one; of complex numbers either part.
    Edges:   empty -> False; 0x6E and 0xEE of HiFloat8 and the largest value of a float without Inf count.
    Source:  MindSpore dump guide, `op_debug_mode`: what an operator that overflows leaves behind.
    """
    row = dtypes.dtype(dtype_name)
    if row.kind not in (dtypes.FLOAT, dtypes.COMPLEX, dtypes.OTHER) or row.numpy_type is None or not array.size:
        return False
    flat = _flat(array)
    if row.kind == dtypes.COMPLEX:
        flat = flat.view(np.float32 if row.name == "complex64" else np.float64)
    if row.itemsize == 1:
        return _byte_search(flat.view(np.uint8), row)
    name = dtypes.dtype_from_numpy(flat.dtype).name
    search = None if flat.nbytes <= _SMALL_BYTES else _compiled_search(name)
    return bool(search(flat.view(_FLOATS[name].unsigned))) if search else _plain_search(flat, name)


def md5_hex(array: Array) -> str:
    """MD5 of the raw little-endian bytes in C order, 32 lower-case hex digits."""
    return hashlib.md5(raw_bytes(array), usedforsecurity=False).hexdigest()


def raw_bytes(array: Array) -> memoryview:
    """The elements in C order, little-endian; a view when the array already lies that way.

    Raises: DtypeError for a MeasuredArray, which has none.
    """
    if isinstance(array, MeasuredArray):
        raise DtypeError("bytes: expected the values of a tensor, got its statistics. Ask for tensors as well.")
    plain = np.ascontiguousarray(array)
    if not _is_little_endian(plain.dtype):
        plain = plain.astype(plain.dtype.newbyteorder("<"))
    return plain.reshape(-1).view(np.uint8).data


def _is_little_endian(dtype: np.dtype[Any]) -> bool:
    order = dtype.byteorder
    return order in "<|" or (order == "=" and sys.byteorder == "little")


def _flat(array: Array) -> Array:
    """One contiguous axis of native, aligned elements, in memory order: no copy of a transposed array."""
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
    if flat.dtype == np.float64 and largest and not (math.isfinite(totals.squares) and totals.squares > 1e-280):
        scaled = np.where(np.isfinite(flat), flat, 0.0) / largest
        average = float(scaled.sum()) / finite * largest + 0.0
        norm = math.sqrt(float(np.square(scaled).sum())) * largest
    return average, norm


def _totals(flat: Array, row: dtypes.Dtype, thread_count: int) -> _Totals:
    if row.kind == dtypes.BOOL:
        return _bool_totals(flat)
    if row.is_float and row.itemsize == 1:
        return _byte_float_totals(flat, row)
    return _row_totals(flat, row, thread_count)


def _bool_totals(flat: Array) -> _Totals:
    ones = int(np.count_nonzero(flat))
    size = int(flat.size)
    return _Totals(int(ones > 0), int(ones == size), float(ones), float(ones), 0, size - ones, 0, 0, 0)


def _byte_float_totals(flat: Array, row: dtypes.Dtype) -> _Totals:
    """8-bit floats have 256 values: how often each occurs says everything."""
    bytes_ = flat.view(np.uint8)
    times = np.zeros(256, np.int64)
    for start in range(0, flat.size, _CHUNK):
        times += np.bincount(bytes_[start : start + _CHUNK], minlength=256)
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


def _row_totals(flat: Array, row: dtypes.Dtype, thread_count: int) -> _Totals:
    """Fill one row of partial results per chunk, then merge the rows in their order."""
    if row.bits < 8:
        flat = flat.astype(np.int8 if row.kind == dtypes.INT else np.uint8)
    name = row.name if row.is_float else flat.dtype.name
    kernel = _row_kernel(name, flat.nbytes <= _SMALL_BYTES)
    row_count = -(-flat.size // _CHUNK)
    extremes = np.empty((row_count, 2), _FLOATS[name].key if row.is_float else flat.dtype)
    sums = np.empty((row_count, 2), np.float64)
    counts = np.empty((row_count, 5), np.int64)

    def work(first: int, last: int) -> None:
        rows = slice(first, last)
        kernel(flat[first * _CHUNK : last * _CHUNK], extremes[rows], sums[rows], counts[rows])

    _in_threads(work, row_count, thread_count if flat.nbytes >= _THREADED_BYTES else 1)
    return _merge(extremes, sums, counts, row)


def _in_threads(work: Callable[[int, int], None], row_count: int, thread_count: int) -> None:
    """Call `work` on consecutive shares of the rows."""
    if thread_count <= 1:
        work(0, row_count)
        return
    edges = [row_count * share // thread_count for share in range(thread_count + 1)]
    with ThreadPoolExecutor(thread_count - 1) as pool:
        others = [pool.submit(work, edges[share], edges[share + 1]) for share in range(1, thread_count)]
        work(edges[0], edges[1])
        for other in others:
            other.result()


def _merge(extremes: Array, sums: Array, counts: Array, row: dtypes.Dtype) -> _Totals:
    if not len(extremes):
        return _Totals(0, 0, 0.0, 0.0, 0, 0, 0, 0, 0)
    pair = np.array([extremes[:, 0].max(), extremes[:, 1].min()], extremes.dtype)
    top, low = int(pair[0]), int(pair[1])
    if row.is_float:
        # Back from keys to floats; adding 0.0 turns -0.0 into 0.0.
        pair ^= (pair >> (8 * pair.itemsize - 1)) & np.iinfo(pair.dtype).max
        top, low = (float(value) + 0.0 for value in pair.view(row.numpy))  # type: ignore[assignment]
    total, squares = sums.sum(axis=0)
    negative, zero, nan, negative_inf, positive_inf = (int(count) for count in counts.sum(axis=0))
    return _Totals(top, low, float(total), float(squares), negative, zero, nan, negative_inf, positive_inf)


@dataclass(frozen=True, slots=True)
class _FloatBits:
    """How the bits of one float dtype are read.

    key       signed integer of the same width; bits become keys that sort like the values:
              -Inf is the complement of +Inf, -0 and +0 are -1 and 0, NaNs lie outside the infinities
    infinity  key of +Inf
    shift     left shift that makes float32 bits of 16-bit ones; 0 for floats that compilers know
    scale     what the shifted value must still be multiplied by
    """

    key: Any
    infinity: int
    shift: int = 0
    scale: float = 1.0

    @property
    def unsigned(self) -> np.dtype[Any]:
        return np.dtype(f"u{np.dtype(self.key).itemsize}")


_FLOATS = {
    "float16": _FloatBits(np.int16, 0x7C00, 13, 2.0**112),
    "bfloat16": _FloatBits(np.int16, 0x7F80, 16),
    "float32": _FloatBits(np.int32, 0x7F800000),
    "float64": _FloatBits(np.int64, 0x7FF << 52),
}


@functools.cache
def _row_kernel(name: str, is_small: bool) -> _RowKernel:
    """Kernel for a float of `_FLOATS` or an integer of at least a byte."""
    compiled = None if is_small else _compiled_rows(name)
    if compiled is not None:
        return compiled
    return _float_rows(name) if name in _FLOATS else _int_rows()


# -- kernels: numpy ------------------------------------------------------------------------------------------------


def _float_rows(name: str) -> _RowKernel:
    key, infinity = _FLOATS[name].key, _FLOATS[name].infinity
    largest, smallest = np.iinfo(key).max, np.iinfo(key).min
    shift = 8 * np.dtype(key).itemsize - 1

    def fill_row(values: Array, extremes: Array, sums: Array, counts: Array) -> None:
        bits = values.view(key)
        keys = bits ^ ((bits >> shift) & largest)
        top, low = keys.max(), keys.min()
        counts[:] = 0
        counts[1] = keys.size - np.count_nonzero(bits & largest)
        if top >= infinity or low <= ~infinity:
            is_finite = (keys > ~infinity) & (keys < infinity)
            counts[3], counts[4] = np.count_nonzero(keys == ~infinity), np.count_nonzero(keys == infinity)
            values, keys = values[is_finite], keys[is_finite]
            counts[2] = bits.size - keys.size - counts[3] - counts[4]
            top, low = (keys.max(), keys.min()) if keys.size else (smallest, largest)
        counts[0] = np.count_nonzero(keys < -1)
        wide = values.astype(np.float32).astype(np.float64) if values.itemsize == 2 else values.astype(np.float64)
        extremes[:] = top, low
        sums[:] = wide.sum(), np.square(wide, out=wide).sum()

    return _by_chunk(fill_row)


def _int_rows() -> _RowKernel:
    def fill_row(values: Array, extremes: Array, sums: Array, counts: Array) -> None:
        wide = values.astype(np.float64)
        counts[:] = 0
        counts[0] = np.count_nonzero(values < 0)
        counts[1] = values.size - np.count_nonzero(values)
        extremes[:] = values.max(), values.min()
        sums[:] = wide.sum(), np.square(wide, out=wide).sum()

    return _by_chunk(fill_row)


def _by_chunk(fill_row: _RowKernel) -> _RowKernel:
    def kernel(values: Array, extremes: Array, sums: Array, counts: Array) -> None:
        for index in range(len(extremes)):
            chunk = values[index * _CHUNK : (index + 1) * _CHUNK]
            fill_row(chunk, extremes[index], sums[index], counts[index])

    return kernel


def _plain_search(flat: Array, name: str) -> bool:
    """`has_non_finite` by numpy, chunk by chunk."""
    if name in ("float32", "float64"):
        return any(not np.isfinite(flat[at : at + _CHUNK]).all() for at in range(0, flat.size, _CHUNK))
    form = _FLOATS[name]
    bits, largest = flat.view(form.key), np.iinfo(form.key).max
    return any((bits[at : at + _CHUNK] & largest).max() >= form.infinity for at in range(0, flat.size, _CHUNK))


# Floats of at most a byte: bits that tell the magnitude, and the smallest magnitude that is Inf, NaN or saturated.
_BYTE_FLOATS = {
    "float8_e5m2": (0x7F, 0x7C),
    "float8_e4m3fn": (0x7F, 0x7E),
    "float8_e8m0": (0xFF, 0xFE),
    "float6_e3m2": (0x1F, 0x1F),
    "float6_e2m3": (0x1F, 0x1F),
    "float4_e2m1": (0x07, 0x07),
}


def _byte_search(codes: Array, row: dtypes.Dtype) -> bool:
    for at in range(0, codes.size, _CHUNK):
        chunk = codes[at : at + _CHUNK]
        if row.kind == dtypes.OTHER:
            # HiFloat8: 0x80 is NaN, 0x6F and 0xEF are Inf, 0x6E and 0xEE come just below.
            is_found = bool((((chunk & 0x7E) == 0x6E) | (chunk == 0x80)).any())
        else:
            magnitude, first = _BYTE_FLOATS[row.name]
            is_found = int((chunk & magnitude).max()) >= first
        if is_found:
            return True
    return False


# -- kernels: numba ------------------------------------------------------------------------------------------------


def _compiled_rows(name: str) -> _RowKernel | None:
    """Machine code, from the cache on disk if there is one; None when there is no compiler."""
    try:
        import numba
    except ImportError:
        return None
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return None

    # Read-only inputs (memory maps) are declared; writable arrays convert to them: one compilation for both.
    def vector(dtype_name: str, readonly: bool = True) -> Any:
        return numba.types.Array(numba.from_dtype(np.dtype(dtype_name)), 1, "C", readonly=readonly)

    def results(key_name: str) -> list[Any]:
        return [numba.types.Array(numba.from_dtype(np.dtype(item)), 2, "C") for item in (key_name, "f8", "i8")]

    if name not in _FLOATS:
        return _compile(_compilable_int_rows(name), numba.void(vector(name), *results(name)))
    form = _FLOATS[name]
    key_name = np.dtype(form.key).name
    inputs = [vector(key_name), vector("float32" if form.shift else name), vector("uint32", readonly=False)]
    rows = _compile(_compilable_float_rows(form), numba.void(*inputs, *results(key_name)))

    def kernel(values: Array, extremes: Array, sums: Array, counts: Array) -> None:
        wide = np.empty(_BLOCK if form.shift else 0, np.uint32)
        floats = wide.view(np.float32) if form.shift else values
        rows(values.view(form.key), floats, wide, extremes, sums, counts)

    return kernel


def _compile(source: Callable[..., Any], signature: Any) -> Callable[..., Any]:
    import numba

    options: dict[str, Any] = {"nogil": True, "fastmath": {"reassoc", "contract", "nsz"}}
    try:
        return numba.njit(signature, cache=True, **options)(source)  # type: ignore[no-any-return]
    except (RuntimeError, OSError):
        # Nowhere to keep the machine code (read-only home, full disk): compile for this process alone.
        return numba.njit(signature, **options)(source)  # type: ignore[no-any-return]


def _compilable_float_rows(form: _FloatBits) -> Callable[..., None]:
    """Two loops over each block: keys first, which tell whether the sums must look out for NaN and Inf.

    `floats` is the tensor itself or, for 16-bit floats, one block of scratch that is filled through `wide`.
    """
    key: Any = form.key
    one, largest, smallest = key(1), key(np.iinfo(key).max), key(np.iinfo(key).min)
    shift = key(8 * np.dtype(key).itemsize - 1)
    infinity, minus_infinity, minus_one, none = key(form.infinity), key(~form.infinity), key(-1), key(0)
    is_half, half_shift, scale = bool(form.shift), form.shift, form.scale

    def fill_rows(bits: Any, floats: Any, wide: Any, extremes: Any, sums: Any, counts: Any) -> None:
        for row in range(extremes.shape[0]):
            end = min(bits.shape[0], (row + 1) * _CHUNK)
            top, low = smallest, largest
            total = squares = np.float64(0.0)
            negative, zero, nan, negative_inf, positive_inf = 0, 0, 0, 0, 0
            for start in range(row * _CHUNK, end, _BLOCK):
                # Slices, because the compiler must see that no index is negative to vectorise.
                block = bits[start : min(end, start + _BLOCK)]
                first = 0 if is_half else start
                values = floats[first : first + block.shape[0]]
                if is_half:
                    for i in range(block.shape[0]):
                        half = np.uint32(block[i])
                        magnitude_bits = np.uint32(np.uint32(half & np.uint32(0x7FFF)) << np.uint32(half_shift))
                        wide[i] = magnitude_bits | np.uint32(np.uint32(half & np.uint32(0x8000)) << np.uint32(16))
                block_top, block_low, below, zeros = smallest, largest, none, none
                for i in range(block.shape[0]):
                    k = key(block[i] ^ key(key(block[i] >> shift) & largest))
                    block_top, block_low = max(block_top, k), min(block_low, k)
                    below = key(below + key(k < minus_one))
                    zeros = key(zeros + key(key(block[i] & largest) == none))
                block_sum = block_squares = np.float64(0.0)
                if block_top < infinity and block_low > minus_infinity:
                    for i in range(values.shape[0]):
                        value = np.float64(values[i])
                        block_sum += value
                        block_squares += value * value
                else:
                    block_top, block_low, below = smallest, largest, none
                    nans, at_minus_inf, at_inf = none, none, none
                    for i in range(block.shape[0]):
                        k = key(block[i] ^ key(key(block[i] >> shift) & largest))
                        magnitude = key(block[i] & largest)
                        block_top = max(block_top, k if magnitude < infinity else smallest)
                        block_low = min(block_low, k if magnitude < infinity else largest)
                        below = key(below + (one if k < minus_one and magnitude < infinity else none))
                        nans = key(nans + key(magnitude > infinity))
                        at_minus_inf = key(at_minus_inf + key(k == minus_infinity))
                        at_inf = key(at_inf + key(k == infinity))
                    for i in range(block.shape[0]):
                        value = np.float64(values[i]) if key(block[i] & largest) < infinity else np.float64(0.0)
                        block_sum += value
                        block_squares += value * value
                    nan, negative_inf, positive_inf = nan + nans, negative_inf + at_minus_inf, positive_inf + at_inf
                negative, zero = negative + below, zero + zeros
                top, low = max(top, block_top), min(low, block_low)
                total, squares = total + block_sum, squares + block_squares
            extremes[row, 0], extremes[row, 1] = top, low
            sums[row, 0], sums[row, 1] = total * scale, squares * scale * scale
            counts[row, 0], counts[row, 1], counts[row, 2] = negative, zero, nan
            counts[row, 3], counts[row, 4] = negative_inf, positive_inf

    return fill_rows


def _compilable_int_rows(dtype_name: str) -> Callable[..., None]:
    key: Any = np.dtype(dtype_name).type
    largest, smallest, none = key(np.iinfo(key).max), key(np.iinfo(key).min), key(0)

    def fill_rows(values: Any, extremes: Any, sums: Any, counts: Any) -> None:
        for row in range(extremes.shape[0]):
            end = min(values.shape[0], (row + 1) * _CHUNK)
            chunk = values[row * _CHUNK : end]
            top, low = smallest, largest
            total = squares = np.float64(0.0)
            negative, zero = np.int32(0), np.int32(0)
            for i in range(chunk.shape[0]):
                top = max(top, chunk[i])
                low = min(low, chunk[i])
                negative = np.int32(negative + np.int32(chunk[i] < none))
                zero = np.int32(zero + np.int32(chunk[i] == none))
            for i in range(chunk.shape[0]):
                value = np.float64(chunk[i])
                total += value
                squares += value * value
            extremes[row, 0], extremes[row, 1] = top, low
            sums[row, 0], sums[row, 1] = total, squares
            counts[row, 0], counts[row, 1], counts[row, 2] = negative, zero, 0
            counts[row, 3], counts[row, 4] = 0, 0

    return fill_rows


@functools.cache
def _compiled_search(name: str) -> Callable[[Array], bool] | None:
    """Whether the exponent of any element has all its bits set; None when there is no compiler."""
    try:
        import numba
    except ImportError:
        return None
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return None
    form = _FLOATS[name]
    vector = numba.types.Array(numba.from_dtype(form.unsigned), 1, "C", readonly=True)
    return _compile(_compilable_search(form), numba.boolean(vector))


def _compilable_search(form: _FloatBits) -> Callable[[Any], bool]:
    """One added to the last bit of an exponent reaches the sign only if all bits of it are set: no branch per value."""
    key: Any = form.unsigned.type
    largest = key(np.iinfo(form.key).max)
    step, sign, none = key(int(largest) + 1 - form.infinity), key(int(largest) + 1), key(0)

    def search(bits: Any) -> bool:
        for start in range(0, bits.shape[0], _SEARCH_BLOCK):
            block = bits[start : min(bits.shape[0], start + _SEARCH_BLOCK)]
            found = none
            for i in range(block.shape[0]):
                found = key(found | key(key(block[i] & largest) + step))
            if found & sign:
                return True
        return False

    return search

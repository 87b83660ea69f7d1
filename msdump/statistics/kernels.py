"""Kernels of the one-pass statistics and of the search for values that are not finite: numpy's and compiled ones.

Floats are ordered through their bits: compilers vectorise the maximum of integers, not that of floats. 16-bit floats
are widened block by block, never as a whole. All kernels fill the same partial results, one row per chunk.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from msdump.tensors import dtypes
from msdump.tensors.arrays import Array
from msdump.tensors.compiling import array_type, compiled, has_compiler
from msdump.tensors.float_bits import FLOATS, FloatBits, keys_of, widened

CHUNK = 1 << 16  # elements per row of partial results
SEARCH_BLOCK = 8192  # elements between two looks at whether the search is over
SMALL_BYTES = 64 << 10  # up to here numpy is as good as the import of a compiler

# Fills (extremes, sums, counts), one row per chunk of `values`.
RowKernel = Callable[[Array, Array, Array, Array], None]
# The same of segments, whose starts and whose end come behind `values`.
SegmentKernel = Callable[[Array, Array, Array, Array, Array], None]


@functools.cache
def row_kernel(name: str, is_small: bool) -> RowKernel:
    """Kernel for a float of `FLOATS` or an integer of at least a byte."""
    compiled = None if is_small else compiled_rows(name)
    if compiled is not None:
        return compiled
    return float_rows(name) if name in FLOATS else int_rows()


# -- kernels: numpy ------------------------------------------------------------------------------------------------


def float_rows(name: str) -> RowKernel:
    # Scalars of the keys' own type: numpy takes twice as long to find out what a Python number fits.
    key: Any = np.dtype(FLOATS[name].key).type
    infinity, largest, smallest = FLOATS[name].infinity, key(np.iinfo(FLOATS[name].key).max), np.iinfo(key).min
    minus_one = key(-1)
    highest, lowest, total = np.maximum.reduce, np.minimum.reduce, np.add.reduce

    def fill_row(values: Array, extremes: Array, sums: Array, counts: Array) -> None:
        bits = values.view(key)
        keys = keys_of(bits)
        top, low = highest(keys), lowest(keys)
        nan = negative_inf = positive_inf = np.intp(0)
        zero = keys.size - np.count_nonzero(bits & largest)
        if top >= infinity or low <= ~infinity:
            is_finite = (keys > ~infinity) & (keys < infinity)
            negative_inf, positive_inf = np.count_nonzero(keys == ~infinity), np.count_nonzero(keys == infinity)
            values, keys = values[is_finite], keys[is_finite]
            nan = bits.size - keys.size - negative_inf - positive_inf
            top, low = (highest(keys), lowest(keys)) if keys.size else (smallest, largest)
        wide = widened(values)
        extremes[:] = top, low
        sums[:] = total(wide), total(np.square(wide, out=wide))
        counts[:] = np.count_nonzero(keys < minus_one), zero, nan, negative_inf, positive_inf

    return _by_chunk(fill_row)


def int_rows() -> RowKernel:
    def fill_row(values: Array, extremes: Array, sums: Array, counts: Array) -> None:
        wide = values.astype(np.float64)
        counts[:] = 0
        counts[0] = np.count_nonzero(values < 0)
        counts[1] = values.size - np.count_nonzero(values)
        extremes[:] = values.max(), values.min()
        sums[:] = wide.sum(), np.square(wide, out=wide).sum()

    return _by_chunk(fill_row)


def _by_chunk(fill_row: RowKernel) -> RowKernel:
    def kernel(values: Array, extremes: Array, sums: Array, counts: Array) -> None:
        if len(extremes) == 1:
            fill_row(values, extremes[0], sums[0], counts[0])
            return
        for index in range(len(extremes)):
            chunk = values[index * CHUNK : (index + 1) * CHUNK]
            fill_row(chunk, extremes[index], sums[index], counts[index])

    return kernel


def plain_search(flat: Array, name: str) -> bool:
    """`has_non_finite` by numpy, chunk by chunk."""
    if name in ("float32", "float64"):
        return any(not np.isfinite(flat[at : at + CHUNK]).all() for at in range(0, flat.size, CHUNK))
    form = FLOATS[name]
    bits, largest = flat.view(form.key), np.iinfo(form.key).max
    return any((bits[at : at + CHUNK] & largest).max() >= form.infinity for at in range(0, flat.size, CHUNK))


# Floats of at most a byte: bits that tell the magnitude, and the smallest magnitude that is Inf, NaN or saturated.
_BYTE_FLOATS = {
    "float8_e5m2": (0x7F, 0x7C),
    "float8_e4m3fn": (0x7F, 0x7E),
    "float8_e8m0": (0xFF, 0xFE),
    "float6_e3m2": (0x1F, 0x1F),
    "float6_e2m3": (0x1F, 0x1F),
    "float4_e2m1": (0x07, 0x07),
}


def largest_of_byte_float(row: dtypes.Dtype) -> float:
    """The smallest value that `byte_search` finds; Inf where the dtype has one."""
    _, first = _BYTE_FLOATS[row.name]
    return float(np.array([first], np.uint8).view(row.numpy)[0])


def byte_search(codes: Array, row: dtypes.Dtype) -> bool:
    for at in range(0, codes.size, CHUNK):
        chunk = codes[at : at + CHUNK]
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


def compiled_rows(name: str) -> RowKernel | None:
    """Machine code, from the cache on disk if there is one; None when there is no compiler."""
    if not has_compiler():
        return None
    import numba

    if name not in FLOATS:
        results = [array_type(item, readonly=False, ndim=2) for item in (name, "f8", "i8")]
        return compiled(_compilable_int_rows(name), numba.void(array_type(name), *results))
    segments = compiled_segments(name)
    assert segments is not None

    def kernel(values: Array, extremes: Array, sums: Array, counts: Array) -> None:
        starts = np.arange(0, (len(extremes) + 1) * CHUNK, CHUNK)
        starts[-1] = values.size
        segments(values, starts, extremes, sums, counts)

    return kernel


@functools.cache
def compiled_segments(name: str) -> SegmentKernel | None:
    """Machine code for a float of `FLOATS`, one row for each segment; None when there is no compiler."""
    if not has_compiler():
        return None
    import numba

    from msdump.statistics.lanes import PIECE, compilable_float_rows

    form = FLOATS[name]
    key_name = np.dtype(form.key).name
    inputs = [
        *[array_type(key_name)] * 2,
        numba.from_dtype(np.dtype(key_name)),
        array_type("float32" if form.shift else name),
        array_type("uint32", readonly=False),
    ]
    results = [array_type(item, readonly=False, ndim=2) for item in (key_name, "f8", "i8")]
    fill = compiled(compilable_float_rows(form), numba.void(*inputs, array_type("int64"), *results))

    no_scratch = np.empty(0, np.uint32)

    def kernel(values: Array, starts: Array, extremes: Array, sums: Array, counts: Array) -> None:
        wide = np.empty(PIECE, np.uint32) if form.shift else no_scratch
        floats = wide.view(np.float32) if form.shift else values
        bits = values.view(form.key)
        fill(bits, bits, 1, floats, wide, starts, extremes, sums, counts)

    return kernel


def _compilable_int_rows(dtype_name: str) -> Callable[..., None]:
    key: Any = np.dtype(dtype_name).type
    largest, smallest, none = key(np.iinfo(key).max), key(np.iinfo(key).min), key(0)

    def fill_rows(values: Any, extremes: Any, sums: Any, counts: Any) -> None:
        for row in range(extremes.shape[0]):
            end = min(values.shape[0], (row + 1) * CHUNK)
            chunk = values[row * CHUNK : end]
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
def compiled_search(name: str) -> Callable[[Array], bool] | None:
    """Whether the exponent of any element has all its bits set; None when there is no compiler."""
    if not has_compiler():
        return None
    import numba

    return compiled(_compilable_search(FLOATS[name]), numba.boolean(array_type(np.dtype(FLOATS[name].unsigned).name)))


def _compilable_search(form: FloatBits) -> Callable[[Any], bool]:
    """One added to the last bit of an exponent reaches the sign only if all bits of it are set: no branch per value."""
    key: Any = form.unsigned.type
    largest = key(np.iinfo(form.key).max)
    step, sign, none = key(int(largest) + 1 - form.infinity), key(int(largest) + 1), key(0)

    def search(bits: Any) -> bool:
        for start in range(0, bits.shape[0], SEARCH_BLOCK):
            block = bits[start : min(bits.shape[0], start + SEARCH_BLOCK)]
            found = none
            for i in range(block.shape[0]):
                found = key(found | key(key(block[i] & largest) + step))
            if found & sign:
                return True
        return False

    return search

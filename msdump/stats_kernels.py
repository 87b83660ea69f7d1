"""Kernels of the one-pass statistics and of the search for values that are not finite: numpy's and compiled ones.

Floats are ordered through their bits: compilers vectorise the maximum of integers, not that of floats. 16-bit floats
are widened block by block, never as a whole. All kernels fill the same partial results, one row per chunk.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from msdump import dtypes
from msdump.arrays import Array

CHUNK = 1 << 16  # elements per row of partial results
BLOCK = 2048  # elements that a kernel visits twice; they stay in the first-level cache
SEARCH_BLOCK = 8192  # elements between two looks at whether the search is over
SMALL_BYTES = 64 << 10  # up to here numpy is as good as the import of a compiler

# Fills (extremes, sums, counts), one row per chunk of `values`.
RowKernel = Callable[[Array, Array, Array, Array], None]
# The same of segments, whose starts and whose end come behind `values`.
SegmentKernel = Callable[[Array, Array, Array, Array, Array], None]


@dataclass(frozen=True, slots=True)
class FloatBits:
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


FLOATS = {
    "float16": FloatBits(np.int16, 0x7C00, 13, 2.0**112),
    "bfloat16": FloatBits(np.int16, 0x7F80, 16),
    "float32": FloatBits(np.int32, 0x7F800000),
    "float64": FloatBits(np.int64, 0x7FF << 52),
}


@functools.cache
def row_kernel(name: str, is_small: bool) -> RowKernel:
    """Kernel for a float of `FLOATS` or an integer of at least a byte."""
    compiled = None if is_small else compiled_rows(name)
    if compiled is not None:
        return compiled
    return float_rows(name) if name in FLOATS else int_rows()


def keys_of(bits: Array) -> Array:
    """Keys that sort as the floats of these bits, of the same signed integers; its own inverse.   Shapes: any."""
    shift, largest = _KEY_SCALARS[bits.itemsize]
    keys: Array = bits >> shift
    keys &= largest
    keys ^= bits
    return keys


# By bytes: the shift that leaves the sign, and all bits but the sign. They are scalars of the keys' own type: numpy
# takes twice as long to find out what a Python number fits.
_KEY_SCALARS: dict[int, tuple[Any, Any]] = {
    form.unsigned.itemsize: (form.key(8 * form.unsigned.itemsize - 1), form.key(np.iinfo(form.key).max))
    for form in FLOATS.values()
}


def values_of_keys(keys: Array, dtype: np.dtype[Any]) -> Array:
    """The floats that sort as these keys, in float64; 0 for both zeros."""
    values: Array = keys_of(keys).view(dtype).astype(np.float64)
    values += 0.0
    return values


def widened(values: Array) -> Array:
    """A copy of floats in float64."""
    # numpy takes half the time for 16-bit floats this way.
    return values.astype(np.float32).astype(np.float64) if values.itemsize == 2 else values.astype(np.float64)


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

    form = FLOATS[name]
    key_name = np.dtype(form.key).name
    inputs = [array_type(key_name), array_type("float32" if form.shift else name), array_type("uint32", readonly=False)]
    results = [array_type(item, readonly=False, ndim=2) for item in (key_name, "f8", "i8")]
    fill = compiled(_compilable_float_rows(form), numba.void(*inputs, array_type("int64"), *results))

    no_scratch = np.empty(0, np.uint32)

    def kernel(values: Array, starts: Array, extremes: Array, sums: Array, counts: Array) -> None:
        wide = np.empty(BLOCK, np.uint32) if form.shift else no_scratch
        floats = wide.view(np.float32) if form.shift else values
        fill(values.view(form.key), floats, wide, starts, extremes, sums, counts)

    return kernel


def has_compiler() -> bool:
    """False without numba, and where it is switched off."""
    try:
        import numba
    except ImportError:
        return False
    return not numba.config.DISABLE_JIT  # type: ignore[attr-defined]


def compiled(source: Callable[..., Any], signature: Any, **options: Any) -> Callable[..., Any]:
    """Machine code of loops over blocks, kept on disk for the next process."""
    import numba

    options = {"nogil": True, "fastmath": {"reassoc", "contract", "nsz"}, **options}
    try:
        return numba.njit(signature, cache=True, **options)(source)  # type: ignore[no-any-return]
    except (RuntimeError, OSError):
        # Nowhere to keep the machine code (read-only home, full disk): compile for this process alone.
        return numba.njit(signature, **options)(source)  # type: ignore[no-any-return]


def array_type(dtype_name: str, readonly: bool = True, ndim: int = 1) -> Any:
    """numba's type of a C-contiguous array of that dtype.

    Read-only inputs (memory maps) are declared; writable arrays convert to them: one compilation for both.
    """
    import numba

    return numba.types.Array(numba.from_dtype(np.dtype(dtype_name)), ndim, "C", readonly=readonly)


def _compilable_float_rows(form: FloatBits) -> Callable[..., None]:
    """Two loops over each block: keys first, which tell whether the sums must look out for NaN and Inf.

    A row is that of the elements from one of `starts` to the next.
    `floats` is the tensor itself or, for 16-bit floats, one block of scratch that is filled through `wide`.
    """
    key: Any = form.key
    one, largest, smallest = key(1), key(np.iinfo(key).max), key(np.iinfo(key).min)
    shift = key(8 * np.dtype(key).itemsize - 1)
    infinity, minus_infinity, minus_one, none = key(form.infinity), key(~form.infinity), key(-1), key(0)
    is_half, half_shift, scale = bool(form.shift), form.shift, form.scale

    def fill_rows(bits: Any, floats: Any, wide: Any, starts: Any, extremes: Any, sums: Any, counts: Any) -> None:
        for row in range(extremes.shape[0]):
            end = starts[row + 1]
            top, low = smallest, largest
            total = squares = np.float64(0.0)
            negative, zero, nan, negative_inf, positive_inf = 0, 0, 0, 0, 0
            for start in range(starts[row], end, BLOCK):
                # Slices, because the compiler must see that no index is negative to vectorise.
                block = bits[start : min(end, start + BLOCK)]
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

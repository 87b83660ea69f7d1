"""Partial results of two flat tensors, one row per chunk: the pass over the bytes behind every metric.

Both sides are read as float32, because the metrics are defined on float32; sums are accumulated in float64. Large
tensors run through numba, tiny ones through numpy; both fill the same rows, which makes the result independent of the
number of threads. Chunks that hold a NaN, an Inf or a number that float32 cannot hold are measured once more by numpy.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from msdump.statistics.stats import in_threads
from msdump.tensors.arrays import Array
from msdump.tensors.compiling import array_type, compiled, has_compiler

if TYPE_CHECKING:
    from numba.core.typing.templates import Signature

CHUNK = 1 << 16  # elements per row
_BLOCK = 2048  # elements that a kernel visits several times; they stay in the first-level cache
_SMALL_COUNT = 1 << 15  # up to here numpy is as good as the import of a compiler
_THREADED_COUNT = 1 << 20  # from here on a second thread earns its start

# Where |y| is no larger, the relative error counts as 0.   Source: msaccucmp, np.finfo(float64).eps.
EPSILON = 2.220446049250313e-16
# What the scaled values of the divergence are raised to: np.finfo(float32).eps.
FLOOR = 1.1920928955078125e-07
_LN2 = math.log(2.0)

# Columns of the rows of sums. XX... are sums of squares, SPREAD those of the squares of the distance to the mean.
X, X_SPREAD, XX, Y, Y_SPREAD, YY, XY, DD, D, R = range(10)
# Of the rows of largest and smallest values. The first four are keys that sort like float32; they are filled when the
# range is asked for, or when a value is not finite. The others are bits of absolute values.
TOP_X, LOW_X, TOP_Y, LOW_Y, WORST_D, WORST_R, LARGEST_Y = range(7)
# A spread that is so small a part of the squares was lost in rounding, and is computed again.
_LOST = 1e-7
# Of the rows of exact results: they count elements as they are, not as float32, and leave out non-finite ones.
E_DD, E_YY, E_WORST, E_TOP, E_UNEQUAL, NAN_X, INF_X, NAN_Y, INF_Y, E_MISMATCH = range(10)


@dataclass(frozen=True, slots=True)
class PairRows:
    """sums, keys and exact results, one row per chunk of `size` elements in all; `is_whole` for integers and bools."""

    size: int
    is_whole: bool
    sums: Array
    keys: Array
    exact: Array


def pair_rows(mine: Array, golden: Array, has_range: bool, thread_count: int = 1) -> PairRows:
    """Rows of two flat arrays of one size, at least one element, of any numeric dtype.

    has_range   also the largest and smallest values of both sides
    """
    row_count = -(-mine.size // CHUNK)
    sums = np.zeros((row_count, 10))
    keys = np.zeros((row_count, 7), np.int32)
    exact = np.zeros((row_count, 10))
    fill = _fill(mine.size <= _SMALL_COUNT)

    def work(first: int, last: int) -> None:
        widen = _Widen(mine.dtype), _Widen(golden.dtype)
        with np.errstate(all="ignore"):
            for row in range(first, last):
                part = slice(row * CHUNK, (row + 1) * CHUNK)
                x, y = mine[part], golden[part]
                a, b = widen[0](x), widen[1](y)
                fill(a, b, sums[row], keys[row])
                if has_range or not (math.isfinite(sums[row, XX]) and math.isfinite(sums[row, YY])):
                    _fill_range(a, b, keys[row])
                _mend_spreads(a, b, sums[row])
                _fill_exact(x, y, sums[row], keys[row], exact[row])

    in_threads(work, row_count, thread_count if mine.size >= _THREADED_COUNT else 1)
    is_whole = mine.dtype.kind in "iub" and golden.dtype.kind in "iub"
    return PairRows(int(mine.size), is_whole, sums, keys, exact)


def divergence_rows(
    mine: Array, golden: Array, lows: tuple[float, float], ranges: tuple[float, float], thread_count: int = 1
) -> Array:
    """Per chunk: sum of u, sum of v, sum of u ln(u / v), where u and v are the scaled and floored values.

    lows, ranges   smallest value and extent of each side; a range of 0 leaves that side as it is
    """
    row_count = -(-mine.size // CHUNK)
    rows = np.zeros((row_count, 3))
    fill = _divergence(mine.size <= _SMALL_COUNT)
    bounds = [np.float32(low if extent else 0.0) for low, extent in zip(lows, ranges, strict=True)]
    extents = [np.float32(extent or 1.0) for extent in ranges]

    def work(first: int, last: int) -> None:
        widen = _Widen(mine.dtype), _Widen(golden.dtype)
        with np.errstate(all="ignore"):
            for row in range(first, last):
                part = slice(row * CHUNK, (row + 1) * CHUNK)
                x, y = widen[0](mine[part]), widen[1](golden[part])
                fill(x, y, bounds[0], extents[0], bounds[1], extents[1], rows[row : row + 1])

    in_threads(work, row_count, thread_count if mine.size >= _THREADED_COUNT else 1)
    return rows


def value_of_key(key: int) -> float:
    """float32 value of a key."""
    bits = np.array([key], np.int32)
    bits ^= (bits >> 31) & 0x7FFFFFFF
    return float(bits.view(np.float32)[0])


# -- the elements as they are --------------------------------------------------------------------------------------


def _fill_range(x: Array, y: Array, keys: Array) -> None:
    """Largest and smallest values of a chunk; NaNs lie outside the infinities."""
    fill = _compiled_range() if x.size > _BLOCK else None
    for side, (top, low) in ((x, (TOP_X, LOW_X)), (y, (TOP_Y, LOW_Y))):
        bits = side.view(np.int32)
        if fill is not None:
            fill(bits, keys[top : low + 1])
        else:
            side_keys = bits ^ ((bits >> 31) & 0x7FFFFFFF)
            keys[top], keys[low] = side_keys.max(), side_keys.min()


def _mend_spreads(x: Array, y: Array, sums: Array) -> None:
    """Sums of squared distances to the mean where the difference of two large sums has lost them."""
    for side, total, spread, squares in ((x, X, X_SPREAD, XX), (y, Y, Y_SPREAD, YY)):
        if sums[spread] < _LOST * sums[squares]:
            moved = side - sums[total] / side.size
            sums[spread] = np.einsum("i,i->", moved, moved)


def _fill_exact(x: Array, y: Array, sums: Array, keys: Array, exact: Array) -> None:
    """Exact results of one chunk; those of narrow finite floats follow from the float32 rows."""
    kinds = {x.dtype.kind, y.dtype.kind}
    if "c" in kinds or not (math.isfinite(sums[XX]) and math.isfinite(sums[YY])):
        _fill_exact_finite_only(x, y, np.complex128 if "c" in kinds else np.float64, exact)
        return
    if kinds <= {"f", "V"} and max(x.itemsize, y.itemsize) <= 4:
        exact[E_DD], exact[E_YY], exact[E_TOP] = sums[DD], sums[YY], value_of_key(int(keys[LARGEST_Y]))
        exact[E_WORST] = value_of_key(int(keys[WORST_D]))
        return
    if kinds <= {"i", "u", "b"}:
        exact[E_UNEQUAL] = np.count_nonzero(x != y)
    a, b = x.astype(np.float64, copy=False), y.astype(np.float64, copy=False)
    distance = np.subtract(a, b)
    np.abs(distance, out=distance)
    exact[E_DD], exact[E_YY] = np.einsum("i,i->", distance, distance), np.einsum("i,i->", b, b)
    exact[E_WORST], exact[E_TOP] = distance.max(), max(b.max(), -b.min())


def _fill_exact_finite_only(x: Array, y: Array, wide: type[np.float64 | np.complex128], exact: Array) -> None:
    """Count what is not finite; measure where both sides are."""
    a, b = x.astype(wide), y.astype(wide)
    finite_x, finite_y = np.isfinite(a), np.isfinite(b)
    exact[NAN_X], exact[NAN_Y] = np.count_nonzero(np.isnan(a)), np.count_nonzero(np.isnan(b))
    exact[INF_X] = a.size - np.count_nonzero(finite_x) - exact[NAN_X]
    exact[INF_Y] = b.size - np.count_nonzero(finite_y) - exact[NAN_Y]
    both = finite_x & finite_y
    exact[E_MISMATCH] = np.count_nonzero(~both & ~((a == b) | (np.isnan(a) & np.isnan(b))))
    distance, size = np.abs(a[both] - b[both]), np.abs(b[both])
    exact[E_DD], exact[E_YY] = np.square(distance).sum(), np.square(size).sum()
    exact[E_WORST], exact[E_TOP] = distance.max(initial=0.0), size.max(initial=0.0)


class _Widen:
    """Chunks of one tensor as float32; the result is valid until the next call."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self._is_plain = dtype == np.float32
        self._is_half = dtype == np.float16
        self._block = np.empty(0 if self._is_plain else CHUNK, np.float32)

    def __call__(self, chunk: Array) -> Array:
        if self._is_plain:
            return chunk
        block = self._block[: chunk.size]
        half = _widen_half() if self._is_half and chunk.size > _BLOCK else None
        if half is not None:
            half(chunk.view(np.uint16), block, block.view(np.uint32))
        elif chunk.dtype.kind == "c":
            block[:] = chunk.real
        else:
            block[:] = chunk
        return block


# -- numpy ---------------------------------------------------------------------------------------------------------

_Fill = Callable[[Array, Array, Array, Array], None]
_FillDivergence = Callable[[Array, Array, np.float32, np.float32, np.float32, np.float32, Array], None]


def _fill(is_small: bool) -> _Fill:
    return (None if is_small else _compiled_fill()) or _plain_fill


def _divergence(is_small: bool) -> _FillDivergence:
    return (None if is_small else _compiled_divergence()) or _plain_divergence


def _plain_fill(x: Array, y: Array, row: Array, keys: Array) -> None:
    d = np.abs(x - y)
    r = np.where(np.abs(y) > np.float32(EPSILON), np.abs(x / y - np.float32(1)), np.float32(0))
    a, b = x.astype(np.float64), y.astype(np.float64)
    row[X], row[XX], row[Y], row[YY] = a.sum(), np.square(a).sum(), b.sum(), np.square(b).sum()
    row[X_SPREAD], row[Y_SPREAD] = row[XX] - row[X] * row[X] / x.size, row[YY] - row[Y] * row[Y] / x.size
    row[XY], row[DD] = (a * b).sum(), np.square(d.astype(np.float64)).sum()
    row[D], row[R] = d.sum(dtype=np.float64), r.sum(dtype=np.float64)
    keys[WORST_D], keys[WORST_R] = d.view(np.int32).max(), r.view(np.int32).max()
    keys[LARGEST_Y] = (y.view(np.int32) & 0x7FFFFFFF).max()


def _plain_divergence(
    x: Array, y: Array, low_x: np.float32, range_x: np.float32, low_y: np.float32, range_y: np.float32, rows: Array
) -> None:
    u = np.maximum((x - low_x) / range_x, np.float32(FLOOR)).astype(np.float64)
    v = np.maximum((y - low_y) / range_y, np.float32(FLOOR)).astype(np.float64)
    rows[0] = u.sum(), v.sum(), (u * np.log(u / v)).sum()


# -- numba ---------------------------------------------------------------------------------------------------------


def _compile(source: Callable[..., Any], signature: Signature) -> Callable[..., Any]:
    return compiled(source, signature, error_model="numpy")


@functools.cache
def _widen_half() -> Callable[[Array, Array, Array], None] | None:
    if not has_compiler():
        return None
    import numba

    signature = numba.void(array_type("uint16"), array_type("float32", False), array_type("uint32", False))
    return _compile(_compilable_half, signature)


def _compilable_half(bits: Array, floats: Array, wide: Array) -> None:
    """`wide` shows the bits of `floats`. Scaling by a power of two is exact, denormal numbers included."""
    for start in range(0, bits.shape[0], _BLOCK):
        block = bits[start : min(bits.shape[0], start + _BLOCK)]
        values, raw = floats[start : start + block.shape[0]], wide[start : start + block.shape[0]]
        for i in range(block.shape[0]):
            half = np.uint32(block[i])
            raw[i] = np.uint32((half & np.uint32(0x7FFF)) << np.uint32(13)) | np.uint32(
                (half & np.uint32(0x8000)) << np.uint32(16)
            )
        for i in range(block.shape[0]):
            values[i] = values[i] * np.float32(2.0**112)
        for i in range(block.shape[0]):
            half = np.uint32(block[i])
            special = (
                np.uint32(0x7F800000) if np.uint32(half & np.uint32(0x7FFF)) >= np.uint32(0x7C00) else np.uint32(0)
            )
            raw[i] = np.uint32(raw[i] | special)


@functools.cache
def _compiled_fill() -> _Fill | None:
    if not has_compiler():
        return None
    import numba

    side, bits = array_type("float32"), array_type("int32")
    scratch, scratch_bits = array_type("float32", False), array_type("int32", False)
    signature = numba.void(
        side,
        side,
        bits,
        scratch,
        scratch_bits,
        scratch,
        scratch_bits,
        array_type("float64", False),
        array_type("int32", False),
    )
    rows = _compile(_compilable_fill, signature)

    def fill(x: Array, y: Array, sums: Array, keys: Array) -> None:
        d, r = np.empty(_BLOCK, np.float32), np.empty(_BLOCK, np.float32)
        rows(x, y, y.view(np.int32), d, d.view(np.int32), r, r.view(np.int32), sums, keys)

    return fill


def _compilable_fill(
    x: Array, y: Array, y_bits: Array, d: Array, d_bits: Array, r: Array, r_bits: Array, sums: Array, keys: Array
) -> None:
    """Loops over each block: errors in float32, sums in float64, largest values as integers."""
    mask = np.int32(0x7FFFFFFF)
    sum_x = sum_y = sum_xx = sum_yy = sum_xy = np.float64(0.0)
    sum_dd = sum_d = sum_r = np.float64(0.0)
    worst_d = worst_r = largest_y = np.int32(0)
    for start in range(0, x.shape[0], _BLOCK):
        # Slices, because the compiler must see that no index is negative to vectorise.
        xs, ys = x[start : min(x.shape[0], start + _BLOCK)], y[start : min(x.shape[0], start + _BLOCK)]
        count = xs.shape[0]
        yb = y_bits[start : start + count]
        ds, rs, db, rb = d[:count], r[:count], d_bits[:count], r_bits[:count]
        for i in range(count):
            ds[i] = np.abs(xs[i] - ys[i])
            error = np.abs(xs[i] / ys[i] - np.float32(1.0))
            rs[i] = error if np.abs(ys[i]) > np.float32(EPSILON) else np.float32(0.0)
        for i in range(count):
            a, b = np.float64(xs[i]), np.float64(ys[i])
            sum_x += a
            sum_y += b
            sum_xx += a * a
            sum_yy += b * b
            sum_xy += a * b
        for i in range(count):
            error64, relative = np.float64(ds[i]), np.float64(rs[i])
            sum_d += error64
            sum_dd += error64 * error64
            sum_r += relative
        for i in range(count):
            worst_d, worst_r = max(worst_d, db[i]), max(worst_r, rb[i])
            largest_y = max(largest_y, np.int32(yb[i] & mask))
    size = np.float64(x.shape[0])
    sums[0], sums[1], sums[2] = sum_x, sum_xx - sum_x * sum_x / size, sum_xx
    sums[3], sums[4], sums[5] = sum_y, sum_yy - sum_y * sum_y / size, sum_yy
    sums[6], sums[7], sums[8], sums[9] = sum_xy, sum_dd, sum_d, sum_r
    keys[4], keys[5], keys[6] = worst_d, worst_r, largest_y


@functools.cache
def _compiled_range() -> Callable[[Array, Array], None] | None:
    if not has_compiler():
        return None
    import numba

    return _compile(_compilable_range, numba.void(array_type("int32"), array_type("int32", False)))


def _compilable_range(bits: Array, keys: Array) -> None:
    """Compilers vectorise the maximum of integers, not that of floats."""
    mask, sign = np.int32(0x7FFFFFFF), np.int32(31)
    top, low = np.int32(-0x80000000), np.int32(0x7FFFFFFF)
    for start in range(0, bits.shape[0], _BLOCK):
        block = bits[start : min(bits.shape[0], start + _BLOCK)]
        for i in range(block.shape[0]):
            key = np.int32(block[i] ^ np.int32(np.int32(block[i] >> sign) & mask))
            top, low = max(top, key), min(low, key)
    keys[0], keys[1] = top, low


@functools.cache
def _compiled_divergence() -> _FillDivergence | None:
    if not has_compiler():
        return None
    import numba

    side, scratch, bits = array_type("float32"), array_type("float32", False), array_type("int32", False)
    number = numba.float32
    signature = numba.void(
        side, side, number, number, number, number, scratch, scratch, bits, bits, array_type("float64", False, 2)
    )
    rows = _compile(_compilable_divergence, signature)

    def fill(
        x: Array, y: Array, low_x: np.float32, range_x: np.float32, low_y: np.float32, range_y: np.float32, out: Array
    ) -> None:
        u, w, exponents = np.empty(_BLOCK, np.float32), np.empty(_BLOCK, np.float32), np.empty(_BLOCK, np.int32)
        rows(x, y, low_x, range_x, low_y, range_y, u, w, w.view(np.int32), exponents, out)

    return fill


def _compilable_divergence(
    x: Array, y: Array, low_x: np.float32, range_x: np.float32, low_y: np.float32, range_y: np.float32,
    u: Array, w: Array, w_bits: Array, exponents: Array, rows: Array,
) -> None:  # fmt: skip
    """The logarithm is taken apart: exponent times ln 2, which is exact enough, and a polynomial of the mantissa."""
    floor = np.float32(FLOOR)
    sum_u = sum_v = total = np.float64(0.0)
    for start in range(0, x.shape[0], _BLOCK):
        xs, ys = x[start : min(x.shape[0], start + _BLOCK)], y[start : min(x.shape[0], start + _BLOCK)]
        count = xs.shape[0]
        us, ws, wb, es = u[:count], w[:count], w_bits[:count], exponents[:count]
        for i in range(count):
            a = (xs[i] - low_x) / range_x
            b = (ys[i] - low_y) / range_y
            a = a if a > floor else floor
            b = b if b > floor else floor
            us[i] = a
            ws[i] = a / b
            sum_u += np.float64(a)
            sum_v += np.float64(b)
        for i in range(count):
            # The mantissa is brought to [sqrt(1/2), sqrt(2)).
            moved = np.int32(wb[i] - np.int32(0x3F3504F3))
            exponent = np.int32(moved >> np.int32(23))
            es[i] = exponent
            wb[i] = np.int32(wb[i] - np.int32(exponent << np.int32(23)))
        for i in range(count):
            m = np.float64(ws[i]) - np.float64(1.0)
            s = m / (m + np.float64(2.0))
            z = s * s
            # ln((1 + s) / (1 - s)) = 2 (s + s^3/3 + s^5/5 + ...), |s| <= 0.1716
            series = np.float64(2.0 / 11.0)
            series = series * z + np.float64(2.0 / 9.0)
            series = series * z + np.float64(2.0 / 7.0)
            series = series * z + np.float64(2.0 / 5.0)
            series = series * z + np.float64(2.0 / 3.0)
            series = series * z + np.float64(2.0)
            total += np.float64(us[i]) * (series * s + np.float64(es[i]) * _LN2)
    rows[0, 0], rows[0, 1], rows[0, 2] = sum_u, sum_v, total

"""How the magnitudes of a tensor are spread: elements counted by sign and binary exponent.

The counts of two tensors of one dtype may be added, and they alone tell which share of a tensor a narrower dtype
would lose, without a second look at the elements.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from msdump.errors import DtypeError
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array

_CHUNK = 1 << 16  # elements; their keys stay in a core's cache


@dataclass(frozen=True, slots=True)
class ExponentHistogram:
    """Finite elements other than 0, by sign and exponent: counts[i] is of 2^(first+i) <= |x| < 2^(first+i+1).

    first      exponent of the first count; 0 where there are no counts
    positive, negative  of equal length; neither begins nor ends with 0 on both sides
    Edges: what is below the smallest normal number of float32 and float64 counts as one exponent, that below it.
    """

    first: int = 0
    positive: tuple[int, ...] = ()
    negative: tuple[int, ...] = ()

    @property
    def count(self) -> int:
        return sum(self.positive) + sum(self.negative)


def exponent_histogram(array: Array, dtype_name: str) -> ExponentHistogram | None:
    """Counts of the elements of an array of any shape; None for what has no order, such as complex and text.

    dtype_name  of the elements, as `dtypes.BY_NAME` has it; its layout must be that of `array`
    Edges: NaN, Inf and 0 are not counted; integers and bool by their absolute values.
    Raises: DtypeError for a dtype that is not known.
    """
    row = dtypes.BY_NAME.get(dtype_name)
    if row is None:
        raise DtypeError(f"exponents: expected a known dtype, got {dtype_name!r}.")
    flat = np.ascontiguousarray(array).reshape(-1)
    if row.is_float and flat.dtype.itemsize in (4, 8) and flat.dtype.kind == "f":
        return _of_wide_floats(flat.astype(flat.dtype.newbyteorder("="), copy=False))
    if flat.dtype.kind in "biu" and not row.is_float:
        return _of_integers(flat)
    return _of_codes(flat) if row.is_float and flat.dtype.itemsize in (1, 2) else None


def _of_wide_floats(flat: Array) -> ExponentHistogram:
    form = np.finfo(flat.dtype)
    codes = flat.view(f"u{flat.dtype.itemsize}")
    fields = 1 << (form.bits - 1 - form.nmant)
    counts = np.zeros(2 * fields, np.int64)
    zeros = np.zeros(2, np.int64)
    for start in range(0, codes.size, _CHUNK):
        part = codes[start : start + _CHUNK]
        found = np.bincount((part >> np.asarray(form.nmant, part.dtype)).astype(np.intp), minlength=2 * fields)
        counts += found
        if found[0]:
            zeros[0] += np.count_nonzero(part == 0)
        if found[fields]:
            zeros[1] += np.count_nonzero(part == np.asarray(1 << (form.bits - 1), part.dtype))
    by_sign = counts.reshape(2, fields)
    by_sign[:, 0] -= zeros
    return _trimmed(int(form.minexp) - 1, by_sign[0, :-1], by_sign[1, :-1])


def _of_codes(flat: Array) -> ExponentHistogram:
    """Floats of one or two bytes: each code is counted, and each counted code looked at once."""
    codes = flat.view(f"u{flat.dtype.itemsize}")
    counts = np.zeros(1 << (8 * flat.dtype.itemsize), np.int64)
    for start in range(0, codes.size, _CHUNK):
        counts += np.bincount(codes[start : start + _CHUNK].astype(np.intp), minlength=counts.size)
    (seen,) = np.nonzero(counts)
    with np.errstate(invalid="ignore"):
        values = seen.astype(codes.dtype).view(flat.dtype).astype(np.float64)
    return _of_values(values, counts[seen])


def _of_integers(flat: Array) -> ExponentHistogram:
    total = ExponentHistogram()
    for start in range(0, flat.size, _CHUNK):
        part = flat[start : start + _CHUNK]
        # longdouble would do for all 64 bits as well, but is a double on some machines: frexp of float64 may round up.
        values = part.astype(np.float64)
        near = np.abs(values) >= 2.0**53
        if near.any():
            exact = np.array([_power_below(int(value)) for value in part[near].tolist()])
            values[near] = exact
        total = merged(total, _of_values(values, np.ones(values.size, np.int64)))
    return total


def _power_below(value: int) -> float:
    """The power of two that is not above a value's magnitude, with its sign."""
    power = 2.0 ** (abs(value).bit_length() - 1)
    return -power if value < 0 else power


def _of_values(values: Array, weights: Array) -> ExponentHistogram:
    counted = np.isfinite(values) & (values != 0)
    values, weights = values[counted], weights[counted]
    if not values.size:
        return ExponentHistogram()
    exponents = np.frexp(values)[1].astype(np.int64) - 1
    first = int(exponents.min())
    size = int(exponents.max()) - first + 1
    sides = [
        np.bincount(exponents[side] - first, weights[side].astype(np.float64), size).astype(np.int64)
        for side in (values > 0, values < 0)
    ]
    return _trimmed(first, *sides)


def _trimmed(first: int, positive: Array, negative: Array) -> ExponentHistogram:
    (used,) = np.nonzero(positive + negative)
    if not used.size:
        return ExponentHistogram()
    begin, end = int(used[0]), int(used[-1]) + 1
    return ExponentHistogram(first + begin, tuple(positive[begin:end].tolist()), tuple(negative[begin:end].tolist()))


def merged(left: ExponentHistogram, right: ExponentHistogram) -> ExponentHistogram:
    """The histogram of the elements of both."""
    if not left.positive or not right.positive:
        return left if left.positive else right
    first = min(left.first, right.first)
    size = max(left.first + len(left.positive), right.first + len(right.positive)) - first
    sides = np.zeros((2, size), np.int64)
    for part in (left, right):
        columns = slice(part.first - first, part.first - first + len(part.positive))
        sides[:, columns] += np.array((part.positive, part.negative), np.int64)
    return _trimmed(first, *sides)

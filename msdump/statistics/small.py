"""Statistics of many small tensors of one dtype and one size, by a few calls of numpy for all of them.

A call of numpy costs a microsecond whatever it works on, and one small tensor takes some twenty of them. Rows of a
matrix share these calls. Nothing is compiled, and each row says what `statistics` says of it alone, to the last bit:
numpy adds up a row of a matrix as it adds up a tensor of that size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from msdump.statistics.stats import LEAST_SQUARES, MeasuredArray, Statistics, statistics
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array
from msdump.tensors.float_bits import FLOATS, keys_of, values_of_keys, widened
from msdump.tensors.makers import maker

LARGEST = 4096  # elements of a tensor from which on the calls cost little
_BLOCK = 1 << 15  # elements that are looked at together; their sums in float64 stay in the second-level cache
_statistics = maker(Statistics)
_DTYPE_BY_NAME = {
    row.name: row.numpy
    for row in dtypes.TABLE
    if row.name in FLOATS or (row.kind in (dtypes.INT, dtypes.UINT) and row.bits >= 8 and row.numpy_type is not None)
}


def is_small(array: Array, dtype_name: str) -> bool:
    """Whether `equal_statistics` takes the tensor."""
    wanted = _DTYPE_BY_NAME.get(dtype_name)
    return (
        wanted is not None
        and array.dtype == wanted
        and 0 < array.size <= LARGEST
        and array.flags.c_contiguous
        and not isinstance(array, MeasuredArray)
    )


def equal_statistics(arrays: Sequence[Array], dtype_name: str) -> list[Statistics]:
    """`statistics` of tensors that are small, all of this dtype and of one size, of any shapes."""
    if len(arrays) < 2:
        return [statistics(array, dtype_name) for array in arrays]
    size = arrays[0].size
    step = max(2, _BLOCK // size)
    results: list[Statistics] = []
    for start in range(0, len(arrays), step):
        part = arrays[start : start + step]
        matrix = np.concatenate([array.reshape(-1) for array in part]).reshape(len(part), size)
        with np.errstate(all="ignore"):
            results += _float_rows(matrix, part, dtype_name) if dtype_name in FLOATS else _int_rows(matrix)
    return results


def _float_rows(matrix: Array, arrays: Sequence[Array], name: str) -> Iterator[Statistics]:
    form = FLOATS[name]
    key = np.dtype(form.key).type
    bits = matrix.view(key)
    keys = keys_of(bits)
    highest, lowest = keys.max(axis=1), keys.min(axis=1)
    is_finite = (highest < form.infinity) & (lowest > ~form.infinity)
    tops, lows = (values_of_keys(ends, matrix.dtype) for ends in (highest, lowest))
    wide = widened(matrix)
    zeros = matrix.shape[1] - np.count_nonzero(bits & key(np.iinfo(key).max), axis=1)
    negatives = np.count_nonzero(keys < key(-1), axis=1)
    sums = wide.sum(axis=1)
    squares = np.square(wide, out=wide).sum(axis=1)
    if name == "float64":
        # Near the ends of the range sums must be scaled.
        is_finite &= (np.isfinite(squares) & (squares > LEAST_SQUARES)) | ((tops == 0) & (lows == 0))
    rows = _rows(matrix, tops, lows, sums, squares, negatives, zeros)
    if is_finite.all():
        return rows
    return (
        row if is_plain else statistics(array, name)
        for row, is_plain, array in zip(rows, is_finite.tolist(), arrays, strict=True)
    )


def _int_rows(matrix: Array) -> Iterator[Statistics]:
    wide = matrix.astype(np.float64)
    negatives = np.count_nonzero(matrix < 0, axis=1)
    zeros = matrix.shape[1] - np.count_nonzero(matrix, axis=1)
    sums = wide.sum(axis=1)
    squares = np.square(wide, out=wide).sum(axis=1)
    return _rows(matrix, matrix.max(axis=1), matrix.min(axis=1), sums, squares, negatives, zeros)


def _rows(
    matrix: Array, tops: Array, lows: Array, sums: Array, squares: Array, negatives: Array, zeros: Array
) -> Iterator[Statistics]:
    size, size_bytes = matrix.shape[1], matrix.shape[1] * matrix.itemsize
    columns = (tops, lows, sums / size + 0.0, np.sqrt(squares), negatives, size - negatives - zeros, zeros)
    for top, low, average, norm, negative, positive, zero in zip(*(column.tolist() for column in columns), strict=True):
        yield _statistics(top, low, average, norm, size, negative, positive, zero, 0, 0, 0, size_bytes)

"""Statistics and MD5 of many tensors at once: shares of the work that threads take in turn."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, wait
from dataclasses import dataclass
from functools import partial

import numpy as np

from msdump.errors import DtypeError
from msdump.process.termination import in_thread
from msdump.statistics.kernels import SMALL_BYTES
from msdump.statistics.md5 import md5_many
from msdump.statistics.stats import (
    LEAST_SQUARES,
    MeasuredArray,
    Statistics,
    can_be_joined,
    joined_statistics,
    statistics,
)
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array
from msdump.tensors.float_bits import FLOATS, keys_of, values_of_keys, widened
from msdump.tensors.makers import maker

# Tensors of one share of the statistics. Small ones cost what this many bytes cost.
_SHARE_BYTES = 4 << 20
_SMALL_BYTES = 16 << 10
# So many bytes of small tensors of all sizes are worth the import of a compiler; a larger tensor needs it anyway.
_JOINED_BYTES = 1 << 20
# So many tensors of one size are worth a matrix.
_FEW = 4
# A share of the digests fills the lanes of `md5_many` as long as its largest tensor takes.
_LANES = 12


@dataclass(frozen=True, slots=True)
class MeasuredTensor:
    """What a tensor holds. `numbers` is None for complex ones, which have no order; `md5` is empty where not wanted."""

    numbers: Statistics | None
    md5: str = ""


_measured = maker(MeasuredTensor)


def measure_all(
    arrays: Sequence[Array],
    dtype_names: Sequence[str],
    has_md5: bool = False,
    pool: Executor | None = None,
    thread_count: int = 1,
) -> list[MeasuredTensor]:
    """Statistics of each tensor and, where wanted, its MD5.

    pool    gives threads beside the caller's, which works as well; None: the caller's alone
    Dtypes: as `statistics`, and complex ones, which have no numbers.
    Raises: DtypeError. No thread reads the arrays any more when this returns, whatever happened.
    """
    numbers: list[Statistics | None] = [None] * len(arrays)
    digests = [""] * len(arrays)
    ways = _ways(arrays, dtype_names, may_join=True)

    def digest(indices: Sequence[int]) -> None:
        for tensor_index, text in zip(
            indices, md5_many([arrays[tensor_index] for tensor_index in indices]), strict=True
        ):
            digests[tensor_index] = text

    def measure(indices: Sequence[int]) -> None:
        for tensor_index, found in _statistics_of(indices, arrays, dtype_names, ways):
            if not isinstance(found, DtypeError):
                numbers[tensor_index] = found
            elif dtypes.dtype(dtype_names[tensor_index]).kind != dtypes.COMPLEX:
                raise found

    if pool is None:
        every = range(len(arrays))
        if has_md5:
            digest(every)
        measure(every)
    else:
        sizes = [int(array.nbytes) for array in arrays]
        # Digests first: their shares are the longest.
        shares = digest_shares(sizes, thread_count) if has_md5 else []
        tasks = [partial(digest, indices) for indices in shares]
        tasks += [partial(measure, indices) for indices in _statistic_shares(sizes)]
        _run_all(tasks, pool, thread_count)
    return list(map(_measured, numbers, digests))


def measure_each(arrays: Sequence[Array], dtype_names: Sequence[str]) -> list[Statistics | DtypeError]:
    """`statistics` of each tensor, to the last bit, or why it has none; by the calling thread."""
    ways = _ways(arrays, dtype_names, may_join=False)
    found = dict(_statistics_of(range(len(arrays)), arrays, dtype_names, ways))
    return [found[tensor_index] for tensor_index in range(len(arrays))]


# How a tensor is measured: with others of one dtype and size, with others of one dtype, or (None) by itself.
_Way = tuple[str, int] | str | None


def _ways(arrays: Sequence[Array], dtype_names: Sequence[str], may_join: bool) -> list[_Way]:
    """Decided for all at once: which kernel a tensor gets must not depend on how they are cut into shares.

    may_join   compiled code may measure tensors of several sizes together, whose sums then differ in their last bits
    """
    kinds = [
        (name, array.size) if is_small(array, name) else None for array, name in zip(arrays, dtype_names, strict=True)
    ]
    times = Counter(kinds)
    ways: list[_Way] = [kind if kind is not None and times[kind] >= _FEW else None for kind in kinds]
    others = [array.nbytes for array, way in zip(arrays, ways, strict=True) if way is None]
    if may_join and (max(others, default=0) > SMALL_BYTES or sum(others) > _JOINED_BYTES):
        for tensor_index, (array, name) in enumerate(zip(arrays, dtype_names, strict=True)):
            if ways[tensor_index] is None and can_be_joined(array, name):
                ways[tensor_index] = name
    return ways


def _statistics_of(
    indices: Sequence[int], arrays: Sequence[Array], dtype_names: Sequence[str], ways: Sequence[_Way]
) -> Iterator[tuple[int, Statistics | DtypeError]]:
    together: dict[tuple[str, int] | str, list[int]] = {}
    for tensor_index in indices:
        way = ways[tensor_index]
        if way is not None:
            together.setdefault(way, []).append(tensor_index)
            continue
        try:
            yield tensor_index, statistics(arrays[tensor_index], dtype_names[tensor_index])
        except DtypeError as error:
            yield tensor_index, error
    for way, some in together.items():
        measure = joined_statistics if isinstance(way, str) else equal_statistics
        yield from zip(
            some, measure([arrays[tensor_index] for tensor_index in some], dtype_names[some[0]]), strict=True
        )


def digest_shares(sizes: Sequence[int], thread_count: int) -> list[list[int]]:
    """Places of the tensors of each share: as many shares as keep their lanes busy, the largest tensors dealt out."""
    if not sizes:
        return []
    count = max(1, min(thread_count, sum(sizes) // (_LANES * max(1, max(sizes)))))
    shares: list[list[int]] = [[] for _ in range(count)]
    filled = [0] * count
    for tensor_index in sorted(range(len(sizes)), key=lambda tensor_index: -sizes[tensor_index]):
        least = filled.index(min(filled))
        shares[least].append(tensor_index)
        filled[least] += sizes[tensor_index]
    return shares


def _statistic_shares(sizes: Sequence[int]) -> Iterator[list[int]]:
    share: list[int] = []
    filled = 0
    for tensor_index, size in enumerate(sizes):
        share.append(tensor_index)
        filled += max(size, _SMALL_BYTES)
        if filled >= _SHARE_BYTES:
            yield share
            share, filled = [], 0
    if share:
        yield share


def _run_all(tasks: Sequence[Callable[[], None]], pool: Executor, thread_count: int) -> None:
    """Run tasks in the caller's thread and in others; after a failure none is begun."""
    waiting = deque(tasks)

    def work() -> None:
        try:
            while waiting:
                waiting.popleft()()
        except IndexError:  # another thread took the last one
            return
        except BaseException:
            waiting.clear()
            raise

    helpers = [in_thread(pool, work) for _ in range(min(thread_count, len(tasks)) - 1)]
    try:
        work()
    finally:
        waiting.clear()
        wait(helpers)
    for helper in helpers:
        helper.result()


# -- small tensors of one size, as rows of a matrix --------------------------------------------------------------------

LARGEST = 4096  # elements of a tensor from which on the calls cost little
_BLOCK = 1 << 15  # elements that are looked at together; their sums in float64 stay in the second-level cache
_statistics = maker(Statistics)
_DTYPE_BY_NAME = {
    row.name: row.numpy
    for row in dtypes.TABLE
    if row.name in FLOATS or (row.kind in (dtypes.INT, dtypes.UINT) and row.bits >= 8 and row.numpy_type is not None)
}


# A call of numpy costs a microsecond whatever it works on, and one small tensor takes some twenty of them: rows of a
# matrix share these calls. Nothing is compiled, and each row says what `statistics` says of it alone, to the last bit:
# numpy adds up a row of a matrix as it adds up a tensor of that size.


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

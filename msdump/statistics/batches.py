"""Statistics and MD5 of many tensors at once: shares of the work that threads take in turn."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, wait
from dataclasses import dataclass
from functools import partial

from msdump.errors import DtypeError
from msdump.process.termination import in_thread
from msdump.statistics.kernels import SMALL_BYTES
from msdump.statistics.md5 import md5_many
from msdump.statistics.small import equal_statistics, is_small
from msdump.statistics.stats import Statistics, can_be_joined, joined_statistics, statistics
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array
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
        shares = _digest_shares(sizes, thread_count) if has_md5 else []
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


def _digest_shares(sizes: Sequence[int], thread_count: int) -> list[list[int]]:
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

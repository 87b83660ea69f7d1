"""Statistics and MD5 of many tensors at once: shares of the work that threads take in turn."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, wait
from dataclasses import dataclass
from functools import partial

from msdump import dtypes
from msdump.arrays import Array
from msdump.md5 import md5_many
from msdump.stats import Statistics, can_be_joined, joined_statistics, statistics
from msdump.stats_kernels import SMALL_BYTES
from msdump.termination import in_thread

# Tensors of one share of the statistics. Small ones cost what this many bytes cost.
_SHARE_BYTES = 4 << 20
_SMALL_BYTES = 16 << 10
# So many bytes of small tensors are worth the import of a compiler; a larger tensor needs it anyway.
_JOINED_BYTES = 1 << 20
# A share of the digests fills the lanes of `md5_many` as long as its largest tensor takes.
_LANES = 12


@dataclass(frozen=True, slots=True)
class Measured:
    """What a tensor holds. `numbers` is None for complex ones, which have no order; `md5` is empty where not wanted."""

    numbers: Statistics | None
    md5: str = ""


def measure_all(
    arrays: Sequence[Array],
    dtype_names: Sequence[str],
    has_md5: bool = False,
    pool: Executor | None = None,
    thread_count: int = 1,
) -> list[Measured]:
    """Statistics of each tensor and, where wanted, its MD5.

    pool    gives threads beside the caller's, which works as well; None: the caller's alone
    Dtypes: as `statistics`, and complex ones, which have no numbers.
    Raises: DtypeError. No thread reads the arrays any more when this returns, whatever happened.
    """
    numbers: list[Statistics | None] = [None] * len(arrays)
    digests = [""] * len(arrays)

    def digest(places: Sequence[int]) -> None:
        for place, text in zip(places, md5_many([arrays[place] for place in places]), strict=True):
            digests[place] = text

    def measure(places: Sequence[int]) -> None:
        for place, found in _statistics_of({place: (arrays[place], dtype_names[place]) for place in places}, is_joined):
            numbers[place] = found

    sizes = [int(array.nbytes) for array in arrays]
    # Decided for all shares at once: which kernel a tensor gets must not depend on how they are cut.
    is_joined = max(sizes, default=0) > SMALL_BYTES or sum(sizes) > _JOINED_BYTES
    # Digests first: their shares are the longest.
    tasks = [partial(digest, places) for places in _digest_shares(sizes, thread_count)] if has_md5 else []
    tasks += [partial(measure, places) for places in _statistic_shares(sizes)]
    _run_all(tasks, pool, thread_count)
    return [Measured(*each) for each in zip(numbers, digests, strict=True)]


def _statistics_of(
    tensors: Mapping[int, tuple[Array, str]], is_joined: bool
) -> Iterator[tuple[int, Statistics | None]]:
    """By place; small ones of one dtype in one call where `is_joined`."""
    small: dict[str, list[int]] = {}
    for place, (array, name) in tensors.items():
        if is_joined and can_be_joined(array, name):
            small.setdefault(name, []).append(place)
        else:
            yield place, None if dtypes.dtype(name).kind == dtypes.COMPLEX else statistics(array, name)
    for name, places in small.items():
        yield from zip(places, joined_statistics([tensors[place][0] for place in places], name), strict=True)


def _digest_shares(sizes: Sequence[int], thread_count: int) -> list[list[int]]:
    """Places of the tensors of each share: as many shares as keep their lanes busy, the largest tensors dealt out."""
    if not sizes:
        return []
    count = max(1, min(thread_count, sum(sizes) // (_LANES * max(1, max(sizes)))))
    shares: list[list[int]] = [[] for _ in range(count)]
    filled = [0] * count
    for place in sorted(range(len(sizes)), key=lambda place: -sizes[place]):
        least = filled.index(min(filled))
        shares[least].append(place)
        filled[least] += sizes[place]
    return shares


def _statistic_shares(sizes: Sequence[int]) -> Iterator[list[int]]:
    share: list[int] = []
    filled = 0
    for place, size in enumerate(sizes):
        share.append(place)
        filled += max(size, _SMALL_BYTES)
        if filled >= _SHARE_BYTES:
            yield share
            share, filled = [], 0
    if share:
        yield share


def _run_all(tasks: Sequence[Callable[[], None]], pool: Executor | None, thread_count: int) -> None:
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

    helpers = [in_thread(pool, work) for _ in range(min(thread_count, len(tasks)) - 1)] if pool is not None else []
    try:
        work()
    finally:
        waiting.clear()
        wait(helpers)
    for helper in helpers:
        helper.result()

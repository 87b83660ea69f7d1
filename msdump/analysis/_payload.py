"""Bytes of dumped tensors: compare two, and measure each distinct tensor once, on all cores.

Two tensors are the same from the file system alone when they are one file; otherwise their bytes are read.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TypeVar

import numpy as np

from msdump.errors import FormatError
from msdump.formats.dump_tensor import DumpedTensor
from msdump.formats.npy_reader import small_arrays
from msdump.storage.plain import unreadable
from msdump.tensors.arrays import Array

Key = tuple[object, ...]
Progress = Callable[[int, int], None]
_Key = TypeVar("_Key", bound=Hashable)
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_THREADED_BYTES = 128 << 10  # from here on a thread earns what it costs
_SMALL_ITEMS, _SMALL_BYTES = 1024, 16 << 10  # items of a run, and bytes of an item that is small
_TINY_BYTES = 2048  # of a tensor that costs more calls of Python than arithmetic, also as one of a run
_BLOCK = 1 << 18  # bytes that are compared between two looks at whether the search is over


def identity(tensor: DumpedTensor) -> Key:
    """Equal identities are the same bytes on disk, hard links included.   Raises: OSError."""
    content = tensor.content_id
    # Inside a container without offsets only the slot tells tensors apart.
    return content if tensor.offset >= 0 else (*content, tensor.io, tensor.slot)


def key_of(*tensors: DumpedTensor) -> Key:
    """The identities of tensors; their names where a file was removed."""
    try:
        return tuple(map(identity, tensors))
    except OSError:
        return tuple(tensor.where for tensor in tensors)


def has_same_bytes(left: DumpedTensor, right: DumpedTensor) -> bool:
    """True when both are the same dtype and number of elements and the same bytes.

    Edges: False for a file that is gone or has become unreadable; NaNs of equal bits are equal.
    """
    if left.dtype != right.dtype or math.prod(left.shape) != math.prod(right.shape):
        return False
    try:
        if identity(left) == identity(right):
            return True
        return is_known_equal(left, right) or equal_bytes(left.load(), right.load())
    except (OSError, FormatError):
        return False


def is_known_equal(left: DumpedTensor, right: DumpedTensor) -> bool:
    """Whether indexes of packs tell that both hold the same bytes. What an index tells is held against the bytes once.

    Raises: FormatError where the bytes are others; OSError.
    """
    claimed = left.claimed_hash
    return claimed is not None and claimed == right.claimed_hash and left.content_hash == right.content_hash


def is_small_copy(left: DumpedTensor, right: DumpedTensor) -> bool:
    """True when both are small files that are byte for byte the same: so are their dtypes, shapes and elements."""
    return left.small is not None and right.small is not None and left.small.content == right.small.content


def equal_bytes(left: Array, right: Array) -> bool:
    """True when two arrays of one dtype hold the same bytes in C order. The first difference ends the search."""
    if left.nbytes != right.nbytes or left.dtype != right.dtype:
        return False
    a, b = (np.ascontiguousarray(side).reshape(-1).view(np.uint8) for side in (left, right))
    word_bytes = a.size // 8 * 8
    if not np.array_equal(a[word_bytes:], b[word_bytes:]):
        return False
    step = _BLOCK // 8
    # Blocks of machine words; a header of an odd length leaves a mapped file unaligned, which only costs speed.
    c, d = a[:word_bytes].view(np.uint64), b[:word_bytes].view(np.uint64)
    return all(bool((c[start : start + step] == d[start : start + step]).all()) for start in range(0, c.size, step))


def loaded(tensor: DumpedTensor, is_raw: bool) -> Array:
    """A tensor as the host has it, or as it is stored.   Raises: as DumpedTensor.load."""
    return tensor.load() if is_raw else tensor.load_host()


def loaded_each(tensors: Sequence[DumpedTensor], *, is_raw: bool) -> tuple[dict[int, Array], dict[int, FormatError]]:
    """Each tensor, and what is wrong with those that cannot be read; both by index.

    is_raw   as it is stored; False: as the host has it
    """
    # A small file is an npy file, which is stored as the host has it.
    arrays = small_arrays({index: tensor.small for index, tensor in enumerate(tensors) if tensor.small is not None})
    problems: dict[int, FormatError] = {}
    for index, tensor in enumerate(tensors):
        if index in arrays:
            continue
        try:
            arrays[index] = loaded(tensor, is_raw)
        except FormatError as error:
            problems[index] = error
        except OSError as error:
            problems[index] = unreadable(tensor.path, error)
    return arrays, problems


def each_on_all_cores(
    work: Callable[[_Item], _Result],
    items: Mapping[_Key, _Item],
    thread_count: int | None = None,
    *,
    sizes: Mapping[_Key, int] | None = None,
    progress: Progress | None = None,
    by_caller: Collection[_Key] = (),
) -> Iterator[tuple[_Key, _Result]]:
    """Call `work` with every item; (key, result) in the order in which they end.

    thread_count   None for one thread per core that this process may use
    progress       called with (done, in all) by the calling thread; of `sizes`, in bytes
    by_caller      keys of items of any size that threads do not speed up
    Edges:         items that have not begun when the caller stops are dropped.
    """
    done, total = 0, len(items) if sizes is None else sum(sizes[key] for key in items)
    for key, result in _results(work, items, thread_count or available_cores(), sizes, by_caller):
        yield key, result
        done += 1 if sizes is None else sizes[key]
        if progress is not None:
            progress(done, total)


def in_runs(
    work: Callable[[Sequence[_Item]], Sequence[_Result]],
    items: Mapping[_Key, _Item],
    sizes: Mapping[_Key, int],
    thread_count: int | None = None,
    progress: Progress | None = None,
    parts: Iterable[list[_Key]] | None = None,
) -> Iterator[tuple[_Key, _Result]]:
    """As `each_on_all_cores`, but several items are worked on at a time, so that they can share the work.

    work     gives a result for each item that it gets, in their order
    sizes    of the items in bytes
    parts    keys that belong together; None for small items together and the others each alone
    """
    runs = {run[0]: run for run in (_runs(sizes) if parts is None else parts)}
    groups = {first: [items[key] for key in run] for first, run in runs.items()}
    group_sizes = {first: sum(sizes[key] for key in run) for first, run in runs.items()}
    by_caller = {first for first, run in runs.items() if group_sizes[first] < _TINY_BYTES * len(run)}
    for first, results in each_on_all_cores(
        work, groups, thread_count, sizes=group_sizes, progress=progress, by_caller=by_caller
    ):
        yield from zip(runs[first], results, strict=True)


def _runs(sizes: Mapping[_Key, int]) -> Iterator[list[_Key]]:
    """Keys of small items in runs, of the others each alone, in their order."""
    small = [key for key, size in sizes.items() if size <= _SMALL_BYTES]
    for start in range(0, len(small), _SMALL_ITEMS):
        yield small[start : start + _SMALL_ITEMS]
    for key, size in sizes.items():
        if size > _SMALL_BYTES:
            yield [key]


def _results(
    work: Callable[[_Item], _Result],
    items: Mapping[_Key, _Item],
    thread_count: int,
    sizes: Mapping[_Key, int] | None,
    by_caller: Collection[_Key],
) -> Iterator[tuple[_Key, _Result]]:
    # Small tensors cost what Python does for each, which threads only make slower: they wait for each other.
    small = [
        key
        for key in items
        if thread_count == 1 or key in by_caller or (sizes is not None and sizes[key] < _THREADED_BYTES)
    ]
    is_small = set(small)
    pool = ThreadPoolExecutor(thread_count, "msdump-analysis")
    try:
        futures = {pool.submit(work, item): key for key, item in items.items() if key not in is_small}
        for key in small:
            yield key, work(items[key])
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def all_in_order(
    work: Callable[[_Item], _Result], items: Sequence[_Item], thread_count: int | None = None
) -> list[_Result]:
    """Results of `work` in the order of the items, computed as by `each_on_all_cores`."""
    results = dict(each_on_all_cores(work, dict(enumerate(items)), thread_count))
    return [results[number] for number in range(len(items))]


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0))

"""The threads that kernels share, and flat work in blocks. numpy lets go of the interpreter in big copies and ufuncs.

Parts of a split write disjoint memory, and but for products (see blas) the value of an element does not depend on
where the parts meet. Blocks stay in the cache, and their cut does not depend on the number of threads.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from msdump.mindspore.kernels.lines import apply_lines
from msdump.tensors.arrays import Array

# Below this many elements, waking a thread takes longer than the work.
SERIAL_SIZE = 1 << 17
_MOST_WORKERS = 8


def _available() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


WORKERS = min(_available(), _MOST_WORKERS)

_lock = threading.Lock()
_pool: ThreadPoolExecutor | None = None


def _threads() -> ThreadPoolExecutor:
    global _pool
    with _lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(max(1, WORKERS - 1), thread_name_prefix="msdump-kernel")
        return _pool


def _forget_threads() -> None:
    """Threads do not survive a fork; a child that kept the pool would wait for them forever."""
    global _pool, _lock
    _pool = None
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)


def split(count: int, size: int, work: Callable[[int, int], None]) -> None:
    """Call `work(start, stop)` on parts that cover range(count), at the same time.

    size    elements that the whole work touches; small work is done here and now
    Edges:  count 0 -> no call. `work` must not call split itself.
    Raises: what `work` raises, when all parts have ended.
    """
    if count == 0:
        return
    parts = min(WORKERS, count) if size >= SERIAL_SIZE else 1
    _share([count * part // parts for part in range(parts + 1)], work)


def _share(edges: Sequence[int], work: Callable[[int, int], None]) -> None:
    """`work` between all edges: this thread and those that wake in time take one part after another."""
    if len(edges) == 2:
        work(edges[0], edges[1])
        return
    waiting = deque(enumerate(itertools.pairwise(edges)))
    errors: dict[int, BaseException] = {}

    def take() -> None:
        while True:
            try:
                part, (start, stop) = waiting.popleft()
            except IndexError:
                return
            try:
                work(start, stop)
            except BaseException as error:  # noqa: BLE001 - raised again below, when all parts have ended
                errors[part] = error

    pool = _threads()
    helpers = [pool.submit(_quietly, take) for _ in range(min(WORKERS, len(edges) - 1) - 1)]
    take()
    for helper in helpers:
        # To wake a thread can take longer than the work: one that has not woken by now finds nothing left to do.
        if not helper.cancel():
            helper.result()
    if errors:
        raise errors[min(errors)]


def _quietly(work: Callable[[], None]) -> None:
    # The error state of numpy belongs to a thread, not to the process.
    with np.errstate(all="ignore"):
        work()


def blocks(count: int, size: int) -> Iterator[slice]:
    """Slices of at most `size` that cover range(count)."""
    size = max(1, size)
    for start in range(0, count, size):
        yield slice(start, min(start + size, count))


# Elements per block: four float32 operands of a block and its scratch stay in a 1 MiB level-2 cache.
BLOCK = 1 << 15
# Of kernels that are a chain of ufuncs. Threads take turns at the interpreter between any two of them, and on smaller
# blocks they wait longer for it than for memory, though this much lies in the cache behind that one.
CHAIN_BLOCK = 1 << 18


def run_blocks(n_items: int, fn: Callable[[int, int], None], block_size: int = BLOCK, item_size: int = 1) -> None:
    """Call `fn(start, stop)` for consecutive blocks that cover range(n_items), without floating point warnings.

    `item_size`: elements per item, to tell whether the work is large enough for more than one thread.
    """
    edges = [*range(0, n_items, block_size), n_items]
    with np.errstate(all="ignore"):
        if n_items * item_size >= SERIAL_SIZE:
            _share(edges, fn)
        else:
            for start, stop in itertools.pairwise(edges):
                fn(start, stop)


# numpy's loops of these take a number one by one, a line of them many at once.
_SLOW_WITH_NUMBERS = (np.maximum, np.minimum)


def apply_ufunc(ufunc: Any, inputs: Sequence[Array], out: Array) -> None:
    """`ufunc(*inputs, out=out)`, without warnings.

    In blocks when `out` is large and lies flat, and each operand too, or is a number, or one line for all.
    """
    width = _line_width(ufunc, inputs, out) if out.size >= SERIAL_SIZE else None
    if width is None:
        with np.errstate(all="ignore"):
            ufunc(*inputs, out=out)
        return
    lines = out.reshape(-1, width)
    numbers = (-1,) if width == 1 and ufunc in _SLOW_WITH_NUMBERS else ()
    operands = [
        array.reshape(lines.shape if array.size == out.size else numbers if array.size == 1 else (-1,))
        for array in inputs
    ]

    def block(start: int, stop: int) -> None:
        parts = [array[start:stop] if array.ndim == 2 else array for array in operands]
        apply_lines(ufunc, parts, lines[start:stop])

    run_blocks(len(lines), block, max(1, 32 * BLOCK // width), width)


def _line_width(ufunc: Any, inputs: Sequence[Array], out: Array) -> int | None:
    """Size of the line that operands repeat, 1 where they hold numbers; None when something does not lie flat."""
    widths = {array.size for array in inputs} - {1, out.size}
    has_numbers = any(array.size == 1 for array in inputs)
    fits = len(widths) <= (0 if has_numbers and ufunc in _SLOW_WITH_NUMBERS else 1) and out.flags.c_contiguous
    for array in inputs:
        shape = array.shape[next((axis for axis, size in enumerate(array.shape) if size > 1), array.ndim) :]
        fits = fits and array.flags.c_contiguous and shape == out.shape[out.ndim - len(shape) :]
    return (widths.pop() if widths else 1) if fits else None

"""Flat work in blocks that stay in the cache, spread over the shared threads.

Each block writes only its own part and the cut does not depend on the number of threads, so which thread runs a
block never shows in the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from msdump.arrays import Array
from msdump.kernels.threads import SERIAL_SIZE, split

# Elements per block: four float32 operands of a block and its scratch stay in a 1 MiB level-2 cache.
BLOCK = 1 << 15


def run_blocks(n_items: int, fn: Callable[[int, int], None], block_size: int = BLOCK, item_size: int = 1) -> None:
    """Call `fn(start, stop)` for consecutive blocks that cover range(n_items), without floating point warnings.

    `item_size`: elements per item, to tell whether the work is large enough for more than one thread.
    """
    block_count = -(-n_items // block_size)

    def stretch(first: int, last: int) -> None:
        with np.errstate(all="ignore"):
            for block in range(first, last):
                fn(block * block_size, min((block + 1) * block_size, n_items))

    split(block_count, n_items * item_size, stretch)


def apply_ufunc(ufunc: Any, inputs: Sequence[Array], out: Array) -> None:
    """`ufunc(*inputs, out=out)`, without warnings, in blocks when the arrays are large and lie flat."""
    if out.size < SERIAL_SIZE or not _lie_flat(inputs, out):
        with np.errstate(all="ignore"):
            ufunc(*inputs, out=out)
        return
    flat = [array.reshape(()) if array.size == 1 else array.reshape(-1) for array in inputs]
    flat_out = out.reshape(-1)

    def block(start: int, stop: int) -> None:
        ufunc(*(array[start:stop] if array.ndim else array for array in flat), out=flat_out[start:stop])

    run_blocks(out.size, block, 32 * BLOCK)


def _lie_flat(inputs: Sequence[Array], out: Array) -> bool:
    return out.flags.c_contiguous and all(
        array.size == 1 or (array.shape == out.shape and array.flags.c_contiguous) for array in inputs
    )

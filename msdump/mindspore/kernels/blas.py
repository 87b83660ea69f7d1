"""Matrix products on all cores, one single-threaded BLAS call for each.

OpenBLAS's own threads wait for each other by spinning: on a machine that has other work to do they burn twice the
processor time of the product itself. So while a product runs, the OpenBLAS that came with numpy is told to use one
thread, and the product is cut in parts. Another BLAS is left to itself and gets the product whole.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np

from msdump.mindspore.kernels.threads import WORKERS, split
from msdump.tensors.arrays import Array

# Multiplications that count as one element when deciding whether threads are worth waking.
_PER_ELEMENT = 64


class _ThreadCount:
    """Number of threads of one OpenBLAS. It belongs to the process, so users that overlap share one change."""

    def __init__(self, read: Callable[[], int], write: Callable[[int], None]) -> None:
        self._read, self._write = read, write
        self._lock = threading.Lock()
        self._users, self._before = 0, 1

    @contextmanager
    def held_at_one(self) -> Iterator[None]:
        """One thread while anybody is inside; the number from before after the last one left."""
        with self._lock:
            if self._users == 0:
                self._before = self._read()
                self._write(1)
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0:
                    self._write(self._before)


# Names of openblas_{get,set}_num_threads in numpy's wheels, the newest first.
_SPELLINGS = (("scipy_openblas_", "64_"), ("scipy_openblas_", ""), ("openblas_", "64_"), ("openblas_", ""))


@cache
def openblas_threads() -> _ThreadCount | None:
    """The OpenBLAS inside of numpy's wheel, which is loaded already; None when numpy uses another one."""
    package = Path(np.__file__).parent
    for folder in (package.parent / "numpy.libs", package / ".dylibs"):
        for path in sorted(folder.glob("*openblas*")):
            library = ctypes.CDLL(str(path))
            for prefix, suffix in _SPELLINGS:
                read = getattr(library, f"{prefix}get_num_threads{suffix}", None)
                write = getattr(library, f"{prefix}set_num_threads{suffix}", None)
                if read is not None and write is not None:
                    return _ThreadCount(read, write)
    return None


def product(a: Array, b: Array, out: Array) -> None:
    """`out = a @ b`, on all cores when it is large.

    Shapes:  a (..., m, k), b (..., k, n) -> out (..., m, n); leading axes broadcast.
    Edges:   k 0 -> zeros. The same operands give the same bits on one machine; another number of cores cuts the
             product elsewhere, and BLAS may then round the last bit differently. Only values count: a matrix times
             its own transpose has the bits of the product of two matrices with these values, so an operator gives
             the same bits again when it is replayed on inputs from two files.
    """
    if _is_transpose(a, b):
        b = b.copy(order="K")  # numpy would take syrk here, which rounds other than gemm
    size = out.size * a.shape[-1] // _PER_ELEMENT
    openblas = openblas_threads() if out.dtype.kind in "fc" else None
    if openblas is None:
        np.matmul(a, b, out=out)
        return
    with openblas.held_at_one():
        m, n = out.shape[-2:]
        if a.ndim == b.ndim == out.ndim > 2 and a.shape[0] == b.shape[0] >= WORKERS:
            split(len(out), size, lambda start, stop: _multiply(a[start:stop], b[start:stop], out[start:stop]))
        elif m >= n:
            split(m, size, lambda start, stop: _multiply(a[..., start:stop, :], b, out[..., start:stop, :]))
        else:
            split(n, size, lambda start, stop: _multiply(a, b[..., start:stop], out[..., start:stop]))


def _is_transpose(a: Array, b: Array) -> bool:
    """Whether `b` is `a` itself, its last two axes exchanged."""
    return (
        a.shape[-2:] == b.shape[:-3:-1]
        and a.strides[-2:] == b.strides[:-3:-1]
        and bool(a.__array_interface__["data"][0] == b.__array_interface__["data"][0])
    )


def _multiply(a: Array, b: Array, out: Array) -> None:
    np.matmul(a, b, out=out)

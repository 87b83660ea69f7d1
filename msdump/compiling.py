"""Machine code of loops over arrays, where numba is there to make it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def has_compiler() -> bool:
    """False without numba, and where it is switched off."""
    try:
        import numba
    except ImportError:
        return False
    return not numba.config.DISABLE_JIT  # type: ignore[attr-defined]


def compiled(source: Callable[..., Any], signature: Any, **options: Any) -> Callable[..., Any]:
    """Machine code of loops over blocks, kept on disk for the next process."""
    import numba

    options = {"nogil": True, "fastmath": {"reassoc", "contract", "nsz"}, **options}
    try:
        return numba.njit(signature, cache=True, **options)(source)  # type: ignore[no-any-return]
    except (RuntimeError, OSError):
        # Nowhere to keep the machine code (read-only home, full disk): compile for this process alone.
        return numba.njit(signature, **options)(source)  # type: ignore[no-any-return]


def array_type(dtype_name: str, readonly: bool = True, ndim: int = 1) -> Any:
    """numba's type of a C-contiguous array of that dtype.

    Read-only inputs (memory maps) are declared; writable arrays convert to them: one compilation for both.
    """
    import numba

    return numba.types.Array(numba.from_dtype(np.dtype(dtype_name)), ndim, "C", readonly=readonly)

"""Machine code of loops over arrays, where numba is there to make it.

It is kept in the user's cache for the next process, never beside the source: a package manager does not know files that
it has not installed, and would leave the folder of the package behind.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from msdump.errors import WriteError
from msdump.process.user_cache import cache_folder

_PACKAGE = Path(__file__).parent.parent
# All that machine code is made from, below the package: what was compiled from other text is not used.
SOURCES = (
    "analysis/distance/_pair_rows.py",
    "tensors/compiling.py",
    "tensors/float_bits.py",
    "statistics/md5_lanes.py",
    "statistics/kernels.py",
    "statistics/lanes.py",
    "tensors/tiles.py",
    "tensors/vector_code.py",
)
MOST_VERSIONS = 8  # folders of 1 to 2 MB; the one used longest ago goes first


def has_compiler() -> bool:
    """False without numba, and where it is switched off."""
    try:
        import numba
    except ImportError:
        return False
    return not numba.config.DISABLE_JIT  # type: ignore[attr-defined]


def compiled(source: Callable[..., Any], signature: Any, **options: Any) -> Callable[..., Any]:
    """Machine code of loops over blocks, kept on disk for the next process where there is a folder for it."""
    import numba

    options = {"nogil": True, "fastmath": {"reassoc", "contract", "nsz"}, **options}
    cache = None
    try:
        cache = _cache_of(source)
        dispatcher = numba.njit(**options)(source)
        dispatcher._cache = cache
        dispatcher.compile(signature)
    except Exception:  # noqa: BLE001
        # A full disk, a damaged file in the cache: compile for this process alone. Errors of the code are raised here.
        if cache is not None:
            with contextlib.suppress(OSError):
                cache.flush()  # the next process writes what was damaged anew
        return numba.njit(signature, **options)(source)  # type: ignore[no-any-return]
    dispatcher.disable_compile()
    return dispatcher  # type: ignore[no-any-return]


def _cache_of(source: Callable[..., Any]) -> Any:
    """numba's cache of one function, in the folder of this text and this numba."""
    from numba.core import caching

    folder, line = code_folder(), source.__code__.co_firstlineno

    class Locator:
        """Where the files of the function lie; the folder stands for the source."""

        _py_file = source.__code__.co_filename  # named in numba's warnings

        @classmethod
        def from_function(cls, function: Any, file: str) -> Locator:
            return cls()

        def ensure_cache_path(self) -> None:
            folder.mkdir(mode=0o700, exist_ok=True)

        def get_cache_path(self) -> str:
            return str(folder)

        def get_source_stamp(self) -> str:
            return folder.name

        def get_disambiguator(self) -> str:
            return str(line)

    class Files(caching.CompileResultCacheImpl):
        _locator_classes = [Locator]  # type: ignore[list-item]  # noqa: RUF012

    class Cache(caching.FunctionCache):
        _impl_class = Files

    return Cache(source)  # type: ignore[no-untyped-call]


@functools.cache
def code_folder() -> Path:
    """The folder of machine code of this version: `NUMBA_CACHE_DIR` where it is set, else in the user's cache.

    Its name is a digest of the sources and of numba's version, so versions that stand side by side do not share it.

    Raises: WriteError where no folder can be written.
    """
    import numba

    digest = hashlib.sha256(numba.__version__.encode())
    for name in SOURCES:
        digest.update((_PACKAGE / name).read_bytes())
    given = os.environ.get("NUMBA_CACHE_DIR", "")
    root = Path(given, "msdump") if given else cache_folder("code")
    folder = root / digest.hexdigest()[:16]
    try:
        is_new = not folder.is_dir()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.utime(folder)
    except OSError as error:
        raise WriteError(f"{folder}: expected a folder for machine code, got: {error}.") from error
    if is_new:
        _remove_old(root)
    return folder


def _remove_old(root: Path) -> None:
    """Keep the folders used last, and remove what earlier versions of msdump wrote beside their source."""
    with contextlib.suppress(OSError):
        folders = sorted(
            (entry for entry in os.scandir(root) if entry.is_dir()), key=lambda entry: entry.stat().st_mtime
        )
        for entry in folders[:-MOST_VERSIONS]:
            shutil.rmtree(entry.path, ignore_errors=True)
    for file in _PACKAGE.rglob("__pycache__/*.nb[ic]"):
        with contextlib.suppress(OSError):
            file.unlink()


def array_type(dtype_name: str, readonly: bool = True, ndim: int = 1) -> Any:
    """numba's type of a C-contiguous array of that dtype.

    Read-only inputs (memory maps) are declared; writable arrays convert to them: one compilation for both.
    """
    import numba

    return numba.types.Array(numba.from_dtype(np.dtype(dtype_name)), ndim, "C", readonly=readonly)

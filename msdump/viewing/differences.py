"""How far each element of a tensor is from its partner in the golden dump: as a difference, as a share, in units of the
last place.

Where both sides have the same NaN or Inf, they are 0 apart; where only one is finite, the distance is NaN or Inf.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from msdump.analysis.distance.bounds import real_dtype
from msdump.errors import ConfigError
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array

DIFFERENCE, RELATIVE, ULP = "difference", "relative", "ulp"
KINDS = (DIFFERENCE, RELATIVE, ULP)
_Distance = Callable[[Array, Array], Array]


def distance(kind: str, names: tuple[str, str], arrays: tuple[Array, Array]) -> _Distance:
    """A function of a part of mine and the same part of golden.

    kind     "difference": mine - golden; "relative": |mine - golden| / |golden|, Inf where golden is 0 and mine is
             not; "ulp": numbers of the coarser dtype from the one to the other, |mine - golden| where it is no float
    names    dtypes that the operators' tensors had
    arrays   the whole tensors: bfloat16 that a file holds as float32 is recognised by its elements
    Returns: float64 (complex128 for differences of complex numbers), of the shape of the parts.
    """
    if kind == DIFFERENCE:
        return _difference
    if kind == RELATIVE:
        return _relative
    if any(array.dtype.kind == "c" for array in arrays):
        raise ConfigError(f"what: expected real numbers for {ULP}, got complex ones. Take {RELATIVE}.")
    floats = [dtypes.dtype(real_dtype(array, name)) for name, array in zip(names, arrays, strict=True)]
    if not all(one.is_float for one in floats):
        return lambda mine, golden: np.abs(_difference(mine, golden))
    coarser = min((one.numpy for one in floats), key=lambda one: int(dtypes.float_limits(one).nmant))
    return lambda mine, golden: _ulps(mine, golden, coarser)


def _difference(mine: Array, golden: Array) -> Array:
    x, y = _wide(mine), _wide(golden)
    with np.errstate(invalid="ignore", over="ignore"):
        return np.where(_same(x, y), 0.0, x - y)


def _relative(mine: Array, golden: Array) -> Array:
    x, y = _wide(mine), _wide(golden)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        apart = np.where(_same(x, y), 0.0, np.abs(x - y) / np.abs(y))
    one_sided = np.isfinite(x) & np.isinf(y)
    return np.where(one_sided, np.inf, apart)


def _ulps(mine: Array, golden: Array, dtype: np.dtype) -> Array:
    with np.errstate(invalid="ignore", over="ignore"):
        x, y = (np.ascontiguousarray(side, side.dtype).astype(dtype) for side in (mine, golden))
    (sign_x, size_x), (sign_y, size_y) = _code(x), _code(y)
    apart = np.where(sign_x == sign_y, np.abs(size_x - size_y), size_x.astype(np.float64) + size_y)
    wide_x, wide_y = _wide(x), _wide(y)
    apart = np.where(np.isinf(wide_x) | np.isinf(wide_y), np.inf, apart)
    apart = np.where(np.isnan(wide_x) | np.isnan(wide_y), np.nan, apart)
    return np.where(_same(wide_x, wide_y), 0.0, apart)


def _code(array: Array) -> tuple[Array, Array]:
    """Sign and number of the value among those of its sign, in order of magnitude; zeros are 0."""
    bits = 8 * array.dtype.itemsize
    codes = array.view(f"u{array.dtype.itemsize}").astype(np.uint64)
    return codes >> np.uint64(bits - 1), (codes & np.uint64((1 << (bits - 1)) - 1)).astype(np.int64)


def _same(x: Array, y: Array) -> Array:
    return np.asarray((x == y) | (np.isnan(x) & np.isnan(y)))


def _wide(values: Array) -> Array:
    return values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)

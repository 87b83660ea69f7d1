"""How the bits of floats are read: keys that sort like the values, and values in float64."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from msdump.tensors.arrays import Array


@dataclass(frozen=True, slots=True)
class FloatBits:
    """How the bits of one float dtype are read.

    key       signed integer of the same width; bits become keys that sort like the values:
              -Inf is the complement of +Inf, -0 and +0 are -1 and 0, NaNs lie outside the infinities
    infinity  key of +Inf
    shift     left shift that makes float32 bits of 16-bit ones; 0 for floats that compilers know
    scale     what the shifted value must still be multiplied by
    """

    key: Any
    infinity: int
    shift: int = 0
    scale: float = 1.0

    @property
    def unsigned(self) -> np.dtype[Any]:
        return np.dtype(f"u{np.dtype(self.key).itemsize}")


FLOATS = {
    "float16": FloatBits(np.int16, 0x7C00, 13, 2.0**112),
    "bfloat16": FloatBits(np.int16, 0x7F80, 16),
    "float32": FloatBits(np.int32, 0x7F800000),
    "float64": FloatBits(np.int64, 0x7FF << 52),
}


def keys_of(bits: Array) -> Array:
    """Keys that sort as the floats of these bits, of the same signed integers; its own inverse.   Shapes: any."""
    shift, largest = _KEY_SCALARS[bits.itemsize]
    keys: Array = bits >> shift
    keys &= largest
    keys ^= bits
    return keys


# By bytes: the shift that leaves the sign, and all bits but the sign. They are scalars of the keys' own type: numpy
# takes twice as long to find out what a Python number fits.
_KEY_SCALARS: dict[int, tuple[Any, Any]] = {
    form.unsigned.itemsize: (form.key(8 * form.unsigned.itemsize - 1), form.key(np.iinfo(form.key).max))
    for form in FLOATS.values()
}


def values_of_keys(keys: Array, dtype: np.dtype[Any]) -> Array:
    """The floats that sort as these keys, in float64; 0 for both zeros."""
    values: Array = keys_of(keys).view(dtype).astype(np.float64)
    values += 0.0
    return values


def widened(values: Array) -> Array:
    """A copy of floats in float64."""
    # numpy takes half the time for 16-bit floats this way.
    return values.astype(np.float32).astype(np.float64) if values.itemsize == 2 else values.astype(np.float64)

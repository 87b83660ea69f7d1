"""TensorSummary: dtype and shape of a tensor as far as a graph file knows them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from msdump import dtypes


@dataclass(frozen=True, slots=True)
class TensorSummary:
    """One tensor as far as the file knows it.

    dtype  a name of the dtype table; None when the file does not say
    shape  sizes, -1 where it is only known at run time; None when the file does not say
    """

    dtype: str | None
    shape: tuple[int, ...] | None

    @property
    def size_bytes(self) -> int | None:
        """Bytes in memory; None when dtype or a size is unknown."""
        if self.dtype is None or self.shape is None or min(self.shape, default=0) < 0:
            return None
        return math.prod(self.shape) * dtypes.dtype(self.dtype).itemsize

"""TensorType: dtype and shape of a tensor, before there is any data."""

from __future__ import annotations

import math
from dataclasses import dataclass

from msdump import dtypes


@dataclass(frozen=True, slots=True)
class TensorType:
    """dtype: a name of the dtype table; shape: () for a 0-d tensor, zeros allowed, -1 where only the data decide."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def size_bytes(self) -> int:
        return self.size * dtypes.dtype(self.dtype).itemsize

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"

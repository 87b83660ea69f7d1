"""Statistics of a tensor by operators of PyTorch: on whatever device it lies, without waiting for it.

`measure` queues the work and gives back a row of numbers on the same device, `statistics_of_row` reads that row once it
has arrived on the host. What they say together is what `stats.statistics` says of the tensor's array.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import torch

from msdump import dtypes
from msdump.arrays import Array
from msdump.stats import Statistics

# A row: largest and smallest finite value, sum, Euclidean norm, then five counts, see `_Float` and `_Whole`. Floats are
# written by their bits, so that the row is one tensor and whole numbers lose nothing.
ROW_LENGTH = 9
_COUNTS = 4
_INF = math.inf
# Order of uint64 is that of int64 once the highest bit is turned over.
_TURN = -(2**63)


def measure(tensor: Any) -> Any:
    """Row of a tensor of a real dtype: int64 (9,), on the device of the tensor. Nothing waits for the device.

    Shapes:  any with an element; strides do not matter.
    Source:  `stats.statistics`, which tells what each number means.
    """
    values = tensor.detach().resolve_neg().reshape(1, -1)
    if values.is_floating_point():
        return _measure_floats(values.float() if values.element_size() == 1 else values)
    return _measure_whole(values)


def statistics_of_row(row: Array, dtype_name: str, count: int) -> Statistics:
    """Statistics of a tensor of `count` elements by its row."""
    kind = dtypes.dtype(dtype_name)
    scale = 1.0
    total, norm = (float(number) for number in row[2:4].view(np.float64))
    counts = [int(number) for number in row[_COUNTS:]]
    top: float | int
    low: float | int
    if kind.is_float:
        # Adding 0.0 turns -0.0 into 0.0.
        top, low = (float(number) + 0.0 for number in row[:2].view(np.float64))
        negative_inf, zero, positive_inf, below_zero, below_inf = counts
        nan, negative = count - below_inf - positive_inf, below_zero - negative_inf
        if dtype_name == "float64":
            # It was summed as a share of the largest value, for which no square is too large or too small.
            scale = max(abs(top), abs(low)) if math.isfinite(top) else 0.0
            norm *= scale
    else:
        top, low = int(row[0]), int(row[1])
        if dtype_name == "uint64":
            top, low = top - _TURN, low - _TURN
        nan = negative_inf = positive_inf = 0
        zero, negative = counts[:2]
    finite = count - nan - negative_inf - positive_inf
    return Statistics(
        max=top if finite else None,
        min=low if finite else None,
        avg=total / finite * scale + 0.0 if finite else None,
        l2norm=math.nan if nan else _INF if negative_inf or positive_inf else norm,
        count=count,
        negative=negative,
        positive=finite - negative - zero,
        zero=zero,
        nan=nan,
        negative_inf=negative_inf,
        positive_inf=positive_inf,
        size_bytes=count * kind.itemsize,
    )


def _measure_floats(values: Any) -> Any:
    """Counts: equal to -Inf, 0, Inf; below 0 and Inf."""
    equal = (values == _marks(values.dtype, values.device, (-_INF, 0.0, _INF))).sum(1)
    below = (values < _marks(values.dtype, values.device, (0.0, _INF))).sum(1)
    top = torch.nan_to_num(values, -_INF, -_INF, -_INF).amax().double()
    low = torch.nan_to_num(values, _INF, _INF, _INF).amin().double()
    finite = torch.nan_to_num(values, 0.0, 0.0, 0.0)
    if values.dtype == torch.float64:
        largest = finite.abs().amax()
        finite = finite / torch.where(largest > 0, largest, 1.0)
    total, norm = finite.sum(dtype=torch.float64), torch.linalg.vector_norm(finite, dtype=torch.float64)
    return torch.cat((torch.stack((top, low, total, norm)).view(torch.int64), equal, below))


def _measure_whole(values: Any) -> Any:
    """Counts: zero, below zero; three that mean nothing."""
    if values.dtype == torch.uint64:
        ordered, wide = values.view(torch.int64) ^ _TURN, values.double()
    else:
        ordered = values.to(torch.int64)
        wide = ordered.double()
    low, top = torch.aminmax(ordered)
    sums = torch.stack((wide.sum(), torch.linalg.vector_norm(wide))).view(torch.int64)
    zero = (wide == 0).sum()
    counts = torch.stack((zero, (wide < 0).sum(), zero, zero, zero))
    return torch.cat((torch.stack((top, low)), sums, counts))


@functools.cache
def _marks(dtype: Any, device: Any, numbers: tuple[float, ...]) -> Any:
    """Numbers to compare with, one a row. They are sent to a device once, because sending waits for it."""
    return torch.tensor(numbers, dtype=dtype, device=device).unsqueeze(1)

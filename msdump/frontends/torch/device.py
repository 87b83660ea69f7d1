"""Copies of CUDA tensors, or of their statistics only, to the host, concurrent with the model.

`measure` queues the statistics of a tensor by operators of PyTorch, on the tensor's device and without waiting for
it, and gives back a row of numbers on the same device; `statistics_of_row` reads that row once it has arrived on the
host. What they say together is what `stats.statistics` says of the tensor's array.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from msdump.frontends.torch.convert import array_of
from msdump.statistics.stats import MeasuredArray, Statistics
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array
from msdump.tensors.torch_arrays import dtype_name

# A row: largest and smallest finite value, sum, Euclidean norm, then five counts, see `_Float` and `_Whole`. Floats are
# written by their bits, so that the row is one tensor and whole numbers lose nothing.
ROW_LENGTH = 9
_COUNTS = 4
_INF = math.inf
# Order of uint64 is that of int64 once the highest bit is turned over.
_TURN = -(2**63)


def measure(tensor: torch.Tensor) -> torch.Tensor:
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


def _measure_floats(values: torch.Tensor) -> torch.Tensor:
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


def _measure_whole(values: torch.Tensor) -> torch.Tensor:
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
def _marks(dtype: torch.dtype, device: torch.device, numbers: tuple[float, ...]) -> torch.Tensor:
    """Numbers to compare with, one a row. They are sent to a device once, because sending waits for it."""
    return torch.tensor(numbers, dtype=dtype, device=device).unsqueeze(1)


def copies_for(args: Sequence[object]) -> PinnedCopies | None:
    """Copies from the device that the arguments of a graph lie on; None for the host, which needs none."""
    device = next((arg.device for arg in args if isinstance(arg, torch.Tensor) and arg.is_cuda), None)
    return None if device is None else PinnedCopies(device)


class PinnedCopies:
    """Copies into pinned memory that run beside the model. An array holds its values once `mark` is over.

    The copy starts when the work that was queued before it is done, and sees nothing of what is queued after it, if
    `protect` is called before an operator that writes.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    def takes(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor is on the device of these copies."""
        return bool(tensor.is_cuda)

    def array(self, tensor: torch.Tensor) -> Array:
        """Memory of the host that the values will be in."""
        with self._beside(tensor):
            target = torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu", pin_memory=True)
            target.copy_(tensor.detach(), non_blocking=True)
        return array_of(target)

    def row(self, tensor: torch.Tensor) -> Array:
        """Memory of the host that the row of `measure` will be in: the device counts, the values stay there."""
        with self._beside(tensor):
            target = _row_on_host()
            target.copy_(measure(tensor), non_blocking=True)
        return array_of(target)

    @contextmanager
    def _beside(self, tensor: torch.Tensor) -> Iterator[None]:
        """Work on the other stream that reads a tensor after what was queued for it before."""
        self._stream.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(self._stream):
            yield
        # The allocator may not hand the memory out before the other stream has read it.
        tensor.record_stream(self._stream)

    def mark(self) -> Any:
        """An event that is over when all copies up to now are."""
        return self._stream.record_event()

    def protect(self) -> None:
        """Let what the model does next wait for the copies: it will write what they read."""
        torch.cuda.current_stream(self._device).wait_stream(self._stream)


def _row_on_host() -> torch.Tensor:
    # The script may have made another device that of all new tensors.
    return torch.empty(ROW_LENGTH, dtype=torch.int64, device="cpu", pin_memory=True)


def measured_array(copies: PinnedCopies, tensor: torch.Tensor) -> Array:
    """A tensor of which only the statistics come to the host, once `mark` is over.

    Edges: complex numbers have no statistics, and nothing is computed for them or for an empty tensor.
    """

    def find() -> Callable[[], Array]:
        row = copies.row(tensor)
        return lambda: row

    return _measured_array(tensor, find)


def measured_behind(tensor: torch.Tensor) -> Array:
    """As `measured_array`, queued on the current stream. Reading the statistics waits until they are computed."""

    def find() -> Callable[[], Array]:
        target = _row_on_host()
        target.copy_(measure(tensor), non_blocking=True)
        event = torch.cuda.current_stream(tensor.device).record_event()
        row = array_of(target)

        def wait() -> Array:
            event.synchronize()
            return row

        return wait

    return _measured_array(tensor, find)


def _measured_array(tensor: torch.Tensor, find: Callable[[], Callable[[], Array]]) -> Array:
    """find: begins to measure, and returns what gives the row of `measure`"""
    name = dtype_name(tensor.dtype)
    assert name is not None, tensor.dtype
    shape, row = tuple(tensor.shape), dtypes.dtype(name)
    if not tensor.numel() or row.kind == dtypes.COMPLEX:
        return MeasuredArray(shape, row.numpy, None) if tensor.numel() else np.empty(shape, row.numpy)
    numbers, count = find(), int(tensor.numel())
    return MeasuredArray(shape, row.numpy, lambda: statistics_of_row(numbers(), name, count))

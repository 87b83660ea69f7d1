"""PinnedCopies: tensors of a CUDA device, or only their statistics, on their way to the host beside the model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from msdump import dtypes
from msdump.arrays import Array
from msdump.frontends.torch.arrays import array_of, dtype_name
from msdump.frontends.torch.device_statistics import ROW_LENGTH, measure, statistics_of_row
from msdump.stats import MeasuredArray


def copies_for(args: Sequence[Any]) -> PinnedCopies | None:
    """Copies from the device that the arguments of a graph lie on; None for the host, which needs none."""
    device = next((arg.device for arg in args if isinstance(arg, torch.Tensor) and arg.is_cuda), None)
    return None if device is None else PinnedCopies(device)


class PinnedCopies:
    """Copies into pinned memory that run beside the model. An array holds its values once `mark` is over.

    The copy starts when the work that was queued before it is done, and sees nothing of what is queued after it, if
    `protect` is called before an operator that writes.
    """

    def __init__(self, device: Any) -> None:
        self._device = device
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    def takes(self, tensor: Any) -> bool:
        """Whether a tensor lies where these copies come from."""
        return bool(tensor.is_cuda)

    def array(self, tensor: Any) -> Array:
        """Memory of the host that the values will be in."""
        with self._beside(tensor):
            target = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
            target.copy_(tensor.detach(), non_blocking=True)
        return array_of(target)

    def row(self, tensor: Any) -> Any:
        """Memory of the host that the row of `measure` will be in: the device counts, the values stay there."""
        with self._beside(tensor):
            target = torch.empty(ROW_LENGTH, dtype=torch.int64, pin_memory=True)
            target.copy_(measure(tensor), non_blocking=True)
        return array_of(target)

    @contextmanager
    def _beside(self, tensor: Any) -> Iterator[None]:
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


def measured_array(copies: PinnedCopies, tensor: Any) -> Array:
    """A tensor of which only the statistics come to the host, once `mark` is over.

    Edges: complex numbers have no statistics, and nothing is computed for them or for an empty tensor.
    """
    name = dtype_name(tensor.dtype)
    assert name is not None, tensor.dtype
    shape, row = tuple(tensor.shape), dtypes.dtype(name)
    if not tensor.numel() or row.kind == dtypes.COMPLEX:
        return MeasuredArray(shape, row.numpy, None) if tensor.numel() else np.empty(shape, row.numpy)
    numbers, count = copies.row(tensor), int(tensor.numel())
    return MeasuredArray(shape, row.numpy, lambda: statistics_of_row(numbers, name, count))

"""PinnedCopies: tensors of a CUDA device on their way to the host, on a stream of their own."""

from __future__ import annotations

from typing import Any

import torch

from msdump.events import Array
from msdump.frontends.torch.arrays import array_of


class PinnedCopies:
    """Copies into pinned memory that run beside the model. An array holds its values once `mark` is over.

    The copy starts when the work that was queued before it is done, and sees nothing of what is queued after it, if
    `protect` is called before an operator that writes.
    """

    def __init__(self, device: Any) -> None:
        self._device = device
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    def array(self, tensor: Any) -> Array:
        """Memory of the host that the values will be in."""
        self._stream.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(self._stream):
            target = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
            target.copy_(tensor.detach(), non_blocking=True)
        # The allocator may not hand the memory out before the copy has read it.
        tensor.record_stream(self._stream)
        return array_of(target)

    def mark(self) -> Any:
        """An event that is over when all copies up to now are."""
        return self._stream.record_event()

    def protect(self) -> None:
        """Let what the model does next wait for the copies: it will write what they read."""
        torch.cuda.current_stream(self._device).wait_stream(self._stream)

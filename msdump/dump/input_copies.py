"""InputCopies: what an operator read, kept while it runs, for the inputs that it overwrites."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from msdump.arrays import Array
from msdump.events import OpEvent
from msdump.records import TensorKey


class InputCopies:
    """Copies of the mutated inputs of one operator at a time, in buffers that the next operator uses again.

    `take` before the operator, `arrays` until the next `take`. For the one thread that runs the graph.
    """

    def __init__(self) -> None:
        self._buffers: dict[int, Array] = {}
        self.arrays: dict[TensorKey, Array] = {}

    def take(self, event: OpEvent, slots: Iterable[int]) -> None:
        """Copy the inputs in `slots`; forgets those of the operator before."""
        self.arrays.clear()
        for slot in slots:
            array = event.inputs[slot]
            buffer = self._buffers.get(slot)
            if buffer is None or buffer.size < array.nbytes:
                buffer = self._buffers[slot] = np.empty(array.nbytes, np.uint8)
            copy = buffer[: array.nbytes].view(array.dtype).reshape(array.shape)
            np.copyto(copy, array)
            self.arrays[event.op.inputs[slot].key] = copy

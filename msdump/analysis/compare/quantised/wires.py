"""Which operator made what another one reads, by the bytes of tensors alone: not every dump has a graph file."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from msdump.analysis.steps import Operator, Slot
from msdump.errors import FormatError
from msdump.formats.dump_tensor import DumpedTensor
from msdump.tensors.arrays import Array

ContentKey = tuple[str, int, bytes]


class Wires:
    """Makers and readers of the tensors of one step. One thread; each tensor is read once.

    Edges: equal bytes are taken for one tensor; of several makers the last one before the reader counts.
    """

    def __init__(self, operators: Sequence[Operator]) -> None:
        self._keys: dict[int, tuple[ContentKey | None, DumpedTensor]] = {}
        self._makers: dict[ContentKey, list[int]] = defaultdict(list)
        self._readers: dict[ContentKey, list[tuple[int, Slot]]] = defaultdict(list)
        for index, operator in enumerate(operators):
            for tensor in operator.outputs.values():
                if (key := self.key(tensor)) is not None:
                    self._makers[key].append(index)
            for slot, tensor in operator.inputs.items():
                if (key := self.key(tensor)) is not None:
                    self._readers[key].append((index, slot))

    def key(self, tensor: DumpedTensor) -> ContentKey | None:
        """Equal keys are equal bytes; None for a tensor that cannot be read."""
        found = self._keys.get(id(tensor))
        if found is None:
            # The tensor is kept, so that its id is not used again.
            found = self._keys[id(tensor)] = content_key(tensor), tensor
        return found[0]

    def maker(self, tensor: DumpedTensor, before: int) -> int | None:
        """Index of the last operator before that one that made the tensor; None for what came from outside."""
        key = self.key(tensor)
        return None if key is None else max((one for one in self._makers.get(key, ()) if one < before), default=None)

    def readers(self, tensor: DumpedTensor, after: int) -> list[tuple[int, Slot]]:
        """Indices of the later operators that read the tensor, and the inputs that do."""
        key = self.key(tensor)
        return [] if key is None else [one for one in self._readers.get(key, ()) if one[0] > after]


def content_key(tensor: DumpedTensor) -> ContentKey | None:
    """dtype, number of elements and hash of the bytes; None for a tensor that cannot be read."""
    try:
        return array_key(tensor.load())
    except (FormatError, OSError):
        return None


def array_key(array: Array) -> ContentKey:
    """The same of an array, whose elements count in C order."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return str(flat.dtype), flat.size, hashlib.blake2b(flat.view(np.uint8).data, digest_size=16).digest()

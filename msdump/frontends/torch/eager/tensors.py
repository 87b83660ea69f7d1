"""Which tensors of an iteration are the same bytes: by memory, the part of it that a tensor shows, and writes to it."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from torch.multiprocessing.reductions import StorageWeakRef

from msdump.tensors.records import TensorKey

if TYPE_CHECKING:
    import torch


class _Memory:
    """A storage.

    origin   says which one it is, in every iteration: who made it, or who read it first
    version  how often an operator has written to it in this iteration
    """

    __slots__ = ("origin", "reference", "version")

    def __init__(self, reference: StorageWeakRef, origin: Hashable) -> None:
        # As long as a storage is referred to, be it weakly, no other one gets its address.
        self.reference = reference
        self.origin = origin
        self.version = 0


class TensorTable:
    """Keys of the tensors of one iteration. Equal keys, shapes and dtypes are equal bytes.

    What writes to memory behind PyTorch's back, such as an array of numpy that shares it, is not seen.
    """

    def __init__(self) -> None:
        self._memory: dict[int, _Memory] = {}
        self._ids: dict[Hashable, int] = {}
        # How often anything may have been written that is not known to be.
        self._disturbed = 0

    def begin(self) -> None:
        """An iteration begins: whoever comes from an earlier one is known by its first reader."""
        self._memory.clear()
        self._disturbed = 0

    def forget(self) -> None:
        """Number the tensors anew; between two iterations."""
        self._memory.clear()
        self._ids.clear()

    def key(self, tensor: torch.Tensor, origin: Hashable) -> TensorKey:
        """Of a tensor as it is now.   origin: what its memory is called when this is the first tensor in it."""
        storage = tensor.untyped_storage()
        memory = self._memory.get(storage._cdata)
        if memory is None:
            memory = self._memory[storage._cdata] = _Memory(StorageWeakRef(storage), origin)  # type: ignore[no-untyped-call]
        part = (
            memory.origin,
            tensor.storage_offset(),
            tuple(tensor.shape),
            tensor.stride(),
            tensor.dtype,
            tensor.is_conj(),
            tensor.is_neg(),
        )
        return TensorKey(self._ids.setdefault(part, len(self._ids)), memory.version + self._disturbed)

    def state(self, tensor: torch.Tensor) -> tuple[int, int]:
        """Equal for tensors of one storage between two writes to it, in one iteration; after `key` of the tensor."""
        storage = tensor.untyped_storage()._cdata
        return storage, self._memory[storage].version + self._disturbed

    def disturb(self) -> None:
        """What has run may have written to any tensor."""
        self._disturbed += 1

    def write(self, tensor: torch.Tensor) -> None:
        """An operator has written to a tensor."""
        memory = self._memory.get(tensor.untyped_storage()._cdata)
        if memory is not None:
            memory.version += 1


def local(tensor: torch.Tensor) -> torch.Tensor:
    """What of a tensor is in this process: the shard of a DTensor."""
    return getattr(tensor, "_local_tensor", tensor)


def memory_of(tensor: torch.Tensor) -> int:
    """Equal for tensors that share memory."""
    return int(local(tensor).untyped_storage()._cdata)


def version_of(tensor: torch.Tensor) -> int | None:
    """How often it was written, as far as autograd knows; None where nobody counts."""
    own = local(tensor)
    return None if own.is_inference() else int(own._version)

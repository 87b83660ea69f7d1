"""Which tensors of an iteration are the same bytes: by memory, the part of it that a tensor shows, and writes to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import TYPE_CHECKING

from torch.multiprocessing.reductions import StorageWeakRef

from msdump.tensors.records import TensorInfo, TensorKey
from msdump.tensors.torch_arrays import dtype_name

if TYPE_CHECKING:
    import torch


# Offset, shape, strides, dtype, and whether its values are the conjugate or the negative ones.
Part = tuple["int | torch.SymInt", tuple[int, ...], tuple[int, ...], "torch.dtype", bool, bool]


class _Memory:
    """A storage.

    origin   says which one it is, in every iteration: who made it, or who read it first
    version  how often an operator has written to it in this iteration
    infos    of the parts of it that tensors have shown since it was last written, or anything may have been
    """

    __slots__ = ("disturbed", "infos", "origin", "reference", "version")

    def __init__(self, reference: StorageWeakRef, origin: Hashable) -> None:
        # As long as a storage is referred to, be it weakly, no other one gets its address.
        self.reference = reference
        self.origin = origin
        self.version = 0
        self.disturbed = -1
        self.infos: dict[Part, TensorInfo] = {}


class TensorTable:
    """What is known of the tensors of one iteration. Equal keys, shapes and dtypes are equal bytes.

    What writes to memory behind PyTorch's back, such as an array of numpy that shares it, is not seen.
    """

    def __init__(self) -> None:
        self._memory: dict[int, _Memory] = {}
        # How many memories have an origin: two models may have parameters of one name.
        self._origins: Counter[Hashable] = Counter()
        self._ids: dict[Hashable, int] = {}
        # By number and version: one object for all uses, so that equal ones are found equal at a glance.
        self._infos: dict[tuple[int, int], TensorInfo] = {}
        # How often anything may have been written that is not known to be.
        self._disturbed = 0

    def begin(self) -> None:
        """An iteration begins: whoever comes from an earlier one is known by its first reader."""
        self._memory.clear()
        self._origins.clear()
        self._disturbed = 0

    def forget(self) -> None:
        """Number the tensors anew; between two iterations."""
        self._memory.clear()
        self._origins.clear()
        self._ids.clear()
        self._infos.clear()

    def known(self, tensor: torch.Tensor) -> TensorInfo | None:
        """What `add` said of an equal view of this memory since that was last written; None where it said nothing."""
        memory = self._memory.get(tensor.untyped_storage()._cdata)
        return memory.infos.get(_part(tensor)) if memory is not None and memory.disturbed == self._disturbed else None

    def add(self, tensor: torch.Tensor, origin: Hashable) -> TensorInfo:
        """Key, dtype and shape of a tensor as it is now; one of codes counts as the numbers that they mean.

        origin  what its memory is called when this is the first tensor in it
        """
        storage = tensor.untyped_storage()
        memory = self._memory.get(storage._cdata)
        if memory is None:
            earlier = self._origins[origin]
            self._origins[origin] += 1
            reference = StorageWeakRef(storage)  # type: ignore[no-untyped-call]
            memory = self._memory[storage._cdata] = _Memory(reference, (origin, earlier) if earlier else origin)
        if memory.disturbed != self._disturbed:
            memory.disturbed = self._disturbed
            memory.infos.clear()
        part = _part(tensor)
        version = memory.version + self._disturbed
        info = memory.infos[part] = self.info_of(memory.origin, part, version, tensor.is_quantized)
        return info

    def info_of(self, origin: Hashable, part: Part, version: int, is_quantized: bool = False) -> TensorInfo:
        """The same of a part of the memory that is called `origin`, after so many writes to it."""
        name = self._ids.setdefault((origin, part), len(self._ids)), version
        info = self._infos.get(name)
        if info is None:
            _, shape, _, torch_dtype, _, _ = part
            dtype = "float32" if is_quantized else dtype_name(torch_dtype)
            assert dtype is not None
            info = self._infos[name] = TensorInfo(TensorKey(*name), dtype, tuple(shape))
        return info

    def state(self, tensor: torch.Tensor) -> tuple[int, int]:
        """Equal for tensors of one storage between two writes to it, in one iteration; after `add` of the tensor."""
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
            memory.infos.clear()


def _part(tensor: torch.Tensor) -> Part:
    return (
        tensor.storage_offset(),
        tensor.shape,
        tensor.stride(),
        tensor.dtype,
        tensor.is_conj(),
        tensor.is_neg(),
    )


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

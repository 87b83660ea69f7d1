"""Transport over torch.distributed: gloo, or nccl where the job computes on GPUs. Imports PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, final

import numpy as np
import torch
from torch import distributed

from msdump.errors import ExecutionError
from msdump.tensors.arrays import Array
from msdump.tensors.torch_arrays import array_like, tensor_of

_OPERATIONS = {
    "sum": distributed.ReduceOp.SUM,
    "max": distributed.ReduceOp.MAX,
    "min": distributed.ReduceOp.MIN,
    "prod": distributed.ReduceOp.PRODUCT,
}
# Unsigned numbers that gloo and nccl do not take travel in the next larger signed ones.
_CARRIERS = {"uint16": np.int32, "uint32": np.int64}


@final
class TorchTransport:
    """The processes of a job. `device`: "cpu", or the GPU of this process."""

    def __init__(self, rank: int, size: int, address: str, backend: str, device: str, timeout_s: float = 600) -> None:
        """Meet the other processes.   Raises: ExecutionError when they do not come."""
        self._device = device
        try:
            distributed.init_process_group(
                backend,
                init_method=f"tcp://{address}",
                rank=rank,
                world_size=size,
                timeout=timedelta(seconds=timeout_s),
            )
        except (RuntimeError, ValueError) as error:
            raise ExecutionError(
                f"communication.init: expected {size} processes at {address}, got an error: {error}. "
                "Check that all ranks run, and that the port is free."
            ) from error
        self._groups: dict[str, Any] = {}

    def add_group(self, name: str, ranks: Sequence[int]) -> None:
        """A group of some of the ranks; only they call this."""
        self._groups[name] = distributed.new_group(list(ranks), use_local_synchronization=True)

    def remove_group(self, name: str) -> None:
        distributed.destroy_process_group(self._groups.pop(name))

    def close(self) -> None:
        """Leave the job."""
        distributed.destroy_process_group()

    def _group(self, name: str) -> Any:
        return self._groups.get(name)

    def _sent(self, array: Array) -> Any:
        """A tensor of its own with the values of an array, in a dtype that travels."""
        if array.dtype == bool:
            array = array.view(np.uint8)
        elif array.dtype.name in _CARRIERS:
            array = array.astype(_CARRIERS[array.dtype.name])
        return tensor_of(np.array(array, order="C")).to(self._device)

    def _received(self, tensor: Any, like: Array) -> Array:
        array = array_like(tensor.cpu() if self._device != "cpu" else tensor)
        return array.view(bool) if like.dtype == bool else array.astype(like.dtype, copy=False)

    def all_reduce(self, array: Array, operation: str, group: str) -> Array:
        tensor = self._sent(array)
        distributed.all_reduce(tensor, _OPERATIONS[operation], group=self._group(group))
        return self._received(tensor, array)

    def all_gather(self, array: Array, group: str) -> Sequence[Array]:
        tensor = self._sent(array)
        parts = [torch.empty_like(tensor) for _ in range(distributed.get_world_size(self._group(group)))]
        distributed.all_gather(parts, tensor, group=self._group(group))
        return [self._received(part, array) for part in parts]

    def broadcast(self, array: Array, root: int, group: str) -> Array:
        tensor = self._sent(array)
        distributed.broadcast(tensor, root, group=self._group(group))
        return self._received(tensor, array)

    def all_to_all(self, parts: Sequence[Array], group: str) -> Sequence[Array]:
        """Gloo has no such operation: every process gathers all parts and keeps its own."""
        whole = self.all_gather(np.stack(parts), group)
        place = self.place_of(-1, group)
        return [each[place] for each in whole]

    def send(self, array: Array, rank: int, tag: int, group: str) -> None:
        distributed.send(self._sent(array), rank, group=self._group(group), tag=tag)

    def receive(self, like: Array, rank: int, tag: int, group: str) -> Array:
        tensor = self._sent(like)
        distributed.recv(tensor, rank, group=self._group(group), tag=tag)
        return self._received(tensor, like)

    def barrier(self, group: str) -> None:
        distributed.barrier(group=self._group(group))

    def place_of(self, rank: int, group: str) -> int:
        """Place in the group of a rank of the job; of this process for -1."""
        own = distributed.get_rank() if rank < 0 else rank
        return distributed.get_group_rank(self._groups[group], own) if group in self._groups else own

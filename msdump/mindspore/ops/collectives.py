"""Operators that the processes of a job compute together. In a process that is alone they give their operand back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msdump.mindspore.common.dtype import dtype_name
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.communication import HCCL_WORLD_COMM_GROUP, get_group_size
from msdump.mindspore.dispatch import as_tensor, call, cast
from msdump.mindspore.kernels.transport import Alone, transport
from msdump.mindspore.ops.primitive import Primitive


class ReduceOp:
    """Names of the operations of AllReduce, Reduce and ReduceScatter."""

    SUM = "sum"
    MAX = "max"
    MIN = "min"
    PROD = "prod"


_OPERATIONS = (ReduceOp.SUM, ReduceOp.MAX, ReduceOp.MIN, ReduceOp.PROD)


def is_alone() -> bool:
    """Is this process the only one of its job?"""
    return isinstance(transport(), Alone)


class _Collective(Primitive):
    """An operator over a group of processes."""

    def __init__(self, group: str, **attrs: Any) -> None:
        operation = attrs.get("op", ReduceOp.SUM)
        if operation not in _OPERATIONS:
            name = type(self).__name__
            raise ValueError(f"For '{name}', the 'op' must be one of {list(_OPERATIONS)}, but got {operation!r}.")
        super().__init__(group=group, **attrs)

    def compute(self, x: Any) -> Tensor:
        return as_tensor(x) if is_alone() else self._together(as_tensor(x))

    def _together(self, x: Tensor) -> Tensor:
        return call(self.name, x, **self.attrs)


class AllReduce(_Collective):
    """Sum, maximum, minimum or product over all processes, which all of them get."""

    def __init__(self, op: str = ReduceOp.SUM, group: str = HCCL_WORLD_COMM_GROUP) -> None:
        super().__init__(group, op=op)


class Reduce(_Collective):
    """As AllReduce; only the process `dest_rank` may count on the result."""

    def __init__(self, dest_rank: int, op: str = ReduceOp.SUM, group: str = HCCL_WORLD_COMM_GROUP) -> None:
        super().__init__(group, op=op, dest_rank=dest_rank)


class _Sized(_Collective):
    """An operator whose result has a shape that the size of the group decides."""

    def _together(self, x: Tensor) -> Tensor:
        return call(self.name, x, **self.attrs, rank_size=get_group_size(self.attrs["group"]))


class ReduceScatter(_Sized):
    """As AllReduce; each process gets its part of the rows."""

    def __init__(self, op: str = ReduceOp.SUM, group: str = HCCL_WORLD_COMM_GROUP) -> None:
        super().__init__(group, op=op)


class AllGather(_Sized):
    """The rows of all processes, one after another."""

    def __init__(self, group: str = HCCL_WORLD_COMM_GROUP) -> None:
        super().__init__(group)


class Broadcast(_Collective):
    """The tensors of the process `root_rank`, which all get: a tuple for a tuple."""

    def __init__(self, root_rank: int, group: str = HCCL_WORLD_COMM_GROUP) -> None:
        super().__init__(group, root_rank=root_rank)

    def compute(self, x: Any) -> Any:
        if isinstance(x, tuple | list):
            return tuple(self.compute(item) for item in x)
        return super().compute(x)


class AlltoAll(_Collective):
    """Part i of each process along `split_dim` goes to process i, which joins what it gets along `concat_dim`."""

    def __init__(self, split_count: int, split_dim: int, concat_dim: int, group: str = HCCL_WORLD_COMM_GROUP) -> None:
        super().__init__(group, split_count=split_count, split_dim=split_dim, concat_dim=concat_dim)

    def compute(self, x: Any) -> Tensor:
        count, size = self.attrs["split_count"], 1 if is_alone() else get_group_size(self.attrs["group"])
        if count != size:
            raise ValueError(f"For 'AlltoAll', the 'split_count' must be the {size} processes, but got {count}.")
        return super().compute(x)


class Barrier(Primitive):
    """Waits until all processes are here."""

    def __init__(self, group: str = HCCL_WORLD_COMM_GROUP) -> None:
        super().__init__(group=group)

    def compute(self, *inputs: Any) -> None:
        if not is_alone():
            call(self.name, **self.attrs)


class Send(_Collective):
    """Sends a tensor to the process `dest_rank`, which receives it under the same tag."""

    def __init__(
        self, sr_tag: int, dest_rank: int, group: str = HCCL_WORLD_COMM_GROUP, group_back: str = HCCL_WORLD_COMM_GROUP
    ) -> None:
        super().__init__(group, sr_tag=sr_tag, dest_rank=dest_rank)

    def compute(self, x: Any) -> Tensor:
        return self._together(as_tensor(x))


class Receive(_Collective):
    """The tensor that the process `src_rank` sends under the same tag."""

    def __init__(
        self, sr_tag: int, src_rank: int, shape: Sequence[int], dtype: Any, group: str = HCCL_WORLD_COMM_GROUP,
        group_back: str = HCCL_WORLD_COMM_GROUP,
    ) -> None:  # fmt: skip
        super().__init__(group, sr_tag=sr_tag, src_rank=src_rank, shape=tuple(shape), dtype=dtype_name(dtype))

    def compute(self, x: Any = None) -> Tensor:
        """`x` only has to be there before."""
        return call(self.name, *(() if x is None else (as_tensor(x),)), **self.attrs)


class NeighborExchange(Primitive):
    """Raises: ValueError: use Send and Receive, or AlltoAll."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise ValueError("NeighborExchange: expected Send and Receive or AlltoAll, got NeighborExchange. Use those.")


def mean_over_group(gradient: Tensor, degree: int, is_mean: bool, group: str) -> Tensor:
    """A gradient added up over a group, and divided by `degree` for the mean."""
    if is_alone():
        return gradient
    total = call("AllReduce", gradient, op=ReduceOp.SUM, group=group)
    return total if not is_mean else total * cast(as_tensor(1.0 / degree, "float32"), gradient.type_.dtype)


__all__ = [
    "AllGather", "AllReduce", "AlltoAll", "Barrier", "Broadcast", "NeighborExchange", "Receive", "Reduce", "ReduceOp",
    "ReduceScatter", "Send",
]  # fmt: skip

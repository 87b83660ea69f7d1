"""Transport: what moves tensors between the processes of a job. Without a job, a process is alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, final

from msdump.errors import ExecutionError
from msdump.tensors.arrays import Array


class Transport(Protocol):
    """Collective operations of a group of processes. `group` names it; arrays are the caller's and stay as they are.

    Ranks are those of the whole job. Every process of the group calls the same operations in the same order.
    """

    def all_reduce(self, array: Array, operation: str, group: str) -> Array: ...

    def all_gather(self, array: Array, group: str) -> Sequence[Array]: ...

    def broadcast(self, array: Array, root: int, group: str) -> Array: ...

    def all_to_all(self, parts: Sequence[Array], group: str) -> Sequence[Array]: ...

    def send(self, array: Array, rank: int, tag: int, group: str) -> None: ...

    def receive(self, like: Array, rank: int, tag: int, group: str) -> Array: ...

    def barrier(self, group: str) -> None: ...

    def place_of(self, rank: int, group: str) -> int: ...


@final
class Alone:
    """A job of one process: what it sends to all comes back to it."""

    def all_reduce(self, array: Array, operation: str, group: str) -> Array:
        return array

    def all_gather(self, array: Array, group: str) -> Sequence[Array]:
        return [array]

    def broadcast(self, array: Array, root: int, group: str) -> Array:
        return array

    def all_to_all(self, parts: Sequence[Array], group: str) -> Sequence[Array]:
        return parts

    def send(self, array: Array, rank: int, tag: int, group: str) -> None:
        """Raises: ExecutionError: there is no other process."""
        raise ExecutionError(f"Send: expected a job with rank {rank}, got one process. Call communication.init().")

    def receive(self, like: Array, rank: int, tag: int, group: str) -> Array:
        """Raises: ExecutionError: there is no other process."""
        raise ExecutionError(f"Receive: expected a job with rank {rank}, got one process. Call communication.init().")

    def barrier(self, group: str) -> None:
        """There is nothing to wait for."""

    def place_of(self, rank: int, group: str) -> int:
        return 0


_transport: Transport = Alone()


def transport() -> Transport:
    """What moves tensors now."""
    return _transport


def use_transport(new: Transport) -> None:
    """Move tensors with `new` from here on."""
    global _transport
    _transport = new

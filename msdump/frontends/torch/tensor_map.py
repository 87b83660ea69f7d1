"""TensorMap: a map from tensors to values, which keeps no tensor alive."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    import torch

T = TypeVar("T")


class TensorMap(Generic[T]):
    """Values by tensor, which is itself, not its elements. No tensor is kept alive by it.

    A dict of ids would give the value of a tensor that is gone to the next one at its address.

    state   another one whenever the map has changed; equal where equal entries were added in the same order
    """

    def __init__(self) -> None:
        self.state: object = None
        self._entries: dict[int, tuple[weakref.ref[torch.Tensor], T]] = {}

    def get(self, tensor: object) -> T | None:
        entry = self._entries.get(id(tensor))
        return entry[1] if entry is not None and entry[0]() is tensor else None

    def __contains__(self, tensor: object) -> bool:
        entry = self._entries.get(id(tensor))
        return entry is not None and entry[0]() is tensor

    def set(self, tensor: torch.Tensor, value: T) -> None:
        self.state = object()
        self._entries[id(tensor)] = weakref.ref(tensor), value

    def drop(self, tensor: torch.Tensor) -> None:
        """The tensor has no value any more."""
        if tensor in self:
            self.state = object()
            del self._entries[id(tensor)]

    def tensors(self) -> list[torch.Tensor]:
        """Those that live."""
        return [tensor for reference, _ in self._entries.values() if (tensor := reference()) is not None]

    def items(self) -> list[tuple[torch.Tensor, T]]:
        """Those that live, with their values."""
        return [(tensor, value) for reference, value in self._entries.values() if (tensor := reference()) is not None]

    def entries(self, tensors: Iterable[torch.Tensor]) -> dict[int, tuple[weakref.ref[torch.Tensor], T]]:
        """Those of tensors that have values, for `add`."""
        return {id(tensor): self._entries[id(tensor)] for tensor in tensors}

    def add(self, entries: dict[int, tuple[weakref.ref[torch.Tensor], T]], mark: object) -> None:
        """Entries of tensors that live.   mark: an object that no other entries have"""
        if not entries:
            return
        self.state = (self.state, mark)
        self._entries.update(entries)

    def clear(self) -> None:
        self.state = None
        self._entries.clear()

"""Copies, and what is none."""

from __future__ import annotations

from typing import Any

import torch

from msdump.frontends.torchair.ge import placement
from msdump.frontends.torchair.ge.registry import kernel


@kernel("Identity")
def identity(x: Any, *, is_alias: bool = False, memory_format: str = "", device: str = "") -> Any:
    """A copy; another tensor on the same memory where ATen has that."""
    if is_alias:
        return x.detach()
    if device:
        return x.to(device, copy=True)
    return torch.clone(x, memory_format=placement.memory_format(memory_format))


@kernel("TensorMove")
def tensor_move(x: Any) -> Any:
    return torch.clone(x)


@kernel("Assign", mutates="ref")
def assign(ref: Any, value: Any) -> Any:
    return ref.copy_(value)

"""GE operators that give the same elements another shape, and those that compute sizes."""

from __future__ import annotations

from typing import Any

import torch

from msdump.frontends.torchair.ge.registry import kernel


@kernel("Reshape", host=("shape",))
def reshape(x: Any, shape: list[int]) -> Any:
    return torch.reshape(x, shape)


@kernel("Transpose", host=("perm",))
def transpose(x: Any, perm: list[int]) -> Any:
    return torch.permute(x, perm)


@kernel("Pack")
def pack(*items: Any, N: int, axis: int, _force_unknown_shape: bool = False) -> Any:
    """Sizes make a list of sizes; tensors are stacked."""
    return list(items) if not isinstance(items[0], torch.Tensor) else torch.stack(items, axis)


kernel("Identity")(torch.clone)


@kernel("Assign", mutates="ref")
def assign(ref: Any, value: Any) -> Any:
    return ref.copy_(value)

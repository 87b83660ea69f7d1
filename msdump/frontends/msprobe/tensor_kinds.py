"""What a tensor is: plain, one of PyTorch's subclasses, or one without data; and the plain tensor inside.

Source: mindstudio-probe 26.2, names of types and what it shows of a DTensor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

_PLAIN = "torch.Tensor"
_MAX_WRAPPERS = 10


@dataclass(frozen=True, slots=True)
class Unwrapped:
    """tensor: the plain one; sharding: mesh and placements of a DTensor; has_data: whether its elements can be read"""

    type: str
    tensor: torch.Tensor
    has_data: bool = True
    sharding: Mapping[str, Any] = field(default_factory=dict)


def unwrapped(tensor: torch.Tensor) -> Unwrapped:
    kind = type(tensor)
    if kind is torch.Tensor or kind is torch.nn.Parameter:
        return _plain(tensor)
    name = f"{kind.__module__}.{kind.__name__}"
    if kind.__name__ == "DTensor" and hasattr(tensor, "to_local"):
        mesh: Any = tensor.device_mesh  # type: ignore[attr-defined]
        sharding = {"device_mesh": mesh.mesh.tolist(), "placements": _placements(tensor)}
        return Unwrapped("torch.distributed.tensor.DTensor", tensor.to_local(), sharding=sharding)
    if kind.__name__ == "FakeTensor" or kind.__name__ == "AsyncCollectiveTensor":
        return Unwrapped(name, tensor, has_data=False)
    if kind.__name__ == "NestedTensor":
        return Unwrapped(name, tensor.values())
    return _plain(tensor)


def _plain(tensor: torch.Tensor) -> Unwrapped:
    functions = torch._C._functorch
    if functions.is_batchedtensor(tensor) or functions.is_gradtrackingtensor(tensor):
        name = "BatchedTensor" if functions.is_batchedtensor(tensor) else "GradTrackingTensor"
        for _ in range(_MAX_WRAPPERS):
            if not (functions.is_batchedtensor(tensor) or functions.is_gradtrackingtensor(tensor)):
                break
            tensor = functions.get_unwrapped(tensor)
        return Unwrapped(name, tensor)
    has_memory = tensor.layout == torch.strided and not tensor.is_meta and not tensor.is_quantized
    return Unwrapped(_PLAIN, tensor, has_memory)


def _placements(tensor: Any) -> list[dict[str, Any]]:
    shown: list[dict[str, Any]] = []
    for placement in tensor.placements:
        if placement.is_shard():
            shown.append({"Shard": {"dim": placement.dim}})
        elif placement.is_replicate():
            shown.append({"Replicate": {}})
        elif placement.is_partial():
            shown.append({"Partial": {"reduce_op": placement.reduce_op}})
    return shown

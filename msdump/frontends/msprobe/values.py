"""Arguments and results of a call as JSON: as `dump.json` describes tensors, numbers, lists and other values.

Source: mindstudio-probe 26.2, files that it wrote: kinds of values, their keys, what stands for those it cannot show.
"""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.distributed as dist

if TYPE_CHECKING:
    from types import EllipsisType

    from torch.distributed.device_mesh import DeviceMesh

    from msdump.tensors.arrays import Array

Path = tuple[object, ...]
_MAX_DEPTH = 100
_OF_DEVICE = ("device",)
_OF_DTYPE = ("dtype", "output_dtype")
_MEMORY_FORMATS = {
    torch.contiguous_format: "contiguous_format",
    torch.channels_last: "channels_last",
    torch.channels_last_3d: "channels_last_3d",
    torch.preserve_format: "preserve_format",
}
_NOT_SHOWN = (torch.device, torch.dtype)


@dataclasses.dataclass(frozen=True, slots=True)
class Describer:
    """tensor, array: the description of one, by its path in the values, as keys and numbers."""

    tensor: Callable[[torch.Tensor, Path], object]
    array: Callable[[Array, Path], object]

    def describe(self, value: object, path: Path = ()) -> object:
        """JSON of a value. None for what has no form of its own, and for what is nested too deeply."""
        if isinstance(value, torch.Tensor) and not (path and path[-1] in _OF_DTYPE):
            return self.tensor(value, path)
        if value is None or len(path) > _MAX_DEPTH:
            return None
        if _is_special(value):
            return self._special(value, path)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return self._mapping({name: getattr(value, name) for name in value._fields}, path)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = dataclasses.fields(value)
            return self._mapping({field.name: getattr(value, field.name) for field in fields}, path)
        if isinstance(value, (list, tuple)):
            return [self.describe(item, (*path, number)) for number, item in enumerate(value)]
        if isinstance(value, dict):
            return self._mapping(value, path)
        return None

    def _mapping(self, content: Mapping[object, object], path: Path) -> dict[str | int | float | bool | None, object]:
        return {_key(key): self.describe(value, (*path, key)) for key, value in content.items()}

    def _special(self, value: object, path: Path) -> object:
        key = path[-1] if path else None
        if key in _OF_DEVICE:
            return _device(value)
        if key in _OF_DTYPE:
            return {"type": "torch.dtype", "value": str(value)}
        if isinstance(value, (bool, int, float, str, slice, type(Ellipsis))):
            return _plain(value)
        if isinstance(value, torch.Size):
            return {"type": "torch.Size", "value": [int(size) for size in value]}
        if isinstance(value, torch.memory_format):
            return {"type": "torch.memory_format", "format": _MEMORY_FORMATS.get(value)}
        if isinstance(value, np.ndarray):
            return self.array(value, path)
        if isinstance(value, np.generic):
            return {"type": type(value).__name__, "value": _number(value.item())}
        if isinstance(value, _NOT_SHOWN):
            return {}
        return self._of_distributed(value, path)

    def _of_distributed(self, value: Any, path: Path) -> dict[str, object]:
        if isinstance(value, dist.ProcessGroup):
            ranks = dist.get_process_group_ranks(value)
            return {"type": "torch.ProcessGroup", "group_ranks": ranks, "group_id": _group_id(value)}
        if isinstance(value, dist.ReduceOp):
            return {"type": "torch.distributed.ReduceOp", "value": str(value)}
        return {
            "class_type": "torch.distributed.P2POp",
            "tensor": self.tensor(value.tensor, path),
            "op": value.op.__name__,
            "peer": value.peer,
            "tag": value.tag,
            "group_id": _group_id(value.group or dist.group.WORLD),
        }


def _is_special(value: object) -> bool:
    if isinstance(value, (bool, int, float, str, slice, type(Ellipsis), np.generic, np.ndarray)):
        return True
    if isinstance(value, (torch.Size, torch.memory_format, *_NOT_SHOWN)):
        return True
    return dist.is_available() and isinstance(value, (dist.ProcessGroup, dist.P2POp, dist.ReduceOp))


def _plain(value: bool | int | float | str | slice | EllipsisType) -> dict[str, object]:
    if isinstance(value, slice):
        return {"type": "slice", "value": [_whole(end) for end in (value.start, value.stop, value.step)]}
    return {"type": type(value).__name__, "value": "..." if value is Ellipsis else _number(value)}


def _number(value: object) -> object:
    return str(value) if isinstance(value, (complex, bytes)) else value


def _whole(value: Any) -> int | None:
    try:
        return None if value is None else int(value)
    except (TypeError, ValueError):
        return None


def _device(value: object) -> dict[str, object]:
    if isinstance(value, torch.device):
        return {"type": "torch.device", "value": f"{value.type}:{value.index}"}
    return {"type": "torch.device", "value": value} if isinstance(value, (int, str)) else {"type": "torch.device"}


def _group_id(group: dist.ProcessGroup | None) -> str:
    return f"{zlib.crc32(str(dist.get_process_group_ranks(group)).encode()):08x}"


def _key(key: object) -> str | int | float | bool | None:
    return key if key is None or isinstance(key, (str, int, float, bool)) else str(key)


def tensors_in(value: object) -> Sequence[torch.Tensor]:
    """The tensors of lists, tuples and dictionaries, in their order."""
    if isinstance(value, torch.Tensor):
        return (value,)
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in tensors_in(item)]
    return ()


# -- kinds of tensors: plain, a subclass of PyTorch, without data; and the plain tensor inside -------------------------

_PLAIN = "torch.Tensor"
_MAX_WRAPPERS = 10


@dataclass(frozen=True, slots=True)
class Unwrapped:
    """tensor: the plain one; sharding: mesh and placements of a DTensor; has_data: whether its elements can be read"""

    type: str
    tensor: torch.Tensor
    has_data: bool = True
    sharding: Mapping[str, object] = field(default_factory=dict)


def unwrapped(tensor: torch.Tensor) -> Unwrapped:
    kind = type(tensor)
    if kind is torch.Tensor or kind is torch.nn.Parameter:
        return _plain_or_wrapped(tensor)
    name = f"{kind.__module__}.{kind.__name__}"
    if kind.__name__ == "DTensor" and hasattr(tensor, "to_local"):
        mesh: DeviceMesh = tensor.device_mesh  # type: ignore[attr-defined]
        sharding = {"device_mesh": mesh.mesh.tolist(), "placements": _placements(tensor)}
        return Unwrapped("torch.distributed.tensor.DTensor", tensor.to_local(), sharding=sharding)
    if kind.__name__ == "FakeTensor" or kind.__name__ == "AsyncCollectiveTensor":
        return Unwrapped(name, tensor, has_data=False)
    if kind.__name__ == "NestedTensor":
        return Unwrapped(name, tensor.values())
    return _plain_or_wrapped(tensor)


def _plain_or_wrapped(tensor: torch.Tensor) -> Unwrapped:
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


def _placements(tensor: Any) -> list[dict[str, object]]:
    shown: list[dict[str, object]] = []
    for placement in tensor.placements:
        if placement.is_shard():
            shown.append({"Shard": {"dim": placement.dim}})
        elif placement.is_replicate():
            shown.append({"Replicate": {}})
        elif placement.is_partial():
            shown.append({"Partial": {"reduce_op": placement.reduce_op}})
    return shown

"""Tensors put together, taken apart, repeated, turned round and padded."""

from __future__ import annotations

from typing import Any

import torch

from msdump.frontends.torchair.ge.registry import kernel, size_kernel

kernel("Tile", host=("multiples",))(torch.Tensor.repeat)
kernel("ReverseV2", host=("axis",))(torch.flip)


@kernel("ConcatV2", host=("concat_dim",))
def concat(*items: Any, N: int) -> Any:
    """The last argument is the axis."""
    return torch.cat(items[:-1], items[-1])


@kernel("Pack")
def pack(*items: Any, N: int, axis: int) -> Any:
    return torch.stack(items, axis)


@size_kernel("Pack")
def pack_sizes(*items: Any, N: int, axis: int, _force_unknown_shape: bool = False) -> list[Any]:
    return list(items)


@kernel("SplitV", host=("size_splits", "split_dim"))
def split(x: Any, size_splits: list[int], split_dim: int, *, num_split: int) -> Any:
    """size_splits   -1 once: what the others leave"""
    if -1 in size_splits:
        left = x.shape[split_dim] - sum(size for size in size_splits if size != -1)
        size_splits = [left if size == -1 else size for size in size_splits]
    return _bare(torch.split_with_sizes(x, size_splits, split_dim))


@kernel("Unpack")
def unpack(x: Any, *, num: int, axis: int) -> Any:
    return _bare(torch.unbind(x, axis))


@kernel("Roll")
def roll(x: Any, *, shifts: list[int], dims: list[int]) -> Any:
    return torch.roll(x, shifts, dims)


@kernel("Tril")
def tril(x: Any, *, diagonal: int) -> Any:
    return torch.tril(x, diagonal)


@kernel("Triu")
def triu(x: Any, *, diagonal: int) -> Any:
    return torch.triu(x, diagonal)


_PAD_MODES = {"reflect": "reflection", "edge": "replication"}


@kernel("PadV3", host=("paddings",), numbers=("constant_values",))
def pad(x: Any, paddings: list[int], constant_values: Any, *, mode: str, paddings_contiguous: bool) -> Any:
    if mode == "constant":
        return torch.constant_pad_nd(x, _aten_pad(paddings), constant_values)
    padding = _spatial_pad(paddings)
    return getattr(torch.ops.aten, f"{_PAD_MODES[mode]}_pad{len(padding) // 2}d").default(x, padding)


@kernel("PadV3Grad", host=("paddings",))
def pad_grad(x: Any, paddings: list[int], *, mode: str, paddings_contiguous: bool) -> Any:
    """x   gradient of the padded tensor"""
    padding = _spatial_pad(paddings)
    name = f"{_PAD_MODES[mode]}_pad{len(padding) // 2}d_backward"
    shape = [x.shape[axis] - paddings[2 * axis] - paddings[2 * axis + 1] for axis in range(x.dim())]
    return getattr(torch.ops.aten, name).default(x, x.new_empty(shape), padding)


def _aten_pad(paddings: list[int]) -> list[int]:
    """The last axis first."""
    pairs = [paddings[index : index + 2] for index in range(0, len(paddings), 2)]
    return [size for pair in reversed(pairs) for size in pair]


def _spatial_pad(paddings: list[int]) -> list[int]:
    """Of the last axes, as many as torch wants: all but batch and channels, and those if they are padded."""
    axes = max(len(paddings) // 2 - 2, 1)
    while any(paddings[: -2 * axes]):
        axes += 1
    return _aten_pad(paddings[-2 * axes :])


def _bare(parts: Any) -> Any:
    """One output comes without a tuple round it."""
    return parts if len(parts) > 1 else parts[0]

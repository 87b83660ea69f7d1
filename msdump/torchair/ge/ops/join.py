"""Tensors put together, taken apart, repeated, turned round and padded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from msdump.torchair.ge.builder import Builder, Feed, ge_number
from msdump.torchair.ge.graph import GeTensor, Operand, Size
from msdump.torchair.ge.registry import converter, kernel, size_kernel
from msdump.torchair.ge.rows import Attr, lists, row

kernel("Tile", host=("multiples",))(torch.Tensor.repeat)
kernel("ReverseV2", host=("axis",))(torch.flip)

_PAD_MODES = {"reflect": "reflection", "edge": "replication"}


@converter("aten.cat.default", "aten.concat.default")
def cat(ge: Builder, tensors: Sequence[GeTensor], dim: int = 0) -> GeTensor:
    items = ge.promoted(*tensors, dtype=ge.result.dtype)
    inputs: dict[str, GeTensor] = {f"x{index}": item for index, item in enumerate(items)}
    return ge.op("ConcatV2", {**inputs, "concat_dim": dim}, {"N": len(items)})


@kernel("ConcatV2", host=("concat_dim",))
def concat_kernel(*items: Any, N: int) -> torch.Tensor:
    """The last argument is the axis."""
    return torch.cat(items[:-1], items[-1])


@converter("aten.stack.default")
def stack(ge: Builder, tensors: Sequence[GeTensor], dim: int = 0) -> GeTensor:
    items = ge.promoted(*tensors, dtype=ge.result.dtype)
    return ge.op("Pack", {f"x{index}": item for index, item in enumerate(items)}, {"N": len(items), "axis": dim})


@kernel("Pack")
def pack_kernel(*items: torch.Tensor, N: int, axis: int) -> torch.Tensor:
    return torch.stack(items, axis)


@size_kernel("Pack")
def pack_sizes_kernel(*items: int, N: int, axis: int, _force_unknown_shape: bool = False) -> list[int]:
    return list(items)


@converter("aten.split.Tensor", "aten.split_copy.Tensor", "aten.unsafe_split.Tensor")
def split(ge: Builder, x: GeTensor, split_size: Size, dim: int = 0) -> tuple[GeTensor, ...]:
    """Parts of one size; the last one is what is left, -1 where that is known only when the graph runs."""
    count, last = len(ge.result), ge.result[-1].shape[dim]
    sizes = [*[split_size] * (count - 1), last if isinstance(last, int) else -1]
    packed = ge.op("Pack", {f"x{index}": size for index, size in enumerate(sizes)}, {"N": count, "axis": 0})
    return _split(ge, x, ge.op("Cast", {"x": packed}, {"dst_type": ge_number(torch.int64)}), dim)


@converter(
    "aten.split_with_sizes.default",
    "aten.unsafe_split_with_sizes.default",
    "aten.split_with_sizes_copy.default",
    "aten.split.sizes",
)
def split_with_sizes(ge: Builder, x: GeTensor, split_sizes: Sequence[Size], dim: int = 0) -> tuple[GeTensor, ...]:
    return _split(ge, x, ge.sizes(split_sizes), dim)


def _split(ge: Builder, x: GeTensor, size_splits: GeTensor, dim: int) -> tuple[GeTensor, ...]:
    count = len(ge.result)
    inputs: dict[str, Feed] = {"x": x, "size_splits": size_splits, "split_dim": dim}
    return ge.multi_op("SplitV", inputs, [f"y{index}" for index in range(count)], {"num_split": count})


@kernel("SplitV", host=("size_splits", "split_dim"))
def split_kernel(
    x: torch.Tensor, size_splits: list[int], split_dim: int, *, num_split: int
) -> Sequence[torch.Tensor] | torch.Tensor:
    """size_splits   -1 once: what the others leave"""
    if -1 in size_splits:
        remainder = x.shape[split_dim] - sum(size for size in size_splits if size != -1)
        size_splits = [remainder if size == -1 else size for size in size_splits]
    return _bare(torch.split_with_sizes(x, size_splits, split_dim))


def _bare(parts: Sequence[torch.Tensor]) -> Sequence[torch.Tensor] | torch.Tensor:
    """One output comes without a tuple round it."""
    return parts if len(parts) > 1 else parts[0]


@converter("aten.unbind.int", "aten.unbind_copy.int")
def unbind(ge: Builder, x: GeTensor, dim: int = 0) -> tuple[GeTensor, ...]:
    count = len(ge.result)
    return ge.multi_op("Unpack", {"x": x}, [f"y{index}" for index in range(count)], {"num": count, "axis": dim})


@kernel("Unpack")
def unpack_kernel(x: torch.Tensor, *, num: int, axis: int) -> Sequence[torch.Tensor] | torch.Tensor:
    return _bare(torch.unbind(x, axis))


@converter("aten.repeat.default")
def repeat(ge: Builder, x: GeTensor, repeats: Sequence[Size]) -> GeTensor:
    return ge.op("Tile", {"x": x, "multiples": ge.sizes(repeats)})


@converter("aten.flip.default")
def flip(ge: Builder, x: GeTensor, dims: Sequence[int]) -> GeTensor:
    return ge.op("ReverseV2", {"x": x, "axis": list(dims)})


row("aten.roll.default", "Roll", "x", *lists("shifts", "dims"))
row("aten.tril.default", "Tril", "x", Attr("diagonal"))
row("aten.triu.default", "Triu", "x", Attr("diagonal"))


@converter("aten.constant_pad_nd.default")
def constant_pad_nd(ge: Builder, x: GeTensor, pad: Sequence[Size], value: Operand = 0) -> GeTensor:
    fill = ge.number(value, x.dtype)
    return _pad(ge, x, pad, "constant", fill)


@converter("aten.reflection_pad1d.default", "aten.reflection_pad2d.default", "aten.reflection_pad3d.default")
def reflection_pad(ge: Builder, x: GeTensor, padding: Sequence[Size]) -> GeTensor:
    return _pad(ge, x, padding, "reflect")


@converter("aten.replication_pad1d.default", "aten.replication_pad2d.default", "aten.replication_pad3d.default")
def replication_pad(ge: Builder, x: GeTensor, padding: Sequence[Size]) -> GeTensor:
    return _pad(ge, x, padding, "edge")


@converter(
    "aten.reflection_pad1d_backward.default",
    "aten.reflection_pad2d_backward.default",
    "aten.reflection_pad3d_backward.default",
)
def reflection_pad_backward(ge: Builder, grad: GeTensor, x: GeTensor, padding: Sequence[Size]) -> GeTensor:
    return _pad_backward(ge, grad, x, padding, "reflect")


@converter(
    "aten.replication_pad1d_backward.default",
    "aten.replication_pad2d_backward.default",
    "aten.replication_pad3d_backward.default",
)
def replication_pad_backward(ge: Builder, grad: GeTensor, x: GeTensor, padding: Sequence[Size]) -> GeTensor:
    return _pad_backward(ge, grad, x, padding, "edge")


def _pad(ge: Builder, x: GeTensor, pad: Sequence[Size], mode: str, fill: GeTensor | None = None) -> GeTensor:
    inputs = {"x": x, "paddings": _paddings(ge, x, pad), "constant_values": fill}
    return ge.op("PadV3", inputs, {"mode": mode, "paddings_contiguous": True})


@kernel("PadV3", host=("paddings",), numbers=("constant_values",))
def pad_kernel(
    x: torch.Tensor, paddings: list[int], constant_values: Any, *, mode: str, paddings_contiguous: bool
) -> Any:
    if mode == "constant":
        return torch.constant_pad_nd(x, _aten_pad(paddings), constant_values)
    padding = _spatial_pad(paddings)
    return getattr(torch.ops.aten, f"{_PAD_MODES[mode]}_pad{len(padding) // 2}d").default(x, padding)


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


def _pad_backward(ge: Builder, grad: GeTensor, x: GeTensor, pad: Sequence[Size], mode: str) -> GeTensor:
    inputs = {"x": grad, "paddings": _paddings(ge, x, pad)}
    return ge.op("PadV3Grad", inputs, {"mode": mode, "paddings_contiguous": True})


@kernel("PadV3Grad", host=("paddings",))
def pad_grad_kernel(x: torch.Tensor, paddings: list[int], *, mode: str, paddings_contiguous: bool) -> Any:
    """x   gradient of the padded tensor"""
    padding = _spatial_pad(paddings)
    name = f"{_PAD_MODES[mode]}_pad{len(padding) // 2}d_backward"
    shape = [x.shape[axis] - paddings[2 * axis] - paddings[2 * axis + 1] for axis in range(x.dim())]
    return getattr(torch.ops.aten, name).default(x, x.new_empty(shape), padding)


def _paddings(ge: Builder, x: GeTensor, pad: Sequence[Size]) -> GeTensor:
    """Before and after, axis by axis from the first one; ATen begins with the last axis and leaves out the rest."""
    pairs = [pad[index : index + 2] for index in range(0, len(pad), 2)]
    padded = [size for pair in reversed(pairs) for size in pair]
    return ge.sizes([0, 0] * (len(x.shape) - len(pairs)) + padded)

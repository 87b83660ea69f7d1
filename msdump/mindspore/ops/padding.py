"""Margins around tensors, and blocks of space in channels, batches and windows."""

from __future__ import annotations

from typing import Any

import numpy as np

from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.names import publish
from msdump.mindspore.ops.array import reshape, transpose
from msdump.mindspore.ops.declaration import operator, plain

# -- margins -----------------------------------------------------------------------------------------------------------


@operator("PadV3", init="mode paddings_contiguous")
def _pad(
    torch: Any, x: Tensor, paddings: Any, constant_value: Any = None, mode: str = "constant",
    paddings_contiguous: bool = True,
) -> Any:  # fmt: skip
    """Margins: pairs (before, after) from the last axis on; not contiguous: all `before`, then all `after`."""
    if not paddings_contiguous:
        half = len(paddings) // 2
        paddings = [size for pair in zip(paddings[:half], paddings[half:], strict=True) for size in pair]
    mode = {"edge": "replicate", "wrap": "circular"}.get(mode, mode)
    value = constant_value if mode == "constant" else None
    return torch.clone(torch.nn.functional.pad(x, tuple(paddings), mode, value))


def pad(input_x: Tensor, padding: Any, mode: str = "constant", value: Any = None) -> Any:
    """Margins around a tensor: pairs (before, after) from the last axis on; negative sizes cut.

    mode    "constant" (of `value`, else 0), "reflect", "replicate" or "circular"
    Raises: TypeError for pairs: the sizes stand in one row.
    """
    sizes = plain(padding, "padding")
    if isinstance(padding, Tensor):
        sizes = np.ravel(sizes).tolist()
    if not isinstance(sizes, tuple | list) or any(isinstance(size, tuple | list) for size in sizes):
        raise TypeError(f"For 'pad', the paddings value must be tuple of int or list of int, but got {padding}")
    if mode != "constant" and value is not None:
        raise ValueError(f"For 'pad', the padding mode '{mode}' can not set value, but got value {value}.")
    return _pad(input_x, sizes, value, mode) if any(sizes) else input_x


@operator("MirrorPad", init="mode")
def mirror_pad(torch: Any, x: Tensor, paddings: Any, mode: str = "REFLECT") -> Any:
    """Margins that mirror the tensor: REFLECT without its border, SYMMETRIC with it."""
    if len(paddings) != x.ndim:
        raise ValueError(f"expected a pair of paddings for each of {x.ndim} axes, got {len(paddings)}.")
    result = x
    for axis, (before, after) in enumerate(paddings):
        places = np.pad(np.arange(x.shape[axis]), (before, after), mode.lower())  # type: ignore[call-overload]
        result = torch.index_select(result, axis, torch.as_tensor(places, device=x.device))  # type: ignore[attr-defined]
    return torch.clone(result)


@operator("Padding")
def padding(torch: Any, x: Tensor, pad_dim_size: int = 8) -> Any:
    """The last axis, of size 1, with zeros up to `pad_dim_size`."""
    return torch.clone(torch.nn.functional.pad(x, (0, pad_dim_size - x.shape[-1])))


# -- blocks of space ---------------------------------------------------------------------------------------------------


@operator("SpaceToDepth")
def _space_to_depth(torch: Any, x: Tensor, block_size: int) -> Any:
    """Blocks of (N, C, H, W) as channels, the place in the block before the channel."""
    n, c, h, w = x.shape
    blocks = torch.reshape(x, (n, c, h // block_size, block_size, w // block_size, block_size))
    moved = torch.moveaxis(blocks, (3, 5), (1, 2))
    return torch.reshape(moved, (n, c * block_size * block_size, h // block_size, w // block_size))


@operator("DepthToSpace")
def _depth_to_space(torch: Any, x: Tensor, block_size: int) -> Any:
    """Channels of (N, C, H, W) as blocks of space: the inverse of SpaceToDepth."""
    n, c, h, w = x.shape
    blocks = torch.reshape(x, (n, block_size, block_size, c // (block_size * block_size), h, w))
    moved = torch.moveaxis(blocks, (1, 2), (3, 5))
    return torch.reshape(moved, (n, c // (block_size * block_size), h * block_size, w * block_size))


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """(..., C * r * r, H, W) as (..., C, H * r, W * r)."""
    r, (c, h, w) = upscale_factor, input.shape[-3:]
    if input.ndim < 3 or c % (r * r):
        raise ValueError(f"For 'pixel_shuffle', expected channels that {r * r} divides, got shape {input.shape}.")
    lead = input.ndim - 3
    split = reshape(input, (*input.shape[:-3], c // (r * r), r, r, h, w))
    order = [*range(lead + 1), lead + 3, lead + 1, lead + 4, lead + 2]
    return reshape(transpose(split, order), (*input.shape[:-3], c // (r * r), h * r, w * r))


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """(..., C, H * r, W * r) as (..., C * r * r, H, W)."""
    r, (c, h, w) = downscale_factor, input.shape[-3:]
    if input.ndim < 3 or h % r or w % r:
        raise ValueError(f"For 'pixel_unshuffle', expected height and width that {r} divides, got {input.shape}.")
    lead = input.ndim - 3
    split = reshape(input, (*input.shape[:-3], c, h // r, r, w // r, r))
    order = [*range(lead + 1), lead + 2, lead + 4, lead + 1, lead + 3]
    return reshape(transpose(split, order), (*input.shape[:-3], c * r * r, h // r, w // r))


@operator("ChannelShuffle", init="group")
def _channel_shuffle(torch: Any, x: Tensor, group: int) -> Any:
    """Channels of (N, C, ...) of all groups in turns."""
    split = torch.reshape(x, (x.shape[0], group, x.shape[1] // group, *x.shape[2:]))
    return torch.reshape(torch.swapaxes(split, 1, 2), x.shape)


def channel_shuffle(x: Tensor, groups: int) -> Any:
    """Channels of (N, C, ...) of all groups in turns."""
    return _channel_shuffle(x, groups)


# -- windows -----------------------------------------------------------------------------------------------------------


def _pair(value: Any) -> tuple[int, int]:
    sizes = (value,) if isinstance(value, int) else tuple(value)
    return sizes[0], sizes[-1]


@operator("Im2Col", init="ksizes strides dilations pads")
def _im2col(torch: Any, x: Tensor, ksizes: Any, strides: Any = 1, dilations: Any = 1, pads: Any = 0) -> Any:
    """Windows of (N, C, H, W) as (N, C, elements of a window, windows)."""
    height, width = _pair(ksizes)
    columns = torch.nn.functional.unfold(x, (height, width), _pair(dilations), _pair(pads), _pair(strides))
    return torch.reshape(columns, (x.shape[0], x.shape[1], height * width, -1))


@operator("Col2Im", init="kernel_size dilation padding stride")
def _col2im(
    torch: Any, x: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Any:
    """Windows (N, C, elements of a window, windows) added up to (N, C, H, W)."""
    columns = torch.reshape(x, (x.shape[0], -1, x.shape[3]))
    options = [_pair(each) for each in (kernel_size, dilation, padding, stride)]
    return torch.nn.functional.fold(columns, _pair(output_size), *options)


def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """Windows of (N, C, H, W) as columns (N, C * elements of a window, windows)."""
    windows = _im2col(input, kernel_size, stride, dilation, padding)
    return reshape(windows, (windows.shape[0], -1, windows.shape[3]))


def fold(
    input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Any:
    """Columns (N, C * elements of a window, windows) added up to (N, C, H, W)."""
    height, width = _pair(kernel_size)
    count = height * width
    windows = reshape(input, (input.shape[0], input.shape[1] // count, count, input.shape[2]))
    return _col2im(windows, output_size, kernel_size, dilation, padding, stride)


def col2im(input_x: Tensor, output_size: Any, kernel_size: Any, dilation: Any, padding_value: Any, stride: Any) -> Any:
    """Windows (N, C, elements of a window, windows) added up to (N, C, H, W)."""
    return _col2im(input_x, output_size, kernel_size, dilation, padding_value, stride)


publish(__name__)
